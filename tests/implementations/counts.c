/* An OpenCL library for tests: it passes all calls on to the system's library, and counts them.
 * SOCBFS_TEST_COUNTS names the file with the counts, which are 64-bit numbers in the order of `enum counted`. Every process that has the
 * library open adds to them, and a test can read them at any time (`Counts` of mod.rs).
 *
 * The bytes counted are those that a device with memory of its own transfers: to the host when a region is mapped (unless its contents
 * are declared invalid) or read, and to the device when a region that was mapped for writing is unmapped, or when a region is written.
 * With SOCBFS_TEST_POISON a region whose contents are declared invalid is overwritten when it is mapped, as a driver may do.
 * The other functions come from libOpenCL.so.1, to which this library is linked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum counted { LAUNCHES, FILLS, WAITS, MAPS, UNMAPS, READS, WRITES, TO_HOST, TO_DEVICE, FLUSHES, PROGRAMS, ALL };

#define MAP_WRITING 2u
#define MAP_INVALID 4u

static uint64_t without_a_file[ALL];
static uint64_t *counts = without_a_file;

__attribute__((constructor)) static void open_counts(void) {
    const char *path = getenv("SOCBFS_TEST_COUNTS");
    if (!path) return;
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof without_a_file) != 0) {
        perror(path);
        abort();
    }
    void *mapped = mmap(NULL, sizeof without_a_file, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) {
        perror(path);
        abort();
    }
    counts = mapped;
}

static void count(enum counted what, uint64_t more) {
    __atomic_add_fetch(&counts[what], more, __ATOMIC_RELAXED);
}

/* The mapped regions, with the number of bytes that unmapping transfers back. */
static struct region {
    const void *start;
    uint64_t bytes;
    struct region *next;
} *regions;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void mapped(void *queue, void *start, uint32_t blocking, uint64_t flags, size_t size) {
    if (flags & MAP_INVALID && getenv("SOCBFS_TEST_POISON")) {
        int32_t (*finish)(void *) = dlsym(RTLD_NEXT, "clFinish");
        if (finish(queue) != 0) abort();
        memset(start, 0xA5, size);
    }
    count(MAPS, 1);
    if (blocking) count(WAITS, 1);
    if (!(flags & MAP_INVALID)) count(TO_HOST, size);
    struct region *region = malloc(sizeof *region);
    if (!region) abort();
    region->start = start;
    region->bytes = flags & (MAP_WRITING | MAP_INVALID) ? size : 0;
    pthread_mutex_lock(&turn);
    region->next = regions;
    regions = region;
    pthread_mutex_unlock(&turn);
}

static void unmapped(const void *start) {
    count(UNMAPS, 1);
    pthread_mutex_lock(&turn);
    for (struct region **at = &regions; *at; at = &(*at)->next) {
        struct region *found = *at;
        if (found->start == start) {
            *at = found->next;
            count(TO_DEVICE, found->bytes);
            free(found);
            break;
        }
    }
    pthread_mutex_unlock(&turn);
}

/* Passes a call on, and counts it if it succeeds. */
#define COMMAND(name, parameters, arguments, counted)                                                                        \
    int32_t name parameters {                                                                                                \
        int32_t(*real) parameters = dlsym(RTLD_NEXT, #name);                                                                 \
        int32_t status = real arguments;                                                                                     \
        if (status == 0) { counted; }                                                                                        \
        return status;                                                                                                       \
    }

typedef const void *const *events;

COMMAND(clFinish, (void *queue), (queue), count(WAITS, 1))
COMMAND(clFlush, (void *queue), (queue), count(FLUSHES, 1))
COMMAND(clWaitForEvents, (uint32_t number, events list), (number, list), count(WAITS, 1))
COMMAND(clEnqueueNDRangeKernel,
        (void *queue, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *global, const size_t *local,
         uint32_t number, events wait, void **event),
        (queue, kernel, dimensions, offset, global, local, number, wait, event), count(LAUNCHES, 1))
COMMAND(clEnqueueReadBuffer,
        (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, void *into, uint32_t number, events wait, void **event),
        (queue, buffer, blocking, offset, size, into, number, wait, event),
        count(READS, 1); count(TO_HOST, size); if (blocking) count(WAITS, 1))
COMMAND(clEnqueueWriteBuffer,
        (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, const void *from, uint32_t number, events wait,
         void **event),
        (queue, buffer, blocking, offset, size, from, number, wait, event),
        count(WRITES, 1); count(TO_DEVICE, size); if (blocking) count(WAITS, 1))
COMMAND(clEnqueueFillBuffer,
        (void *queue, void *buffer, const void *pattern, size_t pattern_size, size_t offset, size_t size, uint32_t number, events wait,
         void **event),
        (queue, buffer, pattern, pattern_size, offset, size, number, wait, event), count(FILLS, 1))
COMMAND(clEnqueueSVMMemFill,
        (void *queue, void *start, const void *pattern, size_t pattern_size, size_t size, uint32_t number, events wait, void **event),
        (queue, start, pattern, pattern_size, size, number, wait, event), count(FILLS, 1))
COMMAND(clEnqueueSVMMap,
        (void *queue, uint32_t blocking, uint64_t flags, void *start, size_t size, uint32_t number, events wait, void **event),
        (queue, blocking, flags, start, size, number, wait, event), mapped(queue, start, blocking, flags, size))
COMMAND(clEnqueueSVMUnmap, (void *queue, void *start, uint32_t number, events wait, void **event), (queue, start, number, wait, event),
        unmapped(start))
COMMAND(clEnqueueUnmapMemObject, (void *queue, void *buffer, void *start, uint32_t number, events wait, void **event),
        (queue, buffer, start, number, wait, event), unmapped(start))

void *clEnqueueMapBuffer(void *queue, void *buffer, uint32_t blocking, uint64_t flags, size_t offset, size_t size, uint32_t number,
                         events wait, void **event, int32_t *status) {
    void *(*real)(void *, void *, uint32_t, uint64_t, size_t, size_t, uint32_t, events, void **, int32_t *) =
        dlsym(RTLD_NEXT, "clEnqueueMapBuffer");
    void *start = real(queue, buffer, blocking, flags, offset, size, number, wait, event, status);
    if (start) mapped(queue, start, blocking, flags, size);
    return start;
}

/* Counts programs built from source. A cached program is made from a binary. */
void *clCreateProgramWithSource(void *context, uint32_t number, const char **text, const size_t *sizes, int32_t *status) {
    void *(*create)(void *, uint32_t, const char **, const size_t *, int32_t *) = dlsym(RTLD_NEXT, "clCreateProgramWithSource");
    void *program = create(context, number, text, sizes, status);
    if (program) count(PROGRAMS, 1);
    return program;
}
