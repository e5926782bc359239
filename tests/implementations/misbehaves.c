/* An OpenCL library for tests: it passes all calls on to the system's library, but misbehaves as SOCBFS_TEST_MISBEHAVE says.
 *
 * WHEN-HOW ends the process or never returns: HOW is aborts, exits, crashes, hangs or prints (to standard output), and WHEN is loaded (with
 * the library), listed (platforms), described (a property of a device), opened (a context), reserved (a buffer), flushed (a queue), built
 * (a program), restored (a program from its binary), kernel (a kernel is made), unloaded (with the library) or waited (for a device, whose
 * events then stay submitted and do not call back; after waited-hangs the process does not end when this library is unloaded).
 *
 * Others answer wrongly: no-platforms, many-platforms (three too many, which are null), null-platform, no-devices, many-devices (alike), null-device, empty-strings,
 * no-strings (the call fails), endless-strings (without a zero byte at the end), huge-strings (16 MiB), zero-limits, short-answers,
 * huge-answers, fewer-later (each list after the first is empty), null-context, null-queue, null-program, null-kernel, no-log.
 *
 * As one-unit each device reports one compute unit, as Mesa's VideoCore does; as copying, maps of more than 64 KiB of memory that the host
 * gave (CL_MEM_USE_HOST_PTR) take a millisecond per MiB.
 *
 * As qualcomm it gives each device the vendor's name alone, as some drivers of Adreno GPUs do.
 *
 * The library writes a line with the number of its process to the file SOCBFS_TEST_LOADS whenever it is loaded.
 *
 * Every device is reported as a GPU, so that it is taken without being named.
 *
 * As LLVM does, it sets the handler of SIGABRT back when it is loaded. The other functions come from libOpenCL.so.1, to which this library
 * is linked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *asked(void) {
    const char *how = getenv("SOCBFS_TEST_MISBEHAVE");
    return how ? how : "";
}

static int is(const char *what) {
    return !strcmp(asked(), what);
}

static void end(const char *when) {
    size_t length = strlen(when);
    const char *how = asked() + length;
    if (strncmp(asked(), when, length) || *how++ != '-') return;
    if (!strcmp(how, "aborts")) {
        fprintf(stderr, "the driver has a bug\n");
        abort();
    }
    if (!strcmp(how, "exits")) exit(7);
    if (!strcmp(how, "prints")) {
        puts("the driver was here");
        fflush(stdout);
    }
    if (!strcmp(how, "crashes")) *(volatile int *)0 = 1;
    if (!strcmp(how, "hangs"))
        for (;;) pause();
}

__attribute__((constructor)) static void loaded(void) {
    const char *loads = getenv("SOCBFS_TEST_LOADS");
    FILE *file = loads ? fopen(loads, "a") : NULL;
    if (file) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
    signal(SIGABRT, SIG_DFL);
    end("loaded");
}

/* Whether a wait has begun. */
static int waited;

__attribute__((destructor)) static void unloaded(void) {
    if (waited) end("waited");
    end("unloaded");
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int32_t clGetPlatformIDs(uint32_t room, void **platforms, uint32_t *count) {
    static int lists;
    end("listed");
    uint32_t real = 0;
    int32_t status = NEXT(clGetPlatformIDs)(room, platforms, &real);
    for (uint32_t i = real; platforms && i < room; i++) platforms[i] = NULL;
    if (is("no-platforms") || (is("fewer-later") && lists++ > 1)) real = 0;
    if (count) *count = real + (is("many-platforms") ? 3 : 0);
    if (platforms && room && is("null-platform")) platforms[0] = NULL;
    return status;
}

int32_t clGetDeviceIDs(void *platform, uint64_t kind, uint32_t room, void **devices, uint32_t *count) {
    if (!platform) return -32;
    uint32_t real = 0;
    int32_t status = NEXT(clGetDeviceIDs)(platform, kind, room, devices, &real);
    for (uint32_t i = real; devices && i < room; i++) devices[i] = NULL;
    if (count) *count = is("no-devices") ? 0 : real + (is("many-devices") ? 3 : 0);
    if (devices && room && is("null-device")) devices[0] = NULL;
    return status;
}

/* A property: of a device if `is_device`, else of a platform. */
static int32_t answer(int32_t status, int is_device, uint32_t what, size_t room, void *into, size_t *needed) {
    int is_string = is_device ? (what >= 0x102B && what <= 0x1030) || what == 0x103D : 1;
    if (is_string && is("no-strings")) return -30;
    if (is_string && is("empty-strings")) {
        if (into && room) *(char *)into = 0;
        if (needed) *needed = 0;
    }
    if (is_string && into && is("endless-strings")) memset(into, 'x', room);
    if (is_string && is("huge-strings")) {
        if (needed) *needed = 16 << 20;
        if (into) memset(into, 'x', room);
        return 0;
    }
    if (is_device && what == 0x1000 && into) *(uint64_t *)into = 4;
    if (is_device && !is_string && into && is("zero-limits")) memset(into, 0, room);
    if (is_device && !is_string && into && is("huge-answers")) memset(into, 0xff, room);
    if (needed && is("short-answers")) *needed /= 2;
    return status;
}

int32_t clGetPlatformInfo(void *platform, uint32_t what, size_t room, void *into, size_t *needed) {
    if (!platform) return -32;
    return answer(NEXT(clGetPlatformInfo)(platform, what, room, into, needed), 0, what, room, into, needed);
}

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t room, void *into, size_t *needed) {
    end("described");
    if (!device) return -33;
    if (is("qualcomm") && what == 0x1001 /* CL_DEVICE_VENDOR_ID */ && into) return *(uint32_t *)into = 0x5143, 0;
    if (is("qualcomm") && what == 0x102B /* CL_DEVICE_NAME */) {
        if (needed) *needed = sizeof "QUALCOMM ";
        if (into && room >= sizeof "QUALCOMM ") memcpy(into, "QUALCOMM ", sizeof "QUALCOMM ");
        return 0;
    }
    if (is("one-unit") && what == 0x1002 /* CL_DEVICE_MAX_COMPUTE_UNITS */ && into) return *(uint32_t *)into = 1, 0;
    return answer(NEXT(clGetDeviceInfo)(device, what, room, into, needed), 1, what, room, into, needed);
}

