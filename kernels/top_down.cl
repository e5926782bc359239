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

#if GROUP == 1

// If a work-group is one item (on a CPU), the item expands short lists in rounds of a few frontier vertices, and each round in passes,
// since a CPU mostly waits for cache misses. Within a pass no access depends on another, so many misses are outstanding at once. A CPU
// moves no access past an atomic, so all atomics of a round come together, after all misses. No branch depends on a value just read. Long
// lists are walked arc by arc instead: most of their arcs lead to visited vertices, so the branch is predicted well. (Measured on PoCL with
// two cores, in turn, on a quiet machine: TG takes 60 ms without rounds and 40 with them for Rodinia's graph of 1 M vertices; prefetches in
// place of the reads ahead gained no more; Kronecker 18 gains nothing. TGM, whose lists follow one another in memory, lost a fifth.)

// Arcs per frontier vertex, on average, up to which lists are short.
#define SHORT_LISTS 16

typedef struct {
    // For each frontier vertex: its remaining arcs, and its original number, which is stored as a parent.
    uint begin[ROUND], end[ROUND], name[ROUND];
    // Vertices that were found, or that may be new, and the parent of each.
    uint vertices[NEXT], names[NEXT];
    // Number of lists that are done, and a value made of what was read ahead, so that no compiler drops these reads.
    uint done, ahead;
} Round;

// Begins a round with the lists of the first `lists` entries of `queue`. It reads the first and the last arc of each list ahead.
static void begin_round(__local Round *round, __global const uint *queue, uint lists, __global const uint *offsets,
                        __global const uint *to_original, TARGET_PARAMETERS) {
    for (uint i = 0; i < lists; i++) {
        uint u = queue[i];
        round->begin[i] = offsets[u];
        round->end[i] = offsets[u + 1];
        round->name[i] = original(to_original, u);
    }
    uint ahead = 0;
    for (uint i = 0; i < lists; i++)
        if (round->begin[i] < round->end[i])
            ahead ^= target(round->begin[i], TARGET_ARGUMENTS) ^ target(round->end[i] - 1, TARGET_ARGUMENTS);
    round->ahead = ahead;
    round->done = 0;
}

// Continues a round until all of its lists are done or there is no room for more vertices. It puts the vertices that seem to be unvisited
// into the round, and returns their number. (A bit that is set stays set, so no unvisited vertex is missed.)
static uint look(__local Round *round, uint lists, volatile __global const uint *visited, TARGET_PARAMETERS) {
    uint count = 0, i = round->done;
    for (; i < lists; i++) {
        uint begin = round->begin[i], arcs = round->end[i] - begin, name = round->name[i], run = min(arcs, NEXT - count);
        for (uint arc = begin; arc < begin + run; arc++) {
            uint v = target(arc, TARGET_ARGUMENTS);
            round->vertices[count] = v;
            round->names[count] = name;
            count += ~(visited[v >> 5] >> (v & 31)) & 1;
        }
        if (run < arcs) {
            round->begin[i] = begin + run;
            break;
        }
    }
    round->done = i;
    return count;
}

// Writes the parents of the `found` vertices in the round, and appends these vertices to the queue. Returns the number of arcs that leave
// them.
static uint append(__local Round *round, uint found, __global uint *parent, __global const uint *offsets, __global uint *next) {
    uint ahead = 0, edges = 0;
    for (uint c = 0; c < found; c++) ahead ^= parent[round->vertices[c]];
    round->ahead = ahead;
    for (uint c = 0; c < found; c++) {
        uint v = round->vertices[c];
        parent[v] = round->names[c];
        next[c] = v;
        edges += offsets[v + 1] - offsets[v];
    }
    return edges;
}

// Marks the `count` vertices in the round as visited, and keeps those that this item was the first to visit. Returns their number.
static uint claim(__local Round *round, uint count, volatile __global uint *visited) {
    uint found = 0;
    for (uint c = 0; c < count; c++) {
        uint v = round->vertices[c], bit = 1u << (v & 31);
        round->vertices[found] = v;
        round->names[found] = round->names[c];
        found += !(atomic_or(&visited[v >> 5], bit) & bit);
    }
    return found;
}

// Claims by bins: if items are the threads of a CPU, each atomic waits for a cache line of the bitmap that another core holds. So instead
// of claiming a vertex, an item writes the vertex and its parent into a bin. All vertices of a block belong to the same bin. In a second
// launch one item empties each bin. Only that item accesses the bits of the bin's blocks, so it needs no atomic. (Measured on PoCL with two
// cores, Rodinia's graph of 1 M vertices: TG takes 0.7 of the time. A graph with a small bitmap gains nothing. With two bins instead of
// eight, the level that gains most takes 1.3 times as long; with 32 and 64, 1.3 and 1.45.)
//
// The buffer `pieces` holds the number of claims that each item has put into each bin, then the claims of each item and bin.

// Log2 of the number of vertices in a block. A block takes 512 bytes of the bitmap.
#define BLOCK_BITS 12
#define MOST_BINS (NEXT < 8 ? 1 : NEXT / 8)

