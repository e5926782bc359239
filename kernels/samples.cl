// Kernels that look at a few vertices in the state after the last step. They add their results to the slot of that step, which the host
// reads.

// Counts how many neighbours each unvisited vertex among `places` vertices would test. SAMPLED counts the vertices, PROBES the neighbours.
__kernel void sample(__global const uint *restrict visited_a, __global const uint *restrict visited_b, __global const uint *restrict offsets,
                     uint vertices, uint places, uint most_probes, __global uint *all_counters, uint slot, TARGET_PARAMETERS) {
    volatile __global uint *counters = slot_of(all_counters, slot);
    if (counters[TAIL] == 0) return;
    __global const uint *visited = counters[STATE] & FLIP_BITMAP ? visited_b : visited_a;
    uint sampled = 0, probes = 0;
    for (uint i = get_global_id(0); i < places; i += get_global_size(0)) {
        // Multiples of the golden ratio are spread evenly, whatever the order of the vertices.
        uint v = mul_hi((i + 1) * 0x9e3779b9u, vertices);
        uint begin = offsets[v], end = begin + min(offsets[v + 1] - begin, most_probes);
        if (has_bit(visited, v) || begin == end) continue;
        uint arc = begin;
        while (arc < end && !has_bit(visited, target(arc, TARGET_ARGUMENTS))) arc++;
        probes += min(arc + 1, end) - begin;
        sampled++;
    }
    if (sampled) {
        atomic_add(&counters[SAMPLED], sampled);
        atomic_add(&counters[PROBES], probes);
    }
}

// The i-th of `places` places among `all` (`places` is at most `all`): every place if both numbers are equal, else places spread evenly by
// multiples of the golden ratio.
static uint place(uint i, uint places, uint all) {
    return places < all ? mul_hi((i + 1) * 0x9e3779b9u, all) : i;
}

static bool is_hub(__global const uint *offsets, uint v, uint mean) {
    return offsets[v + 1] - offsets[v] > mean;
}

// Estimates which share of all hubs the frontier holds. A hub has more than `mean` arcs.
//
// In a queue the kernel tests entries: ASKED counts them, HUBS the hubs among them. In a bitmap or a mask it tests vertices of the whole
// graph: ASKED counts the hubs among them, HUBS those hubs that are in the frontier.
__kernel void sample_hubs(__global const uint *restrict queue_a, __global const uint *restrict queue_b, __global const uint *restrict visited_a,
                          __global const uint *restrict visited_b, __global const uchar *restrict mask_a,
                          __global const uchar *restrict mask_b, __global const uint *restrict offsets, uint vertices, uint mean,
                          uint most_places, __global uint *all_counters, uint slot) {
    volatile __global uint *counters = slot_of(all_counters, slot);
    uint len = counters[TAIL], state = counters[STATE];
    if (len == 0) return;
    __global const uint *queue = state & FLIP_QUEUE ? queue_b : queue_a;
    __global const uint *now = state & FLIP_BITMAP ? visited_b : visited_a;
    __global const uint *before = state & FLIP_BITMAP ? visited_a : visited_b;
    __global const uchar *mask = state & FLIP_MASK ? mask_b : mask_a;
    uint all = state & IS_QUEUE ? len : vertices, places = min(most_places, all), asked = 0, hubs = 0;
    for (uint i = get_global_id(0); i < places; i += get_global_size(0)) {
        uint v = place(i, places, all);
        if (state & IS_QUEUE) {
            asked++;
            hubs += is_hub(offsets, queue[v], mean);
        } else if (is_hub(offsets, v, mean)) {
            asked++;
            hubs += state & IS_MASK ? mask[v] : has_bit(now, v) & ~has_bit(before, v);
        }
    }
    if (asked) atomic_add(&counters[ASKED], asked);
    if (hubs) atomic_add(&counters[HUBS], hubs);
}
