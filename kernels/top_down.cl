// TG and TGM: frontier vertices look for unvisited neighbours.
//
// Work is balanced by arcs: a group takes GROUP frontier vertices, sums their degrees up, and its items then go
// through all arcs of the batch side by side, each finding the vertex its arc belongs to by bisection. Vertices with HEAVY
// arcs or more are put off, and a second launch has all groups expand them together. Found vertices are collected in
// local memory and appended in bulk.

#if GROUP == 1

// A vertex found: into the item's own buffer, and from there to the queue when it is full.
#define PUSH(v) do { \
        collected[count++] = (v); \
        edges += offsets[(v) + 1] - offsets[v]; \
        if (count == NEXT) { \
            uint at = atomic_add(&counters[TAIL], NEXT); \
            for (uint c = 0; c < NEXT; c++) next[at + c] = collected[c]; \
            count = 0; \
        } \
    } while (0)

__kernel void tg(__global const uint *restrict queue, uint len, __global const uint *restrict offsets,
                 __global const uint *restrict to_original, volatile __global uint *visited, __global uint *restrict parent,
                 __global uint *restrict next, __global uint *restrict heavy, volatile __global uint *all_counters, uint slot,
                 TARGET_PARAMETERS) {
    open_slot((__global uint *)all_counters, slot);
    volatile __global uint *counters = all_counters + slot * SLOT;
    // Local rather than private: not every driver keeps a private array of this size right.
    __local uint collected[NEXT];
    uint count = 0, edges = 0;
    // Few at a time near the end of a frontier, so that all items end together.
    uint grain = clamp(len / (16 * (uint)get_global_size(0)), 1u, 64u);
    for (;;) {
        uint begin = atomic_add(&counters[HEAD], grain);
        if (begin >= len) break;
        uint end = min(begin + grain, len);
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
    uint at = atomic_add(&counters[TAIL], count);
    for (uint c = 0; c < count; c++) next[at + c] = collected[c];
    atomic_add(&counters[EDGES], edges);
}

// Eight bytes of the mask are looked at together: most are zero.
__kernel void tgm(__global uchar *restrict mask, uint padded, __global const uint *restrict offsets,
                  __global const uint *restrict to_original, volatile __global uint *visited, __global uint *restrict parent,
                  __global uchar *restrict next_mask, __global uint *restrict heavy, volatile __global uint *all_counters, uint slot,
                  TARGET_PARAMETERS) {
    open_slot((__global uint *)all_counters, slot);
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint found = 0, edges = 0;
    for (;;) {
        uint begin = atomic_add(&counters[HEAD], 1024);
        if (begin >= padded) break;
        uint end = min(begin + 1024, padded);
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
    atomic_add(&counters[FOUND], found);
    atomic_add(&counters[EDGES], edges);
}

#else

// A group's found vertices.
typedef struct {
    uint vertices[NEXT];
    uint count, base, edges;
} Found;

// Appends what the group has collected to the queue. All items must call it.
static void flush(__local Found *found, __global uint *next, volatile __global uint *counters, __global const uint *offsets) {
    uint me = get_local_id(0), edges = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint count = found->count;
    if (me == 0 && count) found->base = atomic_add(&counters[TAIL], count);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < count; i += GROUP) {
        uint v = found->vertices[i];
        next[found->base + i] = v;
        edges += offsets[v + 1] - offsets[v];
    }
    if (edges) atomic_add(&found->edges, edges);
    if (me == 0) found->count = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
}

// A batch of frontier vertices, one per item.
typedef struct {
    uint begin[GROUP], name[GROUP], ends[GROUP];
} Batch;

// The items' vertices (`degree` 0: none) become a batch. All items must call it.
static void fill_batch(__local Batch *batch, uint begin, uint degree, uint name) {
    uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    batch->begin[me] = begin;
    batch->name[me] = name;
    batch->ends[me] = degree;
    scan(batch->ends);
}

// Which vertex of the batch the batch's `arc`-th arc belongs to.
static uint owner(__local const Batch *batch, uint arc) {
    uint low = 0, high = GROUP - 1;
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

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tg(__global const uint *restrict queue, uint len, __global const uint *restrict offsets,
                 __global const uint *restrict to_original, volatile __global uint *visited, __global uint *restrict parent,
                 __global uint *restrict next, __global uint *restrict heavy, volatile __global uint *all_counters, uint slot,
                 TARGET_PARAMETERS) {
    __local Found found;
    __local Batch batch;
    open_slot((__global uint *)all_counters, slot);
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint me = get_local_id(0), rounds = 0;
    if (me == 0) found.count = found.edges = 0;
    for (uint base = get_group_id(0) * GROUP; base < len; base += get_num_groups(0) * GROUP) {
        uint begin = 0, degree = 0, name = 0;
        if (base + me < len) {
            uint u = queue[base + me];
            begin = offsets[u];
            degree = offsets[u + 1] - begin;
            name = original(to_original, u);
#if HEAVY
            if (degree >= HEAVY) {
                heavy[atomic_inc(&counters[HEAVIES])] = u;
                degree = 0;
            }
#endif
        }
        fill_batch(&batch, begin, degree, name);
        uint total = batch.ends[GROUP - 1];
        for (uint first = 0; first < total; first += GROUP) {
            // Each round finds at most GROUP vertices.
            if (++rounds == NEXT / GROUP) {
                flush(&found, next, counters, offsets);
                rounds = 1;
            }
            if (first + me < total) {
                uint u = owner(&batch, first + me);
                uint v = target(arc_of(&batch, u, first + me), TARGET_ARGUMENTS);
                if (visit(visited, v)) {
                    parent[v] = batch.name[u];
                    found.vertices[atomic_inc(&found.count)] = v;
                }
            }
        }
    }
    flush(&found, next, counters, offsets);
    if (me == 0) atomic_add(&counters[EDGES], found.edges);
}

// The vertices that TG put off, each by all groups together.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tg_heavy(__global const uint *restrict heavy, __global const uint *restrict offsets,
                       __global const uint *restrict to_original, volatile __global uint *visited, __global uint *restrict parent,
                       __global uint *restrict next, volatile __global uint *all_counters, uint slot, TARGET_PARAMETERS) {
    __local Found found;
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint me = get_local_id(0), rounds = 0, heavies = counters[HEAVIES];
    if (me == 0) found.count = found.edges = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < heavies; i++) {
        uint u = heavy[i];
        uint end = offsets[u + 1], name = original(to_original, u);
        for (uint first = offsets[u] + get_group_id(0) * GROUP; first < end; first += get_num_groups(0) * GROUP) {
            if (++rounds == NEXT / GROUP) {
                flush(&found, next, counters, offsets);
                rounds = 1;
            }
            if (first + me < end) {
                uint v = target(first + me, TARGET_ARGUMENTS);
                if (visit(visited, v)) {
                    parent[v] = name;
                    found.vertices[atomic_inc(&found.count)] = v;
                }
            }
        }
    }
    flush(&found, next, counters, offsets);
    if (me == 0) atomic_add(&counters[EDGES], found.edges);
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tgm(__global uchar *restrict mask, uint padded, __global const uint *restrict offsets,
                  __global const uint *restrict to_original, volatile __global uint *visited, __global uint *restrict parent,
                  __global uchar *restrict next_mask, __global uint *restrict heavy, volatile __global uint *all_counters, uint slot,
                  TARGET_PARAMETERS) {
    __local Batch batch;
    __local uint any[2], sum_found, sum_edges;
    open_slot((__global uint *)all_counters, slot);
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint me = get_local_id(0), found = 0, edges = 0, turn = 0;
    if (me == 0) any[0] = any[1] = sum_found = sum_edges = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint base = get_group_id(0) * GROUP; base < padded; base += get_num_groups(0) * GROUP, turn ^= 1) {
        uint u = base + me;
        bool mine = u < padded && mask[u];
        if (mine) {
            any[turn] = 1;
            mask[u] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // Two flags in turn: the other one is cleared while nobody looks at it.
        if (me == 0) any[turn ^ 1] = 0;
        if (!any[turn]) {
            barrier(CLK_LOCAL_MEM_FENCE);
            continue;
        }
        uint begin = mine ? offsets[u] : 0, degree = mine ? offsets[u + 1] - begin : 0;
#if HEAVY
        if (degree >= HEAVY) {
            heavy[atomic_inc(&counters[HEAVIES])] = u;
            degree = 0;
        }
#endif
        fill_batch(&batch, begin, degree, mine ? original(to_original, u) : 0);
        uint total = batch.ends[GROUP - 1];
        for (uint arc = me; arc < total; arc += GROUP) {
            uint from = owner(&batch, arc);
            uint v = target(arc_of(&batch, from, arc), TARGET_ARGUMENTS);
            if (visit(visited, v)) {
                parent[v] = batch.name[from];
                next_mask[v] = 1;
                found++;
                edges += offsets[v + 1] - offsets[v];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (found) {
        atomic_add(&sum_found, found);
        atomic_add(&sum_edges, edges);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        atomic_add(&counters[FOUND], sum_found);
        atomic_add(&counters[EDGES], sum_edges);
    }
}

// The vertices that TGM put off.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tgm_heavy(__global const uint *restrict heavy, __global const uint *restrict offsets,
                        __global const uint *restrict to_original, volatile __global uint *visited, __global uint *restrict parent,
                        __global uchar *restrict next_mask, volatile __global uint *all_counters, uint slot, TARGET_PARAMETERS) {
    __local uint sum_found, sum_edges;
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint me = get_local_id(0), found = 0, edges = 0, heavies = counters[HEAVIES];
    if (me == 0) sum_found = sum_edges = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < heavies; i++) {
        uint u = heavy[i];
        uint end = offsets[u + 1], name = original(to_original, u);
        for (uint arc = offsets[u] + get_global_id(0); arc < end; arc += get_global_size(0)) {
            uint v = target(arc, TARGET_ARGUMENTS);
            if (visit(visited, v)) {
                parent[v] = name;
                next_mask[v] = 1;
                found++;
                edges += offsets[v + 1] - offsets[v];
            }
        }
    }
    if (found) {
        atomic_add(&sum_found, found);
        atomic_add(&sum_edges, edges);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        atomic_add(&counters[FOUND], sum_found);
        atomic_add(&counters[EDGES], sum_edges);
    }
}

#endif

// Levels too small to share, one after another in one launch of ONE group: within a group a barrier is always safe, while
// OpenCL promises nothing about groups waiting for each other. Ends with an empty frontier, one of `most` arcs or more,
// or after `most_levels`. The last frontier is in `queue` after an even number of levels, else in `next`.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void tg_run(__global uint *queue, uint len, __global const uint *restrict offsets, __global const uint *restrict to_original,
                     volatile __global uint *visited, __global uint *restrict parent, __global uint *next, uint most, uint most_levels,
                     __global uint *all_counters, uint slot, TARGET_PARAMETERS) {
    __local uint tail, edges;
    open_slot(all_counters, slot);
    uint me = get_local_id(0), levels = 0, found = 0, expanded = 0, before;
    for (;;) {
        if (me == 0) tail = edges = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint sum = 0;
        for (uint i = me; i < len; i += GROUP) {
            uint u = queue[i];
            uint stop = offsets[u + 1], name = original(to_original, u);
            for (uint arc = offsets[u]; arc < stop; arc++) {
                uint v = target(arc, TARGET_ARGUMENTS);
                if (visit(visited, v)) {
                    parent[v] = name;
                    next[atomic_inc(&tail)] = v;
                    sum += offsets[v + 1] - offsets[v];
                }
            }
        }
        if (sum) atomic_add(&edges, sum);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        before = len;
        len = tail;
        sum = edges;
        levels++;
        found += len;
        __global uint *swapped = queue;
        queue = next;
        next = swapped;
        // Nobody resets the counters before everybody has read them.
        barrier(CLK_LOCAL_MEM_FENCE);
        if (len == 0 || sum >= most || levels == most_levels) {
            if (me == 0) {
                __global uint *counters = all_counters + slot * SLOT;
                counters[TAIL] = len;
                counters[FOUND] = found;
                counters[EDGES] = sum;
                counters[LEVELS] = levels;
                counters[EXPANDED] = expanded;
                counters[EXTRA] = before;
            }
            return;
        }
        expanded += sum;
    }
}