// Number of bins for `items` items: the least power of two that is at least 4 * `items`, so that all items end together, but at most
// MOST_BINS.
static uint bins_for(uint items) {
    uint bins = 1;
    while (bins < 4 * items && 2 * bins <= MOST_BINS) bins *= 2;
    return bins;
}

// Number of claims of one item that fit into a bin. `most_pieces` is half of the buffer's words.
static uint room_of_bin(uint most_pieces, uint items, uint bins) {
    uint counts = (items * bins + 1) / 2;
    return most_pieces > counts ? (most_pieces - counts) / (items * bins) : 0;
}

// The claims of one item in a bin.
#define CLAIMS_OF(pieces, items, bins, room, item, bin) ((pieces) + ((items) * (bins) + 1) / 2 * 2 + 2 * ((item) * (bins) + (bin)) * (room))

// Puts a vertex found on a long list into the item's own buffer, and appends the buffer to the queue when it is full.
#define PUSH(v) do { \
        round.vertices[count++] = (v); \
        edges += offsets[(v) + 1] - offsets[v]; \
        if (count == NEXT) { \
            uint at = atomic_add(&counters[TAIL], NEXT); \
            for (uint c = 0; c < NEXT; c++) next[at + c] = round.vertices[c]; \
            count = 0; \
        } \
    } while (0)

__kernel void tg(__global uint *restrict queue_a, __global uint *restrict queue_b, TOP_DOWN_PARAMETERS, __global uint *restrict pieces,
                 uint most_pieces, uint least, uint launch, uint launches, STEP_PARAMETERS, TARGET_PARAMETERS) {
    __global const uint *from = slot_before(all_counters, slot);
    // Local rather than private: some drivers mishandle private arrays of this size.
    __local Round round;
    __local uint in_bin[MOST_BINS];
    bool runs = from[EDGES] >= least && applies(from, IS_QUEUE, guards, guard);
    uint state = from[STATE], len = from[TAIL];
    bool by_rounds = from[EDGES] / SHORT_LISTS < len;
    open_level(all_counters, slot, runs, state ^ FLIP_QUEUE);
    if (!runs) return;
    volatile __global uint *counters = slot_of(all_counters, slot);
    __global const uint *queue = state & FLIP_QUEUE ? queue_b : queue_a;
    __global uint *next = state & FLIP_QUEUE ? queue_a : queue_b;
    volatile __global uint *visited = state & FLIP_BITMAP ? visited_b : visited_a;
    uint count = 0, edges = 0;
    // If bins are off, `most_pieces` is 0.
    uint me = get_group_id(0), items = get_num_groups(0), bins = bins_for(items), room = room_of_bin(most_pieces, items, bins), put = 0;
    bool by_bins = by_rounds && room > 0;
    for (uint b = 0; b < bins; b++) in_bin[b] = 0;
    // From a short frontier, an item takes few entries at a time, so that all items end together.
    uint grain = clamp(len / (16 * (uint)get_global_size(0)), 1u, (uint)ROUND);
    uint start = share(len, launch, launches), all_end = share(len, launch + 1, launches);
    for (;;) {
        uint begin = start + atomic_add(&counters[HEAD], grain);
        if (begin >= all_end) break;
        uint end = min(begin + grain, all_end);
        if (by_rounds) {
            begin_round(&round, queue + begin, end - begin, offsets, to_original, TARGET_ARGUMENTS);
            while (round.done < end - begin) {
                uint seem = look(&round, end - begin, visited, TARGET_ARGUMENTS), fullest = 0;
                for (uint b = 0; by_bins && b < bins; b++) fullest = max(fullest, in_bin[b]);
                if (by_bins && seem <= room - fullest) {
                    for (uint c = 0; c < seem; c++) {
                        uint v = round.vertices[c], bin = (v >> BLOCK_BITS) & (bins - 1), at = in_bin[bin]++;
                        __global uint *claims = CLAIMS_OF(pieces, items, bins, room, me, bin);
                        claims[2 * at] = v;
                        claims[2 * at + 1] = round.names[c];
                    }
                    put += seem;
                    continue;
                }
                uint found = claim(&round, seem, visited), at = found ? atomic_add(&counters[TAIL], found) : 0;
                edges += append(&round, found, parent, offsets, next + at);
            }
            continue;
        }
        for (uint i = begin; i < end; i++) {
            uint u = queue[i];
            uint stop = offsets[u + 1], name = original(to_original, u);
            for (uint arc = offsets[u]; arc < stop; arc++) {
                uint v = target(arc, TARGET_ARGUMENTS);
                if (visit(visited, v)) {
                    parent[v] = name;
                    PUSH(v);
                }
            }
        }
    }
    uint at = count ? atomic_add(&counters[TAIL], count) : 0;
    for (uint c = 0; c < count; c++) next[at + c] = round.vertices[c];
    atomic_add(&counters[EDGES], edges);
    if (by_bins) {
        for (uint b = 0; b < bins; b++) pieces[me * bins + b] = in_bin[b];
        if (put) atomic_add(&counters[PIECES], put);
    }
}

