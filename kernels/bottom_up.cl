// BG and BGC: unvisited vertices look for a neighbour in the frontier.
//
// As on the CPU, a visited neighbour of an unvisited vertex is in the frontier. So a level tests the visited bitmap as it was when the
// level began, and writes the next bitmap to another array. A vertex tests its first neighbours column by column, which the items of a
// group read side by side, and only then searches its list. BGC copies the bits of the first vertices, those of highest degree, to local
// memory (Zhang et al. 2018, section 4.2).
//
// `own` is the visited bitmap of the vertices that look for a parent, by row: `visited` itself if every vertex has a row. A rank of a
// cluster has rows for its own vertices only (src/cluster), while neighbours are vertices of all ranks.

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

// The visited bit of `v`, from local memory if `v` is among the first 32 * `cached` vertices.
static uint is_visited(__global const uint *visited, __local const uint *cache, uint cached, uint v) {
    return (v >> 5 < cached ? cache[v >> 5] : visited[v >> 5]) >> (v & 31) & 1;
}

// The original number of the first frontier vertex on a list, behind the columns, or NONE. The list begins at arc `begin` and has `arcs`
// arcs.
static uint search_list(uint begin, uint arcs, __global const uint *visited, __local const uint *cache, uint cached,
                        __global const uint *to_original, TARGET_PARAMETERS) {
    for (uint arc = COLUMNS; arc < arcs; arc++) {
        uint u = target(begin + arc, TARGET_ARGUMENTS);
        if (is_visited(visited, cache, cached, u)) return original(to_original, u);
    }
    return NONE;
}

// Arcs behind the columns that an item searches alone; all items of the group search the rest of a longer list.
#define ALONE_BOTTOM_UP 64

// Local memory of a group.
typedef struct {
    uint words[GROUP / 32], sums[2];
    // Items whose lists are longer than that, their number, and the parent found on one of these lists.
    uint lists[GROUP], longs, name;
} Scratch;

static void bottom_up(__global const uint *visited, __global const uint *own, __global uint *next, __global uint *parent,
                      __global const uint *offsets, __global const uint *offsets_out,
                      __global const uint *to_original, uint first, uint end,
                      volatile __global uint *counters, __local const uint *cache, uint cached, __local Scratch *scratch,
                      COLUMN_PARAMETERS, TARGET_PARAMETERS) {
    __local uint *words = scratch->words, *sums = scratch->sums;
    uint me = get_local_id(0), found = 0, edges = 0;
    if (me < 2) sums[me] = 0;
    for (uint word = first + get_group_id(0) * (GROUP / 32); word < end; word += get_num_groups(0) * (GROUP / 32)) {
        uint v = word * 32 + me;
        if (me < GROUP / 32) words[me] = me < end - word ? own[word + me] : NONE;
        if (me == 0) scratch->longs = 0;
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
            {
                uint begin = offsets[v], arcs = offsets[v + 1] - begin;
                name = search_list(begin, min(arcs, (uint)(COLUMNS + ALONE_BOTTOM_UP)), visited, cache, cached, to_original, TARGET_ARGUMENTS);
                if (name == NONE && arcs > COLUMNS + ALONE_BOTTOM_UP) scratch->lists[atomic_inc(&scratch->longs)] = me;
            }
            if (name != NONE) {
                parent[v] = name;
                atomic_or(&words[me >> 5], 1u << (me & 31));
                found++;
                edges += offsets_out[v + 1] - offsets_out[v];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // All items search the rest of the longer lists, one list after another.
        uint longs = scratch->longs;
        for (uint i = 0; i < longs; i++) {
            uint item = scratch->lists[i], u = word * 32 + item, begin = offsets[u], arcs = offsets[u + 1] - begin;
            uint rest = arcs - COLUMNS - ALONE_BOTTOM_UP, rounds = rest / GROUP + (rest % GROUP != 0), name = NONE;
            if (me == 0) scratch->name = NONE;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint round = 0; round < rounds && name == NONE; round++) {
                uint skipped = round * GROUP;
                if (me < rest - skipped) {
                    uint w = target(begin + COLUMNS + ALONE_BOTTOM_UP + skipped + me, TARGET_ARGUMENTS);
                    if (is_visited(visited, cache, cached, w)) atomic_min(&scratch->name, original(to_original, w));
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                name = scratch->name;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (me == 0 && name != NONE) {
                parent[u] = name;
                atomic_or(&words[item >> 5], 1u << (item & 31));
                found++;
                edges += offsets_out[u + 1] - offsets_out[u];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < GROUP / 32 && me < end - word) next[word + me] = words[me];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (found) {
        atomic_add(&sums[0], found);
        atomic_add(&sums[1], edges);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0 && sums[0]) {
        atomic_add(&counters[TAIL], sums[0]);
        atomic_add(&counters[EDGES], sums[1]);
    }
}

// Opens the slot of a bottom-up step. The frontier may have any form, since its vertices are marked as visited, and is a bitmap afterwards.
// The host knows which of the two bitmaps is the visited one, because bottom-up steps follow one another.
static bool open_bottom_up(__global uint *all_counters, uint slot, __global const uint *guards, uint guard) {
    __global const uint *from = slot_before(all_counters, slot);
    bool runs = applies(from, IS_QUEUE | IS_BITMAP | IS_MASK, guards, guard);
    open_level(all_counters, slot, runs, ((from[STATE] & ~(IS_QUEUE | IS_MASK)) | IS_BITMAP) ^ FLIP_BITMAP);
    return runs;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void bg(__global const uint *restrict visited, __global const uint *restrict own, __global uint *restrict next,
                 __global uint *restrict parent,
                 __global const uint *restrict offsets, __global const uint *restrict offsets_out,
                 __global const uint *restrict to_original, uint first, uint end, STEP_PARAMETERS,
                 COLUMN_PARAMETERS, TARGET_PARAMETERS) {
    __local Scratch scratch;
    bool runs = open_bottom_up(all_counters, slot, guards, guard);
    bottom_up(visited, own, next, parent, offsets, offsets_out, to_original, first, runs ? end : first, slot_of(all_counters, slot), 0, 0,
              &scratch, COLUMN_ARGUMENTS, TARGET_ARGUMENTS);
}

// `cache` has room for `cached` words.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void bgc(__global const uint *restrict visited, __global const uint *restrict own, __global uint *restrict next,
                  __global uint *restrict parent,
                  __global const uint *restrict offsets, __global const uint *restrict offsets_out,
                  __global const uint *restrict to_original, uint first, uint end, STEP_PARAMETERS,
                  __local uint *cache, uint cached, COLUMN_PARAMETERS, TARGET_PARAMETERS) {
    __local Scratch scratch;
    if (!open_bottom_up(all_counters, slot, guards, guard)) cached = 0, end = first;
    for (uint w = get_local_id(0); w < cached; w += GROUP) cache[w] = visited[w];
    barrier(CLK_LOCAL_MEM_FENCE);
    bottom_up(visited, own, next, parent, offsets, offsets_out, to_original, first, end, slot_of(all_counters, slot), cache, cached,
              &scratch, COLUMN_ARGUMENTS, TARGET_ARGUMENTS);
}
