// TG and TGM: frontier vertices look for unvisited neighbours.
//
// Work is balanced by arcs. A group takes a few frontier vertices (as many as its share of the level, GROUP at most) and sums their
// degrees. Its items then go through all arcs of the batch side by side, and each finds the vertex of its arc by bisection. Lists that are
// longer than a quarter of a group's share are cut into pieces, which a second launch hands out to all groups. Found vertices are collected
// in local memory and appended in bulk.

// The parameters of all top-down kernels. Arrays that a search swaps are passed in pairs; bits of the slot's STATE say which one is in use.
#define TOP_DOWN_PARAMETERS __global const uint *restrict offsets, __global const uint *restrict to_original, \
    __global uint *restrict visited_a, __global uint *restrict visited_b, __global uint *restrict parent

// The arrays in use. They are picked where they are accessed: a pointer that is kept takes two registers of a GPU through the whole kernel,
// and picking one costs less than the access.
#define QUEUE(state) ((state) & FLIP_QUEUE ? queue_b : queue_a)
#define OTHER_QUEUE(state) ((state) & FLIP_QUEUE ? queue_a : queue_b)
#define MASK(state) ((state) & FLIP_MASK ? mask_b : mask_a)
#define OTHER_MASK(state) ((state) & FLIP_MASK ? mask_a : mask_b)
#define BITMAP(state) ((state) & FLIP_BITMAP ? visited_b : visited_a)

// The vertices that a group has found.
typedef struct {
    uint vertices[NEXT];
    uint count, base, edges;
    // Whether the current batch has a list that is cut.
    uint longs;
} Found;

// Appends the vertices that the group has collected to the queue, if they are more than `most`. Returns in how many rounds the group may
// find GROUP vertices each before the next call. All items must call it.
static uint flush(__local Found *found, uint most, __global uint *next, volatile __global uint *counters, __global const uint *offsets) {
    uint me = get_local_id(0), edges = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint count = found->count, left = count > most ? 0 : count;
    count -= left;
    if (me == 0 && count) found->base = atomic_add(&counters[TAIL], count);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < count; i += GROUP) {
        uint v = found->vertices[i];
        next[found->base + i] = v;
        edges += offsets[v + 1] - offsets[v];
    }
    if (edges) atomic_add(&found->edges, edges);
    if (me == 0) found->count = left;
    barrier(CLK_LOCAL_MEM_FENCE);
    return (NEXT - left) / GROUP;
}

// A batch of frontier vertices, one per item.
typedef struct {
    uint begin[GROUP], name[GROUP], ends[GROUP];
} Batch;

// Makes a batch of the vertices of the first `lanes` items (`degree` 0: no vertex), and returns its number of arcs. All items must call it.
static uint fill_batch(__local Batch *batch, uint lanes, uint begin, uint degree, uint name) {
    uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    batch->begin[me] = begin;
    batch->name[me] = name;
    batch->ends[me] = degree;
    scan(batch->ends, lanes);
    return batch->ends[lanes - 1];
}

// The vertex of the batch to which the batch's `arc`-th arc belongs.
static uint owner(__local const Batch *batch, uint lanes, uint arc) {
    uint low = 0, high = lanes - 1;
    while (low < high) {
        uint middle = (low + high) / 2;
        if (batch->ends[middle] > arc) high = middle;
        else low = middle + 1;
    }
    return low;
}

static uint arc_of(__local const Batch *batch, uint vertex, uint arc) {
    return batch->begin[vertex] + arc - (vertex ? batch->ends[vertex - 1] : 0);
}

// Log2 of the number of arcs of a piece; longer lists are cut. A piece is at least a quarter of a group's share of a level, less than half
// of it, and at least one arc for every item. There are never more than eight pieces per group, if `edges` is right.
static uint piece_bits(uint edges) {
    return 32 - clz(max(edges / (4 * (uint)get_num_groups(0)), (uint)GROUP) - 1);
}

