// Kernels for the beginning and the end of a search. `reset` makes the state before level 0: no vertex but the root has a parent, and the
// bits of vertices that take no part are set. `write_slot` writes a slot as a whole, so what a failed search left there does not matter.
static void write_slot(__global uint *all_counters, uint slot, uint len, uint edges, uint visited_before, uint expanded, uint state) {
    __global uint *to = slot_of(all_counters, slot);
    for (uint i = get_global_id(0); i < SLOT; i += get_global_size(0))
        to[i] = i == TAIL ? len : i == EDGES ? edges : i == VISITED ? visited_before : i == EXPANDED ? expanded : i == STATE ? state : 0;
    clear_next_slot(all_counters, slot);
}

__kernel void reset(__global uint *restrict parent, __global uint *restrict visited, __global const uint *restrict excluded,
                    __global uint *restrict queue, __global uint *restrict all_counters, uint slot,
                    uint padded, uint root, uint root_original, uint degree) {
    write_slot(all_counters, slot, 1, degree, 0, 0, IS_QUEUE);
    for (uint v = get_global_id(0); v < padded; v += get_global_size(0)) parent[v] = v == root ? root_original : NONE;
    for (uint w = get_global_id(0); w < padded / 32; w += get_global_size(0))
        visited[w] = excluded[w] | (w == root >> 5 ? 1u << (root & 31) : 0);
    if (get_global_id(0) == 0) queue[0] = root;
}

// Gives the device the state of a search whose levels so far ran on the host.
__kernel void seed(__global uint *restrict all_counters, uint slot, uint len, uint edges, uint visited_before, uint expanded, uint state) {
    write_slot(all_counters, slot, len, edges, visited_before, expanded, state);
}

// Writes the parents in the order of the original vertices. Places from first_leaf on are those of leaves that were not searched: the
// parent of a leaf is its host, by the original number in `names`, if the host was reached.
__kernel void map_back(__global const uint *restrict place, __global const uint *restrict parent, __global uint *restrict mapped,
                       uint vertices, __global const uint *restrict hosts, __global const uint *restrict names, uint first_leaf,
                       uint leaf_root) {
    for (uint v = get_global_id(0); v < vertices; v += get_global_size(0)) {
        uint at = place[v];
        uint found = at < first_leaf ? parent[at] : parent[hosts[at - first_leaf]] == NONE ? NONE : names[at - first_leaf];
        mapped[v] = v == leaf_root ? v : found;
    }
}

// For the asynchronous search: stores the level of every frontier vertex.
__kernel void stamp_queue(__global const uint *restrict queue, __global uint *restrict level_of, uint len, uint level,
                          __global uint *restrict all_counters) {
    count_completion(all_counters);
    for (uint i = get_global_id(0); i < len; i += get_global_size(0)) level_of[queue[i]] = level;
}

__kernel void stamp_bitmap(__global const uint *restrict now, __global const uint *restrict before, __global uint *restrict level_of,
                           uint words, uint level, __global uint *restrict all_counters) {
    count_completion(all_counters);
    for (uint w = get_global_id(0); w < words; w += get_global_size(0))
        for (uint bits = now[w] & ~before[w]; bits; bits &= bits - 1) level_of[w * 32 + 31 - clz(bits & -bits)] = level;
}
