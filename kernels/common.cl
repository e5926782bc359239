// What all kernels share. OpenCL C 1.2, 32-bit atomics, no extension.
//
// The host defines, per program:
//   GROUP           items in a work-group: 1 where a device is a CPU (an item is then a thread that works through
//                   vertices by itself), else a multiple of 32 whose items work through vertices side by side
//   NEXT            vertices that a group (or item) collects in fast memory before it appends them to the next queue
//   COLUMNS         columns of first neighbours: 0, 2 or 4
//   RENUMBERED      1 where parents must be translated to original numbers
//   PARTS           buffers over which the neighbours are spread, and EDGES_PER_PART, the size of each but the last
//   HEAVY           arcs from which a frontier vertex is expanded by all groups together (0: never)
//
// Only kernels' own parameters are `restrict`: inlining a function with such parameters leaves marks in the code that not every
// implementation understands.
//
// Bitmaps are the host's, seen as 32-bit words. A visited bitmap has a zero word after its last, which "no neighbour"
// reads.

#define NONE 0xffffffffu

// Counters of one launch. Each launch has a slot of its own and clears the next one, so that nobody has to wait for a
// write from the host.
#define SLOT 8
#define SLOTS 4
#define TAIL 0     // entries of the next queue
#define HEAD 1     // work handed out
#define FOUND 2    // vertices found
#define EDGES 3    // arcs that leave them
#define HEAVIES 4  // frontier vertices put off for all groups together
#define LEVELS 5   // levels done
#define EXPANDED 6 // arcs of the frontiers in between, when several levels are done at once
#define EXTRA 7    // neighbours looked at by a sample; size of the frontier before the last

static void open_slot(__global uint *counters, uint slot) {
    if (get_global_id(0) == 0) {
        __global uint *after = counters + (slot + 1) % SLOTS * SLOT;
        for (uint i = 0; i < SLOT; i++) after[i] = 0;
    }
}

// The neighbours, in up to PARTS buffers (Zhang et al. 2018, section 4.3): a device's largest buffer may be smaller than
// the graph. EDGES_PER_PART is a constant, so that the division is a multiplication.
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

// Picked by bits and not by a switch: no divergence, and nothing that Oclgrind 21.10 can't interpret (a switch here becomes a table of
// 24 bits).
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

// Marks `v` as visited. True for the one item that was the first. The plain read in front keeps most of the others away
// from the atomic: a bit that is set stays set, and one that is read too early as not set is asked again.
static bool visit(volatile __global uint *visited, uint v) {
    uint bit = 1u << (v & 31);
    return !(visited[v >> 5] & bit) && !(atomic_or(&visited[v >> 5], bit) & bit);
}

#if GROUP > 1
// Inclusive prefix sums of one value per item (Hillis and Steele 1986). All items must call it.
static void scan(__local uint *sums) {
    uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < GROUP; step <<= 1) {
        uint left = me >= step ? sums[me - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[me] += left;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif
