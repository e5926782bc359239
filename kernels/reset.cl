// The state before level 0: nobody has a parent but the root, and the bits of vertices that take no part are set.
__kernel void reset(__global uint *restrict parent, __global uint *restrict visited, __global const uint *restrict closed,
                    __global uint *restrict queue, __global uint *restrict counters, uint slot,
                    uint padded, uint root, uint root_original) {
    open_slot(counters, slot);
    for (uint v = get_global_id(0); v < padded; v += get_global_size(0)) parent[v] = v == root ? root_original : NONE;
    for (uint w = get_global_id(0); w < padded / 32; w += get_global_size(0))
        visited[w] = closed[w] | (w == root >> 5 ? 1u << (root & 31) : 0);
    if (get_global_id(0) == 0) queue[0] = root;
}

// Parents in the order of the original vertices.
__kernel void map_back(__global const uint *restrict place, __global const uint *restrict parent, __global uint *restrict mapped,
                       uint vertices) {
    for (uint v = get_global_id(0); v < vertices; v += get_global_size(0)) mapped[v] = parent[place[v]];
}

// For the asynchronous search: every vertex of the frontier remembers its level.
__kernel void stamp_queue(__global const uint *restrict queue, __global uint *restrict level_of, uint len, uint level) {
    for (uint i = get_global_id(0); i < len; i += get_global_size(0)) level_of[queue[i]] = level;
}

__kernel void stamp_bitmap(__global const uint *restrict now, __global const uint *restrict before, __global uint *restrict level_of,
                           uint words, uint level) {
    for (uint w = get_global_id(0); w < words; w += get_global_size(0))
        for (uint bits = now[w] & ~before[w]; bits; bits &= bits - 1) level_of[w * 32 + 31 - clz(bits & -bits)] = level;
}