// Cuts the items' lists that are longer than a piece; a piece is a vertex and the number of the piece in its list. Returns the number of
// arcs left to the item. If there is no room, because the arcs of the level were an estimate, no list is cut. All items must call it.
static uint cut(__local Batch *batch, __local uint *base, uint lanes, uint u, uint degree, uint bits, __global uint *pieces, uint most_pieces,
                volatile __global uint *counters) {
    uint me = get_local_id(0), arcs = degree > 1u << bits ? degree : 0;
    uint total = fill_batch(batch, lanes, u, (arcs >> bits) + (arcs << (32 - bits) != 0), 0);
    if (me == 0) *base = atomic_add(&counters[PIECES], total);
    barrier(CLK_LOCAL_MEM_FENCE);
    // (Oclgrind 21.10 can't interpret a saturating difference, so sums are compared; they are far below 2^32.)
    uint at = *base;
    bool fits = at + total <= most_pieces;
    for (uint i = me; i < total && at + i < most_pieces; i += GROUP) {
        uint from = owner(batch, lanes, i);
        pieces[2 * (at + i)] = fits ? batch->begin[from] : NONE;
        pieces[2 * (at + i) + 1] = i - (from ? batch->ends[from - 1] : 0);
    }
    return fits ? degree - arcs : degree;
}

// The first arc of a piece, and its number of arcs.
static uint2 arcs_of_piece(__global const uint *pieces, uint i, uint bits, __global const uint *offsets) {
    uint u = pieces[2 * i];
    if (u == NONE) return (uint2)(0, 0);
    uint skipped = pieces[2 * i + 1] << bits, begin = offsets[u] + skipped;
    return (uint2)(begin, min(1u << bits, offsets[u + 1] - begin));
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tg(__global uint *restrict queue_a, __global uint *restrict queue_b, TOP_DOWN_PARAMETERS, __global uint *restrict pieces,
                 uint most_pieces, uint least, uint launch, uint launches, STEP_PARAMETERS, TARGET_PARAMETERS) {
    __local Found found;
    __local Batch batch;
    __global const uint *from = slot_before(all_counters, slot);
    bool runs = from[EDGES] >= least && applies(from, IS_QUEUE, guards, guard);
    uint state = from[STATE], len = runs ? from[TAIL] : 0, all_edges = from[EDGES];
    open_level(all_counters, slot, runs, state ^ FLIP_QUEUE);
    volatile __global uint *counters = slot_of(all_counters, slot);
    uint me = get_local_id(0), rounds = NEXT / GROUP, bits = piece_bits(all_edges);
    // A batch has enough vertices to give every item an arc, and at least a quarter of a group's share of the frontier.
    uint take = clamp(max(len / (4 * (uint)get_num_groups(0)), len / (all_edges / GROUP + 1)), 1u, (uint)GROUP);
    if (me == 0) found.count = found.edges = 0;
    uint batches = len / take + (len % take != 0), last = share(batches, launch + 1, launches);
    for (uint b = share(batches, launch, launches) + get_group_id(0); b < last; b += get_num_groups(0)) {
        uint base = b * take, lanes = min(take, len - base), u = 0, degree = 0;
        if (me == 0) found.longs = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < lanes) {
            u = QUEUE(state)[base + me];
            degree = offsets[u + 1] - offsets[u];
            if (degree > 1u << bits) found.longs = 1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint longs = found.longs;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (longs) degree = cut(&batch, &found.base, lanes, u, degree, bits, pieces, most_pieces, counters);
        uint total = fill_batch(&batch, lanes, offsets[u], degree, me < lanes ? original(to_original, u) : 0);
        for (uint first = 0; first < total; first += GROUP) {
            if (rounds == 0) rounds = flush(&found, NEXT - GROUP, OTHER_QUEUE(state), counters, offsets);
            rounds--;
            if (me < total - first) {
                uint u = owner(&batch, lanes, first + me);
                uint v = target(arc_of(&batch, u, first + me), TARGET_ARGUMENTS);
                if (visit(BITMAP(state), v)) {
                    parent[v] = batch.name[u];
                    found.vertices[atomic_inc(&found.count)] = v;
                }
            }
        }
    }
    flush(&found, 0, OTHER_QUEUE(state), counters, offsets);
    if (me == 0 && found.edges) atomic_add(&counters[EDGES], found.edges);
}

// Expands the pieces that TG has cut, in the same slot.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tg_pieces(__global uint *restrict queue_a, __global uint *restrict queue_b, TOP_DOWN_PARAMETERS,
                        __global const uint *restrict pieces, uint most_pieces, __global uint *all_counters, uint slot,
                        TARGET_PARAMETERS) {
    __local Found found;
    count_completion(all_counters);
    volatile __global uint *counters = slot_of(all_counters, slot);
    uint count = min(counters[PIECES], most_pieces), bits = piece_bits(slot_before(all_counters, slot)[EDGES]);
    // `tg` has already flipped the queues in STATE.
    uint me = get_local_id(0), rounds = NEXT / GROUP, state = counters[STATE];
    if (me == 0) found.count = found.edges = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_group_id(0); i < count; i += get_num_groups(0)) {
        uint2 arcs = arcs_of_piece(pieces, i, bits, offsets);
        uint name = arcs.y ? original(to_original, pieces[2 * i]) : 0;
        for (uint first = 0; first < arcs.y; first += GROUP) {
            if (rounds == 0) rounds = flush(&found, NEXT - GROUP, QUEUE(state), counters, offsets);
            rounds--;
            if (me < arcs.y - first) {
                uint v = target(arcs.x + first + me, TARGET_ARGUMENTS);
                if (visit(BITMAP(state), v)) {
                    parent[v] = name;
                    found.vertices[atomic_inc(&found.count)] = v;
                }
            }
        }
    }
    flush(&found, 0, QUEUE(state), counters, offsets);
    if (me == 0 && found.edges) atomic_add(&counters[EDGES], found.edges);
}

