// The frontier from one form to another: queue, difference of two bitmaps, mask of bytes. Compaction is by prefix sums: a
// group reserves its part of the queue with one atomic.

// Writes `bits` of word `w` to the queue from `at` on.
static void write_bits(__global uint *queue, uint at, uint w, uint bits) {
    for (; bits; bits &= bits - 1) queue[at++] = w * 32 + 31 - clz(bits & -bits);
}

#if GROUP == 1
#define WORDS_PER_ITEM 64
#define PLACE(count, at) uint at = atomic_add(&counters[TAIL], count)
#else
#define WORDS_PER_ITEM 1
#define PLACE(count, at) \
    __local uint sums[GROUP], group_at; \
    sums[get_local_id(0)] = count; \
    scan(sums); \
    if (get_local_id(0) == GROUP - 1) group_at = sums[GROUP - 1] ? atomic_add(&counters[TAIL], sums[GROUP - 1]) : 0; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    uint at = group_at + sums[get_local_id(0)] - count
#endif

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void bitmap_to_queue(__global const uint *restrict now, __global const uint *restrict before, uint words,
                              __global uint *restrict queue, volatile __global uint *all_counters, uint slot) {
    open_slot((__global uint *)all_counters, slot);
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint first = get_global_id(0) * WORDS_PER_ITEM, end = min(first + WORDS_PER_ITEM, words), count = 0;
    for (uint w = first; w < end; w++) count += popcount(now[w] & ~before[w]);
    PLACE(count, at);
    for (uint w = first; w < end; w++) {
        uint bits = now[w] & ~before[w];
        write_bits(queue, at, w, bits);
        at += popcount(bits);
    }
}

// The mask is cleared on the way. Each item takes WORDS_PER_ITEM times four vertices.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void mask_to_queue(__global uint *restrict mask, uint words, __global uint *restrict queue,
                            volatile __global uint *all_counters, uint slot) {
    open_slot((__global uint *)all_counters, slot);
    volatile __global uint *counters = all_counters + slot * SLOT;
    uint first = get_global_id(0) * WORDS_PER_ITEM, end = min(first + WORDS_PER_ITEM, words), count = 0;
    for (uint w = first; w < end; w++) count += popcount(mask[w]);
    PLACE(count, at);
    for (uint w = first; w < end; w++) {
        uint four = mask[w];
        if (!four) continue;
        mask[w] = 0;
        // A byte is 0 or 1.
        for (uint i = 0; i < 4; i++)
            if (four >> (8 * i) & 1) queue[at++] = w * 4 + i;
    }
}

__kernel void queue_to_mask(__global const uint *restrict queue, uint len, __global uchar *restrict mask,
                            __global uint *restrict counters, uint slot) {
    open_slot(counters, slot);
    for (uint i = get_global_id(0); i < len; i += get_global_size(0)) mask[queue[i]] = 1;
}

__kernel void bitmap_to_mask(__global const uint *restrict now, __global const uint *restrict before, uint words,
                             __global uchar *restrict mask, __global uint *restrict counters, uint slot) {
    open_slot(counters, slot);
    for (uint w = get_global_id(0); w < words; w += get_global_size(0))
        for (uint bits = now[w] & ~before[w]; bits; bits &= bits - 1) mask[w * 32 + 31 - clz(bits & -bits)] = 1;
}
