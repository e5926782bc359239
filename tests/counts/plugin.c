/* A plugin of QEMU's user emulation: counts the instructions of a program's first thread (others spin while they wait, on a quiet machine
 * longer than beside a load) and, with caches given, the lines that its loads and stores fetch into a first and a second cache (write-allocate, least recently used, physical addresses as the program's own).
 *
 *   qemu-aarch64 -plugin file=plugin.so[,l1=KIB:WAYS,l2=KIB:WAYS] PROGRAM
 *
 * Prints "instructions N l1 N l2 N" on standard error at the end. Debian has QEMU's plugins but not their header, so the few functions that
 * are used are declared here (docs/devel/tcg-plugins.rst of QEMU). */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum registers { NO_REGISTERS };
enum accesses { LOADS = 1, STORES, BOTH };
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), enum registers, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), enum registers,
                                      enum accesses, void *);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);

#define EXPORTED __attribute__((visibility("default")))
/* The version of the interface; what is used here is the same in all of them. QEMU up to 8 takes 1, later ones ask for 2 and more. */
#ifndef VERSION
#define VERSION 1
#endif
EXPORTED int qemu_plugin_version = VERSION;

enum { LINE = 64, MOST_WAYS = 32 };
struct cache {
    uint64_t sets, ways, misses;
    uint64_t *lines; /* a set's lines, the latest first; 0: none */
};
static struct cache caches[2];
static uint64_t instructions;

/* Looks for a line, which is then the latest of its set; returns whether it was there. */
static int is_cached(struct cache *cache, uint64_t line) {
    uint64_t *set = cache->lines + line % cache->sets * cache->ways, way = 0;
    while (way < cache->ways - 1 && set[way] != line) way++;
    int hit = set[way] == line;
    memmove(set + 1, set, way * sizeof *set);
    set[0] = line;
    cache->misses += !hit;
    return hit;
}

static void access_memory(unsigned cpu, uint32_t info, uint64_t address, void *unused) {
    (void)unused;
    if (cpu) return;
    uint64_t bytes = UINT64_C(1) << (info & 15), last = (address + bytes - 1) / LINE;
    for (uint64_t line = address / LINE; line <= last; line++)
        if (!is_cached(&caches[0], line + 1)) is_cached(&caches[1], line + 1);
}

static void execute(unsigned cpu, void *count) {
    if (!cpu) instructions += (uintptr_t)count;
}

static void translate(plugin_id id, struct qemu_plugin_tb *block) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, execute, NO_REGISTERS, (void *)(uintptr_t)count);
    for (size_t i = 0; caches[0].sets && i < count; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), access_memory, NO_REGISTERS, BOTH, NULL);
}

static void finish(plugin_id id, void *unused) {
    (void)id, (void)unused;
    fprintf(stderr, "instructions %" PRIu64 " l1 %" PRIu64 " l2 %" PRIu64 "\n", instructions, caches[0].misses, caches[1].misses);
}

EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        unsigned level, kib, ways;
        if (sscanf(argv[i], "l%u=%u:%u", &level, &kib, &ways) != 3 || level < 1 || level > 2 || !ways || ways > MOST_WAYS) return 1;
        struct cache *cache = &caches[level - 1];
        *cache = (struct cache){.sets = kib * UINT64_C(1024) / LINE / ways, .ways = ways};
        cache->lines = calloc(cache->sets * ways, sizeof *cache->lines);
        if (!cache->sets || !cache->lines) return 1;
    }
    if (!caches[0].sets != !caches[1].sets) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, finish, NULL);
    return 0;
}