// Adds the numbers of vertices that the items of a group have found, and of their arcs, to the counters (TGM). All items must call it.
static void add_up(__local uint *sums, uint found, uint edges, volatile __global uint *counters) {
    if (found) {
        atomic_add(&sums[0], found);
        atomic_add(&sums[1], edges);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0 && sums[0]) {
        atomic_add(&counters[TAIL], sums[0]);
        atomic_add(&counters[EDGES], sums[1]);
    }
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tgm(__global uchar *restrict mask_a, __global uchar *restrict mask_b, uint padded, TOP_DOWN_PARAMETERS,
                  __global uint *restrict pieces, uint most_pieces, uint launch, uint launches, STEP_PARAMETERS, TARGET_PARAMETERS) {
    __local Batch batch;
    __local uint any[2], sums[2], pieces_at;
    __global const uint *from = slot_before(all_counters, slot);
    bool runs = applies(from, IS_MASK, guards, guard);
    uint state = from[STATE], bits = piece_bits(from[EDGES]);
    open_level(all_counters, slot, runs, state ^ FLIP_MASK);
    volatile __global uint *counters = slot_of(all_counters, slot);
    uint me = get_local_id(0), found = 0, edges = 0, turn = 0;
    // If the frontier has many vertices, a window is smaller: vertices with many arcs often have adjacent numbers.
    uint window = from[TAIL] > padded / 8 ? GROUP / 8 : GROUP, end = runs ? padded : 0;
    if (me == 0) any[0] = any[1] = sums[0] = sums[1] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint windows = end / window + (end % window != 0), last = share(windows, launch + 1, launches);
    for (uint w = share(windows, launch, launches) + get_group_id(0); w < last; w += get_num_groups(0), turn ^= 1) {
        uint base = w * window, lanes = min(window, end - base), u = base + me, degree = 0;
        bool mine = me < lanes && MASK(state)[u];
        if (mine) {
            degree = offsets[u + 1] - offsets[u];
            MASK(state)[u] = 0;
            // Bit 0: there are vertices; bit 1: there are lists to cut.
            atomic_or(&any[turn], degree > 1u << bits ? 3 : 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // Two flags in turn: the other one is cleared while no work-item reads it.
        if (me == 0) any[turn ^ 1] = 0;
        uint has = any[turn];
        if (!has) {
            barrier(CLK_LOCAL_MEM_FENCE);
            continue;
        }
        if (has & 2) degree = cut(&batch, &pieces_at, lanes, u, degree, bits, pieces, most_pieces, counters);
        uint total = fill_batch(&batch, lanes, mine ? offsets[u] : 0, degree, mine ? original(to_original, u) : 0);
        for (uint first = 0; first < total; first += GROUP) {
            if (me >= total - first) break;
            uint from = owner(&batch, lanes, first + me);
            uint v = target(arc_of(&batch, from, first + me), TARGET_ARGUMENTS);
            if (visit(BITMAP(state), v)) {
                parent[v] = batch.name[from];
                OTHER_MASK(state)[v] = 1;
                found++;
                edges += offsets[v + 1] - offsets[v];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_up(sums, found, edges, counters);
}

// Expands the pieces that TGM has cut, in the same slot.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tgm_pieces(__global uchar *restrict mask_a, __global uchar *restrict mask_b, TOP_DOWN_PARAMETERS,
                         __global const uint *restrict pieces, uint most_pieces, __global uint *all_counters, uint slot,
                         TARGET_PARAMETERS) {
    __local uint sums[2];
    count_completion(all_counters);
    volatile __global uint *counters = slot_of(all_counters, slot);
    uint count = min(counters[PIECES], most_pieces), bits = piece_bits(slot_before(all_counters, slot)[EDGES]);
    uint me = get_local_id(0), found = 0, edges = 0, state = counters[STATE];
    if (me == 0) sums[0] = sums[1] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_group_id(0); i < count; i += get_num_groups(0)) {
        uint2 arcs = arcs_of_piece(pieces, i, bits, offsets);
        uint name = arcs.y ? original(to_original, pieces[2 * i]) : 0;
        for (uint arc = me; arc < arcs.y; arc += GROUP) {
            uint v = target(arcs.x + arc, TARGET_ARGUMENTS);
            if (visit(BITMAP(state), v)) {
                parent[v] = name;
                MASK(state)[v] = 1;
                found++;
                edges += offsets[v + 1] - offsets[v];
            }
        }
    }
    add_up(sums, found, edges, counters);
}

// Walks through the arcs of a frontier vertex of `tg_run`, from `first` on, every `stride`-th arc.
#define WALK(u, first, stride) do { \
        uint begin = offsets[u], arcs = offsets[(u) + 1] - begin, name = original(to_original, u); \
        for (uint arc = first; arc < arcs; arc += stride) { \
            uint v = target(begin + arc, TARGET_ARGUMENTS); \
            if (visit(BITMAP(state), v)) { \
                parent[v] = name; \
                OTHER_QUEUE(state)[atomic_inc(&tail)] = v; \
                sum += offsets[v + 1] - offsets[v]; \
            } \
        } \
    } while (0)

// Lists with more arcs than this are walked by all items of the group.
#define ALONE 16

// Runs levels too small to share, one after another, in one launch of ONE group: within a group a barrier is always safe, while OpenCL
// promises nothing about groups waiting for each other. Ends with an empty frontier, with one of at least `most` arcs or vertices, after
// `most_levels` levels, or after 64 * `most` arcs.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tg_run(__global uint *restrict queue_a, __global uint *restrict queue_b, TOP_DOWN_PARAMETERS, uint most, uint most_levels,
                     STEP_PARAMETERS, TARGET_PARAMETERS) {
    __local uint tail, edges, expanded, longs, lists[GROUP];
    __global const uint *from = slot_before(all_counters, slot);
    // Numbers: Mesa 26.2.6 can't compile the byte in which a loop keeps a `bool` for Mali's Midgard ("Unhandled ALU op b2i8").
    uint runs = from[EDGES] < most && from[TAIL] < most && applies(from, IS_QUEUE, guards, guard), goes_on = runs;
    uint me = get_local_id(0), state = from[STATE], len = from[TAIL], sum = from[EDGES], levels = 0;
    __global uint *counters = slot_of(all_counters, slot);
    if (!runs) open_level(all_counters, slot, false, state);
    else {
        clear_next_slot(all_counters, slot);
        // The first item counts in memory, so that these counts take no registers of the others.
        if (me == 0) counters[VISITED] = from[VISITED], expanded = 0;
    }
    while (goes_on) {
        if (me == 0) {
            tail = edges = 0;
            counters[VISITED] += len;
            expanded += sum;
            counters[BEFORE] = len;
        }
        sum = 0;
        for (uint base = 0; base < len; base += GROUP) {
            if (me == 0) longs = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (me < len - base) {
                uint u = QUEUE(state)[base + me];
                if (offsets[u + 1] - offsets[u] > ALONE) lists[atomic_inc(&longs)] = u;
                else WALK(u, 0, 1);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint i = 0; i < longs; i++) WALK(lists[i], me, GROUP);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (sum) atomic_add(&edges, sum);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        len = tail;
        sum = edges;
        levels++;
        state ^= FLIP_QUEUE;
        goes_on = len != 0 && sum < most && len < most && levels != most_levels && expanded / 64 < most;
        // The counters are reset after all items have read them.
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (runs && me == 0) {
        counters[TAIL] = len;
        counters[EDGES] = sum;
        counters[LEVELS] = levels;
        counters[EXPANDED] = from[EXPANDED] + expanded;
        counters[STATE] = state;
    }
}
