// Conversions of the frontier from one form to another: queue, difference of two bitmaps, mask of bytes. Compaction uses prefix sums: a
// group reserves its part of the queue with one atomic.

// Writes `bits` of word `w` to the queue from `at` on.
static void write_bits(__global uint *queue, uint at, uint w, uint bits) {
    for (; bits; bits &= bits - 1) queue[at++] = w * 32 + 31 - clz(bits & -bits);
}

#define PLACE(count, at) \
    __local uint sums[GROUP], group_at; \
    uint group_first = get_group_id(0) * GROUP, lanes = runs && group_first < words ? min(words - group_first, (uint)GROUP) : 0; \
    sums[get_local_id(0)] = count; \
    scan(sums, lanes); \
    if (get_local_id(0) + 1 == lanes) group_at = sums[lanes - 1] ? atomic_add(&counters[TAIL], sums[lanes - 1]) : 0; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    uint at = group_at + sums[get_local_id(0)] - count

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void bitmap_to_queue(__global const uint *restrict visited_a, __global const uint *restrict visited_b, uint words,
                              __global uint *restrict queue_a, __global uint *restrict queue_b, STEP_PARAMETERS) {
    __global const uint *from = slot_before(all_counters, slot);
    bool runs = applies(from, IS_BITMAP, guards, guard);
    uint state = from[STATE];
    open_conversion(all_counters, slot, runs, (state & ~IS_BITMAP) | IS_QUEUE);
    volatile __global uint *counters = slot_of(all_counters, slot);
    __global const uint *now = state & FLIP_BITMAP ? visited_b : visited_a;
    __global const uint *before = state & FLIP_BITMAP ? visited_a : visited_b;
    __global uint *queue = state & FLIP_QUEUE ? queue_b : queue_a;
    uint w = get_global_id(0), bits = runs && w < words ? now[w] & ~before[w] : 0, count = popcount(bits);
    PLACE(count, at);
    write_bits(queue, at, w, bits);
}

// Turns a mask into a queue, and clears the mask. Each item takes four vertices.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void mask_to_queue(__global uint *restrict mask_a, __global uint *restrict mask_b, uint words,
                            __global uint *restrict queue_a, __global uint *restrict queue_b, STEP_PARAMETERS) {
    __global const uint *from = slot_before(all_counters, slot);
    bool runs = applies(from, IS_MASK, guards, guard);
    uint state = from[STATE];
    open_conversion(all_counters, slot, runs, (state & ~IS_MASK) | IS_QUEUE);
    volatile __global uint *counters = slot_of(all_counters, slot);
    __global uint *mask = state & FLIP_MASK ? mask_b : mask_a;
    __global uint *queue = state & FLIP_QUEUE ? queue_b : queue_a;
    uint w = get_global_id(0), four = runs && w < words ? mask[w] : 0, count = popcount(four);
    PLACE(count, at);
    if (four) mask[w] = 0;
    // A byte is 0 or 1.
    for (; four; four &= four - 1) queue[at++] = w * 4 + (31 - clz(four & -four)) / 8;
}

// Turns a queue or a bitmap into a mask.
__kernel void to_mask(__global const uint *restrict queue_a, __global const uint *restrict queue_b,
                      __global const uint *restrict visited_a, __global const uint *restrict visited_b, uint words,
                      __global uchar *restrict mask_a, __global uchar *restrict mask_b, STEP_PARAMETERS) {
    __global const uint *from = slot_before(all_counters, slot);
    bool runs = applies(from, IS_QUEUE | IS_BITMAP, guards, guard);
    uint state = from[STATE], len = from[TAIL];
    open_conversion(all_counters, slot, runs, (state & ~(IS_QUEUE | IS_BITMAP)) | IS_MASK);
    if (!runs) return;
    if (get_global_id(0) == 0) slot_of(all_counters, slot)[TAIL] = len;
    __global uchar *mask = state & FLIP_MASK ? mask_b : mask_a;
    if (state & IS_QUEUE) {
        __global const uint *queue = state & FLIP_QUEUE ? queue_b : queue_a;
        for (uint i = get_global_id(0); i < len; i += get_global_size(0)) mask[queue[i]] = 1;
    } else {
        __global const uint *now = state & FLIP_BITMAP ? visited_b : visited_a;
        __global const uint *before = state & FLIP_BITMAP ? visited_a : visited_b;
        for (uint w = get_global_id(0); w < words; w += get_global_size(0))
            for (uint bits = now[w] & ~before[w]; bits; bits &= bits - 1) mask[w * 32 + 31 - clz(bits & -bits)] = 1;
    }
}