void *clCreateContext(const intptr_t *properties, uint32_t count, void *const *devices, void (*notify)(const char *, const void *, size_t, void *),
                      void *user, int32_t *status) {
    end("opened");
    if (is("null-context")) {
        if (status) *status = 0;
        return NULL;
    }
    return NEXT(clCreateContext)(properties, count, devices, notify, user, status);
}

void *clCreateCommandQueue(void *context, void *device, uint64_t properties, int32_t *status) {
    if (is("null-queue")) {
        if (status) *status = 0;
        return NULL;
    }
    return NEXT(clCreateCommandQueue)(context, device, properties, status);
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int32_t *status) {
    end("reserved");
    return NEXT(clCreateBuffer)(context, flags, size, host, status);
}

int32_t clFlush(void *queue) {
    end("flushed");
    return NEXT(clFlush)(queue);
}

void *clCreateProgramWithBinary(void *context, uint32_t count, void *const *devices, const size_t *sizes, const unsigned char **binaries,
                                int32_t *each, int32_t *status) {
    end("restored");
    return NEXT(clCreateProgramWithBinary)(context, count, devices, sizes, binaries, each, status);
}

void *clCreateProgramWithSource(void *context, uint32_t count, const char **text, const size_t *sizes, int32_t *status) {
    if (is("null-program")) {
        if (status) *status = 0;
        return NULL;
    }
    return NEXT(clCreateProgramWithSource)(context, count, text, sizes, status);
}

int32_t clBuildProgram(void *program, uint32_t count, void *const *devices, const char *options, void (*notify)(void *, void *), void *user) {
    end("built");
    if (is("no-log")) return -11;
    return NEXT(clBuildProgram)(program, count, devices, options, notify, user);
}

int32_t clGetProgramBuildInfo(void *program, void *device, uint32_t what, size_t room, void *into, size_t *needed) {
    if (is("no-log")) return -30;
    return NEXT(clGetProgramBuildInfo)(program, device, what, room, into, needed);
}

void *clCreateKernel(void *program, const char *name, int32_t *status) {
    end("kernel");
    if (is("null-kernel")) {
        if (status) *status = 0;
        return NULL;
    }
    return NEXT(clCreateKernel)(program, name, status);
}

int32_t clGetMemObjectInfo(void *buffer, uint32_t what, size_t room, void *into, size_t *needed) {
    return NEXT(clGetMemObjectInfo)(buffer, what, room, into, needed);
}

void *clEnqueueMapBuffer(void *queue, void *buffer, uint32_t blocking, uint64_t access, size_t offset, size_t size, uint32_t count,
                         void *const *list, void **event, int32_t *status) {
    uint64_t flags = 0;
    if (is("copying")) clGetMemObjectInfo(buffer, 0x1101 /* CL_MEM_FLAGS */, sizeof flags, &flags, NULL);
    if (flags & 8 /* CL_MEM_USE_HOST_PTR */ && size > 64 << 10) usleep(size / 1000);
    return NEXT(clEnqueueMapBuffer)(queue, buffer, blocking, access, offset, size, count, list, event, status);
}

int32_t clFinish(void *queue) {
    waited = 1;
    end("waited");
    return NEXT(clFinish)(queue);
}

int32_t clWaitForEvents(uint32_t count, void *const *list) {
    waited = 1;
    end("waited");
    return NEXT(clWaitForEvents)(count, list);
}

int32_t clGetEventInfo(void *event, uint32_t what, size_t room, void *into, size_t *needed) {
    int32_t status = NEXT(clGetEventInfo)(event, what, room, into, needed);
    if (!status && what == 0x11D3 /* CL_EVENT_COMMAND_EXECUTION_STATUS */ && into && is("waited-hangs")) *(int32_t *)into = 2 /* CL_SUBMITTED */;
    return status;
}

int32_t clSetEventCallback(void *event, int32_t state, void (*call)(void *, int32_t, void *), void *user) {
    waited = 1;
    if (is("waited-hangs")) return 0;
    end("waited");
    return NEXT(clSetEventCallback)(event, state, call, user);
}
