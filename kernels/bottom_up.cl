// BG and BGC: unvisited vertices look for a neighbour in the frontier.
//
// As on the CPU, an unvisited vertex that has a visited neighbour has it in the frontier, so the visited bitmap as it
// stood when the level began is asked, and the next one is written beside it. A vertex asks its first neighbours column
// by column, where the items of a group read side by side, and only then opens its list. BGC copies the bits of the first
// vertices, those of highest degree, to local memory (Zhang et al. 2018, section 4.2).

#if COLUMNS == 4
#define COLUMN_PARAMETERS __global const uint *column0, __global const uint *column1, \
    __global const uint *column2, __global const uint *column3, __global const uint *name0, \
    __global const uint *name1, __global const uint *name2, __global const uint *name3
#define COLUMN_ARGUMENTS column0, column1, column2, column3, name0, name1, name2, name3
#elif COLUMNS == 2
#define COLUMN_PARAMETERS __global const uint *column0, __global const uint *column1, \
    __global const uint *name0, __global const uint *name1
#define COLUMN_ARGUMENTS column0, column1, name0, name1
#else
#define COLUMN_PARAMETERS __global const uint *column0
#define COLUMN_ARGUMENTS column0
#endif

// A visited bit, from local memory where the vertex is among the first 32 * `cached`.
static uint is_visited(__global const uint *visited, __local const uint *cache, uint cached, uint v) {
    return (v >> 5 < cached ? cache[v >> 5] : visited[v >> 5]) >> (v & 31) & 1;
}

// A frontier vertex on v's list behind the columns, by its original number, or NONE.
static uint search_list(uint v, __global const uint *visited, __local const uint *cache, uint cached, __global const uint *offsets,
                        __global const uint *to_original, TARGET_PARAMETERS) {
    uint end = offsets[v + 1];
    for (uint arc = offsets[v] + COLUMNS; arc < end; arc++) {
        uint u = target(arc, TARGET_ARGUMENTS);
        if (is_visited(visited, cache, cached, u)) return original(to_original, u);
    }
    return NONE;
}

#if GROUP == 1

// One column for 32 vertices. Written for compilers that turn it into gathers.
static uint ask_column(__global const uint *column, __global const uint *visited) {
    uint hits = 0;
    for (uint i = 0; i < 32; i++) hits |= has_bit(visited, column[i]) << i;
    return hits;
}

static void adopt(uint hits, __global const uint *names, __global uint *parent) {
    for (; hits; hits &= hits - 1) {
        uint i = 31 - clz(hits & -hits);
        parent[i] = names[i];
    }
}

static void bottom_up(__global const uint *visited, __global uint *next, __global uint *parent,
                      __global const uint *offsets, __global const uint *offsets_out,
                      __global const uint *to_original, uint first, uint end,
                      volatile __global uint *counters, __local const uint *cache, uint cached, COLUMN_PARAMETERS, TARGET_PARAMETERS) {
    uint found = 0, edges = 0;
    for (;;) {
        uint begin = first + atomic_add(&counters[HEAD], 256);
        if (begin >= end) break;
        uint stop = min(begin + 256, end);
        for (uint w = begin; w < stop; w++) {
            uint word = visited[w], asking = ~word;
            if (!asking) {
                next[w] = word;
                continue;
            }
            uint base = w * 32, hits;
#if COLUMNS > 0
            hits = ask_column(column0 + base, visited) & asking;
            adopt(hits, name0 + base, parent + base);
            asking &= ~hits;
            if (asking) {
                hits = ask_column(column1 + base, visited) & asking;
                adopt(hits, name1 + base, parent + base);
                asking &= ~hits;
            }
#endif
#if COLUMNS > 2
            if (asking) {
                hits = ask_column(column2 + base, visited) & asking;
                adopt(hits, name2 + base, parent + base);
                asking &= ~hits;
            }
            if (asking) {
                hits = ask_column(column3 + base, visited) & asking;
                adopt(hits, name3 + base, parent + base);
                asking &= ~hits;
            }
#endif
            for (uint open = asking; open; open &= open - 1) {
                uint v = base + 31 - clz(open & -open);
                uint name = search_list(v, visited, cache, cached, offsets, to_original, TARGET_ARGUMENTS);
                if (name != NONE) {
                    parent[v] = name;
                    asking &= ~(1u << (v & 31));
                }
            }
            next[w] = ~asking;
            for (uint new = ~asking & ~word; new; new &= new - 1) {
                uint v = base + 31 - clz(new & -new);
                edges += offsets_out[v + 1] - offsets_out[v];
                found++;
            }
        }
    }
    atomic_add(&counters[FOUND], found);
    atomic_add(&counters[EDGES], edges);
}

#else