// Empties the bins that TG has filled. It runs with the slot of TG and with the same number of items.
__kernel void tg_pieces(__global uint *restrict queue_a, __global uint *restrict queue_b, TOP_DOWN_PARAMETERS,
                        __global const uint *restrict pieces, uint most_pieces, __global uint *all_counters, uint slot,
                        TARGET_PARAMETERS) {
    __local Round round;
    count_completion(all_counters);
    volatile __global uint *counters = slot_of(all_counters, slot);
    if (!counters[PIECES]) return;
    // `tg` has already flipped the queues in STATE.
    uint state = counters[STATE], items = get_num_groups(0), bins = bins_for(items), room = room_of_bin(most_pieces, items, bins), edges = 0;
    __global uint *next = state & FLIP_QUEUE ? queue_b : queue_a;
    __global uint *visited = state & FLIP_BITMAP ? visited_b : visited_a;
    for (;;) {
        uint bin = atomic_inc(&counters[EMPTIED]);
        if (bin >= bins) break;
        for (uint item = 0; item < items; item++) {
            __global const uint *claims = CLAIMS_OF(pieces, items, bins, room, item, bin);
            for (uint first = 0, count = pieces[item * bins + bin]; first < count; first += NEXT) {
                uint some = min(count - first, (uint)NEXT), found = 0;
                for (uint c = first; c < first + some; c++) {
                    uint v = claims[2 * c], bit = 1u << (v & 31), word = visited[v >> 5];
                    round.vertices[found] = v;
                    round.names[found] = claims[2 * c + 1];
                    found += !(word & bit);
                    visited[v >> 5] = word | bit;
                }
                uint at = found ? atomic_add(&counters[TAIL], found) : 0;
                edges += append(&round, found, parent, offsets, next + at);
            }
        }
    }
    if (edges) atomic_add(&counters[EDGES], edges);
}

// Eight bytes of the mask are tested at once, since most are zero.
__kernel void tgm(__global uchar *restrict mask_a, __global uchar *restrict mask_b, uint padded, TOP_DOWN_PARAMETERS,
                  __global uint *restrict pieces, uint most_pieces, uint launch, uint launches, STEP_PARAMETERS, TARGET_PARAMETERS) {
    __global const uint *from = slot_before(all_counters, slot);
    bool runs = applies(from, IS_MASK, guards, guard);
    uint state = from[STATE];
    open_level(all_counters, slot, runs, state ^ FLIP_MASK);
    if (!runs) return;
    volatile __global uint *counters = slot_of(all_counters, slot);
    __global uchar *mask = state & FLIP_MASK ? mask_b : mask_a;
    __global uchar *next_mask = state & FLIP_MASK ? mask_a : mask_b;
    volatile __global uint *visited = state & FLIP_BITMAP ? visited_b : visited_a;
    uint found = 0, edges = 0, chunks = padded / 1024 + (padded % 1024 != 0);
    uint start = share(chunks, launch, launches) * 1024, all_end = min(share(chunks, launch + 1, launches) * 1024, padded);
    for (;;) {
        uint begin = start + atomic_add(&counters[HEAD], 1024);
        if (begin >= all_end) break;
        uint end = min(begin + 1024, all_end);
        for (uint first = begin; first < end; first += 8) {
            __global ulong *eight = (__global ulong *)(mask + first);
            if (!*eight) continue;
            for (uint u = first; u < first + 8; u++) {
                if (!mask[u]) continue;
                uint stop = offsets[u + 1], name = original(to_original, u);
                for (uint arc = offsets[u]; arc < stop; arc++) {
                    uint v = target(arc, TARGET_ARGUMENTS);
                    if (visit(visited, v)) {
                        parent[v] = name;
                        next_mask[v] = 1;
                        found++;
                        edges += offsets[v + 1] - offsets[v];
                    }
                }
            }
            *eight = 0;
        }
    }
    atomic_add(&counters[TAIL], found);
    atomic_add(&counters[EDGES], edges);
}

#else

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

#endif

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
    __local uint tail, edges, expanded;
#if GROUP > 1
    __local uint longs, lists[GROUP];
#else
    __local Round round;
#endif
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
#if GROUP == 1
        bool by_rounds = sum / SHORT_LISTS < len;
        sum = 0;
        for (uint first = 0; by_rounds && first < len; first += ROUND) {
            uint count = min(len - first, (uint)ROUND);
            begin_round(&round, QUEUE(state) + first, count, offsets, to_original, TARGET_ARGUMENTS);
            while (round.done < count) {
                uint seem = look(&round, count, BITMAP(state), TARGET_ARGUMENTS), found = claim(&round, seem, BITMAP(state));
                sum += append(&round, found, parent, offsets, OTHER_QUEUE(state) + tail);
                tail += found;
            }
        }
        for (uint i = 0; !by_rounds && i < len; i++) {
            uint u = QUEUE(state)[i];
            WALK(u, 0, 1);
        }
#else
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
#endif
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
