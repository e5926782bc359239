// Kernels for a level that the device shares with the CPU: one for the input of the device, and one for its results.

// Writes the words of the visited bitmap that changed since the device last had it: from entry `first` on, `changes` holds `count` pairs of
// place and value.
__kernel void apply_words(__global const uint *restrict changes, uint first, uint count, __global uint *restrict visited,
                          __global uint *restrict all_counters) {
    count_completion(all_counters);
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) visited[changes[first + 2 * i]] = changes[first + 2 * i + 1];
}

// Writes the parents of the vertices that the launch of `slot` found, in the order of these vertices.
__kernel void gather_parents(__global const uint *restrict found, __global const uint *restrict parent, __global uint *restrict gathered,
                             __global uint *restrict all_counters, uint slot) {
    count_completion(all_counters);
    uint len = all_counters[slot * SLOT + TAIL];
    for (uint i = get_global_id(0); i < len; i += get_global_size(0)) gathered[i] = parent[found[i]];
}
