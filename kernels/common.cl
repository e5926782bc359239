// What all kernels share. OpenCL C 1.2 with 32-bit atomics, no extensions.
//
// The host defines, per program:
//   GROUP           items in a work-group, which work through vertices side by side: a multiple of 32
//   NEXT            vertices that a group collects in local memory before it appends them to the next queue
//   COLUMNS         columns of first neighbours: 0, 2 or 4
//   RENUMBERED      1 if parents must be translated to original numbers
//   PARTS           buffers over which the neighbours are spread, and EDGES_PER_PART, the size of each but the last
//   SLOT, SLOTS, ... number of words in a counter slot, number of slots, and the index of each word; FLIP_..., IS_... bits of its STATE;
//                   TERMS size of a form (src/gpu/slots.rs documents all of them)
//
// Only the parameters of kernels are `restrict`. If a function with such parameters is inlined, Clang emits a call of
// llvm.experimental.noalias.scope.decl, which Oclgrind 21.10 rejects ("Undefined external function").
//
// Bitmaps are those of the host, read as 32-bit words. A visited bitmap ends with a zero word, which is read for "no neighbour".

#define NONE 0xffffffffu

// A step is a level (or a run of levels, or a conversion). It reads the state of the search from the slot of the step before, and writes
// its own slot. So several steps can be launched one after another, and the host waits once for all of them. A step that does not apply
// changes nothing, and copies the previous slot to its own.
#define STEP_PARAMETERS __global uint *all_counters, uint slot, __global const uint *guards, uint guard

static __global uint *slot_of(__global uint *all_counters, uint slot) {
    return all_counters + slot * SLOT;
}

static __global const uint *slot_before(__global uint *all_counters, uint slot) {
    return all_counters + (slot + SLOTS - 1) % SLOTS * SLOT;
}

// `all` less two numbers, or 0 if they are more than that. (Many GPUs have no 64-bit integers, Oclgrind 21.10 no saturating difference.)
static float left_of(uint all, uint before, uint now) {
    return before < all && now < all - before ? (float)(all - before - now) : 0.0f;
}

// Whether the planner would surely choose the plan of `guard` at the level after `from`: all linear forms over the counts are above 0, by
// more than the rounding error. Guard 0: the level has been planned. The number of forms is data and no constant: a constant makes
// compilers unroll the loop, into half of a kernel's instructions on some GPUs, with more registers than the rest of the kernel needs.
static bool is_planned(__global const uint *from, __global const uint *guards, uint guard) {
    if (guard == 0) return true;
    float frontier = from[TAIL], edges = from[EDGES];
    float vertices_left = left_of(guards[0], from[VISITED], from[TAIL]), edges_left = left_of(guards[1], from[EXPANDED], from[EDGES]);
    uint forms = guards[2];
    __global const uint *form = guards + 3 + (guard - 1) * forms * TERMS;
    for (uint i = 0; i < forms; i++, form += TERMS) {
        float a = as_float(form[0]), b = as_float(form[1]) * frontier, c = as_float(form[2]) * edges;
        float d = as_float(form[3]) * vertices_left, e = as_float(form[4]) * edges_left;
        float sum = a + b + c + d + e, size = fabs(a) + fabs(b) + fabs(c) + fabs(d) + fabs(e);
        if (!(sum > size * 1e-4f)) return false;
    }
    return true;
}

// Whether a step runs: the frontier is not empty, its form is one of the bits in `forms`, and the plan is that of the step.
static bool applies(__global const uint *from, uint forms, __global const uint *guards, uint guard) {
    return from[TAIL] != 0 && (from[STATE] & forms) != 0 && is_planned(from, guards, guard);
}

// No kernel with barriers returns early, since compilers for CPUs need simple control flow around barriers. Instead, a step that does not
// run has no work.

// All items must call it: each clears a word. (One item in a loop of constant bound would be unrolled into every kernel.)
static void clear_next_slot(__global uint *all_counters, uint slot) {
    __global uint *after = all_counters + (slot + 1) % SLOTS * SLOT;
    for (uint i = get_global_id(0); i < SLOT; i += get_global_size(0)) after[i] = 0;
}

