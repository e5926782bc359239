/* An OpenCL library for tests: it passes all calls on to the system's library, but does not build programs whose work-groups are larger
 * than SOCBFS_TEST_LARGEST_GROUP. Some drivers find out only then that they do not have enough registers.
 *
 * SOCBFS_TEST_LARGEST_LAUNCH is the size of the largest work-groups that it launches, whatever it says of its kernels. It writes a line to
 * the file SOCBFS_TEST_REPORT each time that it refuses larger ones.
 *
 * SOCBFS_TEST_MANY_KERNELS is what it does to a program with more than ten kernels: "fails" or "crashes". It writes a line to the file
 * SOCBFS_TEST_REPORT each time.
 *
 * SOCBFS_TEST_REFUSE_FILE names a file with a number. While the file exists, calls that make objects or set arguments are counted from 0;
 * the call with this number is refused, and the file is deleted.
 *
 * The other functions come from libOpenCL.so.1, to which this library is linked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFUSED (-11) /* CL_BUILD_PROGRAM_FAILURE */

#define NO_RESOURCES (-5) /* CL_OUT_OF_RESOURCES */

/* Whether this call is to be refused. */
static int refuses(void) {
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    static long calls;
    const char *path = getenv("SOCBFS_TEST_REFUSE_FILE");
    pthread_mutex_lock(&guard);
    FILE *file = path ? fopen(path, "r") : NULL;
    long wanted = 0;
    int is_wanted = 0;
    if (!file) {
        calls = 0;
    } else {
        is_wanted = fscanf(file, "%ld", &wanted) == 1 && calls++ == wanted;
        fclose(file);
        if (is_wanted) unlink(path);
    }
    pthread_mutex_unlock(&guard);
    return is_wanted;
}

/* A call that returns a status. */
#define CALL(name, parameters, arguments)                                                                                    \
    int32_t name parameters {                                                                                                \
        int32_t(*next) parameters = dlsym(RTLD_NEXT, #name);                                                                 \
        return refuses() ? NO_RESOURCES : next arguments;                                                                    \
    }
/* A call that returns an object, and writes its status through a pointer. */
#define MAKE(name, parameters, arguments)                                                                                    \
    void *name parameters {                                                                                                  \
        void *(*next) parameters = dlsym(RTLD_NEXT, #name);                                                                  \
        if (!refuses()) return next arguments;                                                                               \
        if (status) *status = NO_RESOURCES;                                                                                  \
        return NULL;                                                                                                         \
    }

CALL(clSetKernelArg, (void *kernel, uint32_t index, size_t size, const void *value), (kernel, index, size, value))
CALL(clSetKernelArgSVMPointer, (void *kernel, uint32_t index, const void *value), (kernel, index, value))
CALL(clGetKernelWorkGroupInfo, (void *kernel, void *device, uint32_t what, size_t size, void *into, size_t *needed),
     (kernel, device, what, size, into, needed))
MAKE(clCreateBuffer, (void *context, uint64_t flags, size_t size, void *host, int32_t *status), (context, flags, size, host, status))
MAKE(clCreateKernel, (void *program, const char *name, int32_t *status), (program, name, status))
MAKE(clCreateProgramWithSource, (void *context, uint32_t count, const char **text, const size_t *sizes, int32_t *status),
     (context, count, text, sizes, status))

void *clSVMAlloc(void *context, uint64_t flags, size_t size, uint32_t alignment) {
    void *(*next)(void *, uint64_t, size_t, uint32_t) = dlsym(RTLD_NEXT, "clSVMAlloc");
    return refuses() ? NULL : next(context, flags, size, alignment);
}

/* Notes that something was refused. */
static void report(const char *what) {
    const char *path = getenv("SOCBFS_TEST_REPORT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\n", what);
    fclose(file);
}

int32_t clEnqueueNDRangeKernel(void *queue, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *global,
                               const size_t *local, uint32_t count, const void *const *wait, void **event) {
    int32_t (*next)(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const void *const *, void **) =
        dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    const char *largest = getenv("SOCBFS_TEST_LARGEST_LAUNCH");
    if (!largest || *local <= (size_t)atol(largest)) return next(queue, kernel, dimensions, offset, global, local, count, wait, event);
    report("a launch");
    return NO_RESOURCES;
}

/* Whether this program has too many kernels for the compiler. */
static int has_too_many(void *program) {
    int32_t (*info)(void *, uint32_t, size_t, void *, size_t *) = dlsym(RTLD_NEXT, "clGetProgramInfo");
    const char *how = getenv("SOCBFS_TEST_MANY_KERNELS");
    size_t size = 0;
    int kernels = 0;
    if (!how || info(program, 0x1164 /* CL_PROGRAM_SOURCE */, 0, NULL, &size)) return 0;
    char *source = calloc(size + 1, 1);
    info(program, 0x1164, size, source, NULL);
    for (const char *at = source; (at = strstr(at, "kernel void ")); at++) kernels++;
    free(source);
    if (kernels <= 10) return 0;
    report("a program");
    if (!strcmp(how, "crashes")) *(volatile int *)0 = 1;
    return 1;
}

int32_t clBuildProgram(void *program, uint32_t count, const void *const *devices, const char *options, void (*notify)(void *, void *),
                       void *user) {
    int32_t (*real)(void *, uint32_t, const void *const *, const char *, void (*)(void *, void *), void *) =
        dlsym(RTLD_NEXT, "clBuildProgram");
    if (refuses()) return NO_RESOURCES;
    const char *largest = getenv("SOCBFS_TEST_LARGEST_GROUP"), *group = options ? strstr(options, "-DGROUP=") : NULL;
    if (has_too_many(program)) return -6 /* CL_OUT_OF_HOST_MEMORY */;
    if (largest && group && atol(group + strlen("-DGROUP=")) > atol(largest)) return REFUSED;
    return real(program, count, devices, options, notify, user);
}
