/* An OpenCL library for tests: everything goes to the system's own, until SOCBFS_TEST_LOSE_AFTER commands have been enqueued.
 * From then on every command fails as after the loss of the device (a kernel that hung, a driver that was reset).
 * SOCBFS_TEST_LOSE_FILE names a file that holds the number instead: commands are counted while it is there, and when it is gone, the
 * device is back.
 * Functions that are not here are found in libOpenCL.so.1, which this library is linked to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LOST (-5) /* CL_OUT_OF_RESOURCES, which drivers give for it */

static int lost(void) {
    static long commands;
    const char *limit = getenv("SOCBFS_TEST_LOSE_AFTER"), *path = getenv("SOCBFS_TEST_LOSE_FILE");
    if (path) {
        FILE *file = fopen(path, "r");
        long most = 0;
        if (!file) {
            __atomic_store_n(&commands, 0, __ATOMIC_RELAXED);
            return 0;
        }
        int numbers = fscanf(file, "%ld", &most);
        fclose(file);
        return numbers == 1 && __atomic_add_fetch(&commands, 1, __ATOMIC_RELAXED) > most;
    }
    return limit && __atomic_add_fetch(&commands, 1, __ATOMIC_RELAXED) > atol(limit);
}

#define COMMAND(name, parameters, arguments)                                                                                 \
    int32_t name parameters {                                                                                                \
        int32_t(*real) parameters = dlsym(RTLD_NEXT, #name);                                                                 \
        return lost() ? LOST : real arguments;                                                                               \
    }

typedef const void *const *events;

COMMAND(clFinish, (void *queue), (queue))
COMMAND(clEnqueueNDRangeKernel,
        (void *queue, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *global, const size_t *local,
         uint32_t count, events wait, void **event),
        (queue, kernel, dimensions, offset, global, local, count, wait, event))
COMMAND(clEnqueueReadBuffer,
        (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, void *into, uint32_t count, events wait, void **event),
        (queue, buffer, blocking, offset, size, into, count, wait, event))
COMMAND(clEnqueueWriteBuffer,
        (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, const void *from, uint32_t count, events wait,
         void **event),
        (queue, buffer, blocking, offset, size, from, count, wait, event))
COMMAND(clEnqueueFillBuffer,
        (void *queue, void *buffer, const void *pattern, size_t pattern_size, size_t offset, size_t size, uint32_t count, events wait,
         void **event),
        (queue, buffer, pattern, pattern_size, offset, size, count, wait, event))
COMMAND(clEnqueueUnmapMemObject, (void *queue, void *buffer, void *mapped, uint32_t count, events wait, void **event),
        (queue, buffer, mapped, count, wait, event))
COMMAND(clEnqueueSVMMap,
        (void *queue, uint32_t blocking, uint64_t flags, void *start, size_t size, uint32_t count, events wait, void **event),
        (queue, blocking, flags, start, size, count, wait, event))
COMMAND(clEnqueueSVMUnmap, (void *queue, void *start, uint32_t count, events wait, void **event), (queue, start, count, wait, event))
COMMAND(clEnqueueSVMMemFill,
        (void *queue, void *start, const void *pattern, size_t pattern_size, size_t size, uint32_t count, events wait, void **event),
        (queue, start, pattern, pattern_size, size, count, wait, event))

void *clEnqueueMapBuffer(void *queue, void *buffer, uint32_t blocking, uint64_t flags, size_t offset, size_t size, uint32_t count,
                         events wait, void **event, int32_t *status) {
    void *(*real)(void *, void *, uint32_t, uint64_t, size_t, size_t, uint32_t, events, void **, int32_t *) =
        dlsym(RTLD_NEXT, "clEnqueueMapBuffer");
    if (lost()) {
        if (status) *status = LOST;
        return NULL;
    }
    return real(queue, buffer, blocking, flags, offset, size, count, wait, event, status);
}