// Opens the slot of a step. If the step runs, `state` is the STATE after it, and all items add what they find to the slot; a conversion
// counts the frontier's vertices again. If it does not run, the previous slot is copied. All items must call it.
static void open_step(__global uint *all_counters, uint slot, bool runs, bool is_level, uint state) {
    clear_next_slot(all_counters, slot);
    if (get_global_id(0) != 0) return;
    __global const uint *from = slot_before(all_counters, slot);
    __global uint *to = slot_of(all_counters, slot);
    uint tail = from[TAIL], edges = from[EDGES], begun = runs && is_level;
    to[LEVELS] = begun;
    to[VISITED] = from[VISITED] + (begun ? tail : 0);
    to[EXPANDED] = from[EXPANDED] + (begun ? edges : 0);
    to[BEFORE] = begun ? tail : from[BEFORE];
    to[STATE] = runs ? state : from[STATE];
    if (!begun) to[EDGES] = edges;
    if (!runs) to[TAIL] = tail;
}

static void open_level(__global uint *all_counters, uint slot, bool runs, uint state) {
    open_step(all_counters, slot, runs, true, state);
}

static void open_conversion(__global uint *all_counters, uint slot, bool runs, uint state) {
    open_step(all_counters, slot, runs, false, state);
}

// Where the pieces of work of launch number `launch` begin, if `launches` launches share `all` pieces.
static uint share(uint all, uint launch, uint launches) {
    return all / launches * launch + min(launch, all % launches);
}

// Counts a launch of a kernel that completes the work of another one. All these kernels begin with it: the host compares the number with
// that of its launches, since a result that lacks the work of such a kernel looks like any other.
static void count_completion(__global uint *all_counters) {
    if (get_global_id(0) == 0) all_counters[COMPLETIONS]++;
}

// The neighbours are in up to PARTS buffers (Zhang et al. 2018, section 4.3), since a device's largest buffer may be smaller than the
// graph. EDGES_PER_PART is a constant, so that the division becomes a multiplication.
#if PARTS == 1
#define TARGET_PARAMETERS __global const uint *part0
#define TARGET_ARGUMENTS part0
#elif PARTS <= 4
#define TARGET_PARAMETERS __global const uint *part0, __global const uint *part1, \
    __global const uint *part2, __global const uint *part3
#define TARGET_ARGUMENTS part0, part1, part2, part3
#else
#define TARGET_PARAMETERS __global const uint *part0, __global const uint *part1, \
    __global const uint *part2, __global const uint *part3, __global const uint *part4, \
    __global const uint *part5, __global const uint *part6, __global const uint *part7, \
    __global const uint *part8, __global const uint *part9, __global const uint *part10, \
    __global const uint *part11, __global const uint *part12, __global const uint *part13, \
    __global const uint *part14, __global const uint *part15
#define TARGET_ARGUMENTS part0, part1, part2, part3, part4, part5, part6, part7, \
    part8, part9, part10, part11, part12, part13, part14, part15
#endif

#define PICK4(part, a, b, c, d) ((part) & 2 ? ((part) & 1 ? (d) : (c)) : ((part) & 1 ? (b) : (a)))

// The part is picked by bits and not by a switch. That causes no divergence, and Oclgrind 21.10 can't interpret a switch here, which
// becomes a table of 24 bits.
static uint target(uint arc, TARGET_PARAMETERS) {
#if PARTS == 1
    return part0[arc];
#else
    uint part = arc / EDGES_PER_PART;
    uint at = arc - part * EDGES_PER_PART;
#if PARTS <= 4
    return PICK4(part, part0, part1, part2, part3)[at];
#else
    return PICK4(part >> 2, PICK4(part, part0, part1, part2, part3), PICK4(part, part4, part5, part6, part7),
                 PICK4(part, part8, part9, part10, part11), PICK4(part, part12, part13, part14, part15))[at];
#endif
#endif
}

static uint original(__global const uint *to_original, uint v) {
#if RENUMBERED
    return to_original[v];
#else
    return v;
#endif
}

static uint has_bit(__global const uint *bitmap, uint v) {
    return bitmap[v >> 5] >> (v & 31) & 1;
}

// Marks `v` as visited. Returns true to the one item that was first. The plain read before the atomic avoids most atomics: a bit that is
// set stays set, and a bit that was read too early is tested again by the atomic.
static bool visit(volatile __global uint *visited, uint v) {
    uint bit = 1u << (v & 31);
    return !(visited[v >> 5] & bit) && !(atomic_or(&visited[v >> 5], bit) & bit);
}

// Inclusive prefix sums of the values of the first `lanes` items (Hillis and Steele 1986); sums behind them mean nothing. All items must
// call it, with the same `lanes`. (GROUP in its place would be a constant, and the loop unrolled.)
static void scan(__local uint *sums, uint lanes) {
    uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < lanes; step <<= 1) {
        uint left = me >= step ? sums[me - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[me] += left;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
