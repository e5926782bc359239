// Which share of all hubs the frontier holds: a look at a few vertices. A hub has more than `mean` arcs.
//
// Of a queue its own entries are looked at: FOUND counts them, EXTRA the hubs among them. A bitmap or a mask can be asked for any
// vertex: FOUND counts the hubs met among the vertices looked at, EXTRA those of them that are in the frontier.

// The i-th of `places` places among `all` (never more than `all`): every one where there are as many, else spread evenly by multiples
// of the golden ratio.
static uint place(uint i, uint places, uint all) {
    return places < all ? mul_hi((i + 1) * 0x9e3779b9u, all) : i;
}

static bool is_hub(__global const uint *offsets, uint v, uint mean) {
    return offsets[v + 1] - offsets[v] > mean;
}

static void count(volatile __global uint *counters, uint found, uint extra) {
    if (found) atomic_add(&counters[FOUND], found);
    if (extra) atomic_add(&counters[EXTRA], extra);
}

__kernel void hubs_in_queue(__global const uint *restrict queue, uint len, __global const uint *restrict offsets, uint mean, uint places,
                            volatile __global uint *all_counters, uint slot) {
    open_slot((__global uint *)all_counters, slot);
    uint looked = 0, hubs = 0;
    for (uint i = get_global_id(0); i < places; i += get_global_size(0)) {
        looked++;
        hubs += is_hub(offsets, queue[place(i, places, len)], mean);
    }
    count(all_counters + slot * SLOT, looked, hubs);
}

__kernel void hubs_in_bitmap(__global const uint *restrict now, __global const uint *restrict before,
                             __global const uint *restrict offsets, uint vertices, uint mean, uint places,
                             volatile __global uint *all_counters, uint slot) {
    open_slot((__global uint *)all_counters, slot);
    uint hubs = 0, in = 0;
    for (uint i = get_global_id(0); i < places; i += get_global_size(0)) {
        uint v = place(i, places, vertices);
        if (!is_hub(offsets, v, mean)) continue;
        hubs++;
        in += has_bit(now, v) & ~has_bit(before, v);
    }
    count(all_counters + slot * SLOT, hubs, in);
}

__kernel void hubs_in_mask(__global const uchar *restrict mask, __global const uint *restrict offsets, uint vertices, uint mean,
                           uint places, volatile __global uint *all_counters, uint slot) {
    open_slot((__global uint *)all_counters, slot);
    uint hubs = 0, in = 0;
    for (uint i = get_global_id(0); i < places; i += get_global_size(0)) {
        uint v = place(i, places, vertices);
        if (!is_hub(offsets, v, mean)) continue;
        hubs++;
        in += mask[v];
    }
    count(all_counters + slot * SLOT, hubs, in);
}