static void bottom_up(__global const uint *visited, __global uint *next, __global uint *parent,
                      __global const uint *offsets, __global const uint *offsets_out,
                      __global const uint *to_original, uint first, uint end,
                      volatile __global uint *counters, __local const uint *cache, uint cached, __local uint *words,
                      __local uint *sums, COLUMN_PARAMETERS, TARGET_PARAMETERS) {
    uint me = get_local_id(0), found = 0, edges = 0;
    if (me < 2) sums[me] = 0;
    for (uint base = first * 32 + get_group_id(0) * GROUP; base < end * 32; base += get_num_groups(0) * GROUP) {
        uint v = base + me;
        if (me < GROUP / 32) words[me] = base / 32 + me < end ? visited[base / 32 + me] : NONE;
        barrier(CLK_LOCAL_MEM_FENCE);
        bool open = !(words[me >> 5] >> (me & 31) & 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (open) {
            uint name = NONE;
#if COLUMNS > 0
            if (is_visited(visited, cache, cached, column0[v])) name = name0[v];
            else if (is_visited(visited, cache, cached, column1[v])) name = name1[v];
            else
#endif
#if COLUMNS > 2
            if (is_visited(visited, cache, cached, column2[v])) name = name2[v];
            else if (is_visited(visited, cache, cached, column3[v])) name = name3[v];
            else
#endif
            name = search_list(v, visited, cache, cached, offsets, to_original, TARGET_ARGUMENTS);
            if (name != NONE) {
                parent[v] = name;
                atomic_or(&words[me >> 5], 1u << (me & 31));
                found++;
                edges += offsets_out[v + 1] - offsets_out[v];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < GROUP / 32 && base / 32 + me < end) next[base / 32 + me] = words[me];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (found) {
        atomic_add(&sums[0], found);
        atomic_add(&sums[1], edges);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0 && sums[0]) {
        atomic_add(&counters[FOUND], sums[0]);
        atomic_add(&counters[EDGES], sums[1]);
    }
}

#endif

#if GROUP == 1
#define SCRATCH_DECLARATION
#define SCRATCH
#else
#define SCRATCH_DECLARATION __local uint words[GROUP / 32], sums[2];
#define SCRATCH words, sums,
#endif

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void bg(__global const uint *restrict visited, __global uint *restrict next, __global uint *restrict parent,
                 __global const uint *restrict offsets, __global const uint *restrict offsets_out,
                 __global const uint *restrict to_original, uint first, uint end, __global uint *all_counters, uint slot,
                 COLUMN_PARAMETERS, TARGET_PARAMETERS) {
    SCRATCH_DECLARATION
    open_slot(all_counters, slot);
    bottom_up(visited, next, parent, offsets, offsets_out, to_original, first, end, all_counters + slot * SLOT, 0, 0,
              SCRATCH COLUMN_ARGUMENTS, TARGET_ARGUMENTS);
}

// `cache` has room for `cached` words.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void bgc(__global const uint *restrict visited, __global uint *restrict next, __global uint *restrict parent,
                  __global const uint *restrict offsets, __global const uint *restrict offsets_out,
                  __global const uint *restrict to_original, uint first, uint end, __global uint *all_counters, uint slot,
                  __local uint *cache, uint cached, COLUMN_PARAMETERS, TARGET_PARAMETERS) {
    SCRATCH_DECLARATION
    open_slot(all_counters, slot);
    for (uint w = get_local_id(0); w < cached; w += GROUP) cache[w] = visited[w];
    barrier(CLK_LOCAL_MEM_FENCE);
    bottom_up(visited, next, parent, offsets, offsets_out, to_original, first, end, all_counters + slot * SLOT, cache, cached,
              SCRATCH COLUMN_ARGUMENTS, TARGET_ARGUMENTS);
}

// Looks at a few unvisited vertices (PLACES tried by each of GROUP * groups items): how many neighbours each would look at.
// FOUND counts the vertices, EXTRA the neighbours.
__kernel void sample(__global const uint *restrict visited, __global const uint *restrict offsets, uint vertices, uint places,
                     uint most_probes, volatile __global uint *all_counters, uint slot, TARGET_PARAMETERS) {
    open_slot((__global uint *)all_counters, slot);
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint sampled = 0, probes = 0;
    for (uint i = get_global_id(0); i < places; i += get_global_size(0)) {
        // Multiples of the golden ratio are spread evenly, whatever the order of the vertices means.
        uint v = mul_hi((i + 1) * 0x9e3779b9u, vertices);
        uint begin = offsets[v], end = min(offsets[v + 1], offsets[v] + most_probes);
        if (has_bit(visited, v) || begin == end) continue;
        uint arc = begin;
        while (arc < end && !has_bit(visited, target(arc, TARGET_ARGUMENTS))) arc++;
        probes += min(arc + 1, end) - begin;
        sampled++;
    }
    if (sampled) {
        atomic_add(&counters[FOUND], sampled);
        atomic_add(&counters[EXTRA], probes);
    }
}
