/* An OpenCL library for tests: it passes all calls on to the system's library until SOCBFS_TEST_LOSE_AFTER commands have been enqueued.
 * From then on every command and every release fails, as after the loss of a device (because a kernel hung or the driver was reset).
 * Instead, SOCBFS_TEST_LOSE_FILE can name a file with this number: commands are counted while the file exists, and the device is back
 * when it is deleted.
 *
 * With SOCBFS_TEST_LOSE_DELAY_MS kernels begin only when a call waits for them. If the device is lost before that, they begin this many
 * milliseconds after the loss was reported, as on a device that still runs the kernels it was given. A transfer that fails because of the
 * loss is carried out then too. If objects or memory of these kernels are released before, each of them is written to the file
 * SOCBFS_TEST_LOSE_REPORT, one per line.
 *
 * SOCBFS_TEST_LOSE_DEVICE is a part of the name of the only device that is lost. Releases then succeed.
 *
 * With SOCBFS_TEST_HANG the loss is not reported. Instead no command seems to end: calls that wait write "hangs" to the report and never
 * return, nor does the end of the process; events stay submitted and do not call back. A later use of the device is written to the report too.
 *
 * With SOCBFS_TEST_HANG_GROUP too, only a queue hangs that has launched a kernel with work-groups of this size.
 *
 * Kernels that were launched before the loss and whose events are still in use count as aborted: their events have no times, also after the
 * device is back.
 *
 * With SOCBFS_TEST_AS_GPU every device is reported as a GPU.
 *
 * SOCBFS_TEST_LIE_FILE simulates a driver with a bug. It names a file with two or three numbers: the number of a piece of data among those
 * transferred to the host while the file exists, the 32-bit word with which that piece is overwritten, and the size in bytes of the pieces
 * that are counted (otherwise all are).
 *
 * SOCBFS_TEST_DROP_FILE simulates a driver that ends a kernel which ran too long and reports no error. It names a file with the name of a
 * kernel, which is not run while the file exists. With "*" nothing runs, fills included, as if the device computed nothing.
 *
 * The other functions come from libOpenCL.so.1, to which this library is linked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOST (-5) /* CL_OUT_OF_RESOURCES, which drivers return for a lost device */
#define PAGE 4096

typedef const void *const *events;

static void *real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

/* ---- The loss ---- */

static long commands;

/* Counts `more` commands, and returns whether the device is lost at the last of them. With 0, whether it is lost at the next command. */
static int is_lost(long more) {
    const char *limit = getenv("SOCBFS_TEST_LOSE_AFTER"), *path = getenv("SOCBFS_TEST_LOSE_FILE");
    long most = 0;
    if (path) {
        FILE *file = fopen(path, "r");
        if (!file) {
            __atomic_store_n(&commands, 0, __ATOMIC_RELAXED);
            return 0;
        }
        int numbers = fscanf(file, "%ld", &most);
        fclose(file);
        if (numbers != 1) return 0;
    } else if (limit) {
        most = atol(limit);
    } else {
        return 0;
    }
    return __atomic_add_fetch(&commands, more, __ATOMIC_RELAXED) + !more > most;
}

/* ---- Kernels that still run ---- */

/* Kernels wait for this OpenCL user event if it is set. */
static void *gate, *gate_context;
/* Whether the loss was reported while kernels waited. */
static int reported;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
/* The host memory that buffers use in place. */
static struct {
    void *buffer, *start;
    size_t size;
} over[4096];

static long delay(void) {
    const char *delay = getenv("SOCBFS_TEST_LOSE_DELAY_MS");
    return delay ? atol(delay) : 0;
}

/* Events of kernels that have not been released, and whether their kernel was aborted. */
static struct {
    void *event;
    int is_aborted;
} kernels[4096];

/* Notes the event of a kernel that was launched. */
static int32_t launched(int32_t status, void **event) {
    if (status || !event) return status;
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!kernels[i].event) {
            kernels[i].event = *event;
            kernels[i].is_aborted = 0;
            break;
        }
    pthread_mutex_unlock(&guard);
    return status;
}

static void report(const char *what) {
    const char *path = getenv("SOCBFS_TEST_LOSE_REPORT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\n", what);
    fclose(file);
}

/* Lets the kernels begin. */
static void open_gate(void) {
    int32_t (*set)(void *, int32_t) = real("clSetUserEventStatus"), (*release)(void *) = real("clReleaseEvent");
    pthread_mutex_lock(&guard);
    void *event = gate;
    int late = reported;
    gate = NULL;
    reported = 0;
    if (event && late)
        for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
            char *start = over[i].start;
            for (size_t at = 0; over[i].buffer && at < over[i].size; at += PAGE) {
                unsigned char there;
                if (!mincore(start + at, 1, &there)) continue;
                report("memory of the host below a buffer was unmapped");
                break;
            }
        }
    pthread_mutex_unlock(&guard);
    if (!event) return;
    set(event, 0);
    release(event);
}

static void *open_later(void *unused) {
    usleep(1000 * delay());
    open_gate();
    return unused;
}

/* Whether the device of this queue is not the one that is lost. */
static int is_spared(void *queue) {
    int32_t (*of_queue)(void *, uint32_t, size_t, void *, size_t *) = real("clGetCommandQueueInfo");
    int32_t (*of_device)(void *, uint32_t, size_t, void *, size_t *) = real("clGetDeviceInfo");
    const char *wanted = getenv("SOCBFS_TEST_LOSE_DEVICE");
    void *device = NULL;
    char name[1024] = "";
    if (!wanted) return 0;
    of_queue(queue, 0x1091 /* CL_QUEUE_DEVICE */, sizeof device, &device, NULL);
    of_device(device, 0x102b /* CL_DEVICE_NAME */, sizeof name, name, NULL);
    return !strstr(name, wanted);
}

/* The queues for which a call waits for ever. */
static void *hanging[256];
static size_t hangs;

static int is_hanging(void *queue) {
    for (size_t i = 0; i < hangs; i++)
        if (hanging[i] == queue) return 1;
    return 0;
}

/* Whether the commands of this queue do not end. */
static int is_stuck(void *queue) {
    return getenv("SOCBFS_TEST_HANG") && (is_lost(0) || is_hanging(queue));
}

/* The kernels that wait begin later. */
static void continue_later(void);

/* Counts a command, and returns whether the device is lost. */
static int lost(void *queue) {
    if (is_spared(queue) || !(is_lost(1) || is_hanging(queue))) return 0;
    if (getenv("SOCBFS_TEST_HANG")) {
        if (is_hanging(queue)) report("a command after the hang");
        return 0;
    }
    continue_later();
    return 1;
}

static void continue_later(void) {
    pthread_mutex_lock(&guard);
    int first = gate && !reported;
    reported |= first;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) kernels[i].is_aborted = 1;
    pthread_mutex_unlock(&guard);
    pthread_t thread;
    if (first && !pthread_create(&thread, NULL, open_later, NULL)) pthread_detach(thread);
}

/* Notes that the commands of this queue do not end. */
static void hang(void *queue) {
    report("hangs");
    if (hangs < sizeof hanging / sizeof *hanging) hanging[hangs++] = queue;
    continue_later();
}

/* The same as `lost` for a command that the caller waits for. */
static int lost_waiting(void *queue) {
    if (lost(queue)) return 1;
    if (is_stuck(queue)) {
        hang(queue);
        for (;;) pause();
    }
    open_gate();
    return 0;
}

/* A driver that waits for its device when the process ends. */
__attribute__((destructor)) static void unloaded(void) {
    while (hangs) pause();
}

/* Whether releases are refused. */
static int keeps(void) {
    return is_lost(0) && !getenv("SOCBFS_TEST_LOSE_DEVICE") && !getenv("SOCBFS_TEST_HANG");
}

/* Whether kernels still wait although the loss has been reported and the device is not back. */
static int goes_on(void) {
    if (!is_lost(0)) return 0;
    pthread_mutex_lock(&guard);
    int on = gate && reported;
    pthread_mutex_unlock(&guard);
    return on;
}

/* ---- Wrong data ---- */

/* Pieces of data that have arrived since data is overwritten. */
static long pieces;

/* Whether data is overwritten. Transfers then block, so that the data is overwritten after it has arrived and not before. */
static int lies(void) {
    const char *path = getenv("SOCBFS_TEST_LIE_FILE");
    if (path && access(path, F_OK) == 0) return 1;
    pieces = 0;
    return 0;
}

/* Overwrites the `size` bytes that have arrived at the host, if they are the wanted piece. */
static void arrived(void *start, size_t size) {
    const char *path = getenv("SOCBFS_TEST_LIE_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    long piece = 0;
    size_t counted = size;
    uint32_t value = 0, *words = start;
    if (!file) return;
    int numbers = fscanf(file, "%ld %u %zu", &piece, &value, &counted);
    fclose(file);
    if (numbers < 2 || counted != size || ++pieces != piece) return;
    for (size_t i = 0; i < size / sizeof value; i++) words[i] = value;
}

/* ---- Kernels that are ended ---- */

/* Whether launches of this kernel (NULL: fills) do nothing. */
static int is_dropped(void *kernel) {
    int32_t (*info)(void *, uint32_t, size_t, void *, size_t *) = real("clGetKernelInfo");
    const char *path = getenv("SOCBFS_TEST_DROP_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char wanted[64] = "", name[64] = "";
    if (!file) return 0;
    int words = fscanf(file, "%63s", wanted);
    fclose(file);
    if (words != 1 || !strcmp(wanted, "*")) return words == 1;
    return kernel && !info(kernel, 0x1190 /* CL_KERNEL_FUNCTION_NAME */, sizeof name, name, NULL) && !strcmp(name, wanted);
}

/* A command that does nothing. */
static int32_t nothing(void *queue, uint32_t count, events wait, void **event) {
    int32_t (*marker)(void *, uint32_t, events, void **) = real("clEnqueueMarkerWithWaitList");
    return marker(queue, count, wait, event);
}

/* ---- Commands ---- */

#define COMMAND(name, is_lost, parameters, arguments)                                                                        \
    int32_t name parameters {                                                                                                \
        int32_t(*next) parameters = real(#name);                                                                             \
        return (is_lost) ? LOST : next arguments;                                                                              \
    }

#define FILL(name, parameters, arguments)                                                                                    \
    int32_t name parameters {                                                                                                \
        int32_t(*next) parameters = real(#name);                                                                             \
        if (lost(queue)) return LOST;                                                                                        \
        return is_dropped(NULL) ? nothing(queue, count, wait, event) : next arguments;                                       \
    }

COMMAND(clFinish, lost_waiting(queue), (void *queue), (queue))
static void *queue_of(void *event) {
    int32_t (*info)(void *, uint32_t, size_t, void *, size_t *) = real("clGetEventInfo");
    void *queue = NULL;
    info(event, 0x11D0 /* CL_EVENT_COMMAND_QUEUE */, sizeof queue, &queue, NULL);
    return queue;
}

static int lost_waiting_for(void *event) {
    while (is_hanging(queue_of(event))) pause();
    return lost(queue_of(event));
}

COMMAND(clWaitForEvents, lost_waiting_for(list[0]), (uint32_t count, void *const *list), (count, list))

/* A caller that is to be called back waits too. */
int32_t clSetEventCallback(void *event, int32_t state, void (*call)(void *, int32_t, void *), void *user) {
    int32_t (*next)(void *, int32_t, void (*)(void *, int32_t, void *), void *) = real("clSetEventCallback");
    if (lost(queue_of(event))) return LOST;
    if (is_stuck(queue_of(event)) && !is_spared(queue_of(event))) {
        hang(queue_of(event));
        return 0;
    }
    open_gate();
    return next(event, state, call, user);
}

int32_t clGetEventInfo(void *event, uint32_t what, size_t size, void *into, size_t *needed) {
    int32_t (*next)(void *, uint32_t, size_t, void *, size_t *) = real("clGetEventInfo");
    int32_t status = next(event, what, size, into, needed);
    if (status == 0 && what == 0x11D3 /* CL_EVENT_COMMAND_EXECUTION_STATUS */ && into && is_stuck(queue_of(event)) &&
        !is_spared(queue_of(event)))
        *(int32_t *)into = 2 /* CL_SUBMITTED */;
    return status;
}

COMMAND(clFlush, is_lost(0) && !is_spared(queue) && !getenv("SOCBFS_TEST_HANG"), (void *queue), (queue))
FILL(clEnqueueFillBuffer,
        (void *queue, void *buffer, const void *pattern, size_t pattern_size, size_t offset, size_t size, uint32_t count, events wait,
         void **event),
        (queue, buffer, pattern, pattern_size, offset, size, count, wait, event))
COMMAND(clEnqueueUnmapMemObject, lost(queue), (void *queue, void *buffer, void *mapped, uint32_t count, events wait, void **event),
        (queue, buffer, mapped, count, wait, event))
COMMAND(clEnqueueSVMUnmap, lost(queue), (void *queue, void *start, uint32_t count, events wait, void **event), (queue, start, count, wait, event))
FILL(clEnqueueSVMMemFill,
        (void *queue, void *start, const void *pattern, size_t pattern_size, size_t size, uint32_t count, events wait, void **event),
        (queue, start, pattern, pattern_size, size, count, wait, event))

int32_t clEnqueueSVMMap(void *queue, uint32_t blocking, uint64_t flags, void *start, size_t size, uint32_t count, events wait,
                        void **event) {
    int32_t (*next)(void *, uint32_t, uint64_t, void *, size_t, uint32_t, events, void **) = real("clEnqueueSVMMap");
    if (blocking ? lost_waiting(queue) : lost(queue)) return LOST;
    blocking |= lies();
    int32_t status = next(queue, blocking, flags, start, size, count, wait, event);
    if (blocking && status == 0) arrived(start, size);
    return status;
}

int32_t clEnqueueReadBuffer(void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, void *into, uint32_t count,
                            events wait, void **event) {
    int32_t (*next)(void *, void *, uint32_t, size_t, size_t, void *, uint32_t, events, void **) = real("clEnqueueReadBuffer");
    if (!(blocking ? lost_waiting(queue) : lost(queue))) {
        blocking |= lies();
        int32_t status = next(queue, buffer, blocking, offset, size, into, count, wait, event);
        if (blocking && status == 0) arrived(into, size);
        return status;
    }
    if (goes_on()) next(queue, buffer, 0, offset, size, into, 0, NULL, NULL);
    return LOST;
}

int32_t clEnqueueWriteBuffer(void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, const void *from, uint32_t count,
                             events wait, void **event) {
    int32_t (*next)(void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, events, void **) = real("clEnqueueWriteBuffer");
    if (!(blocking ? lost_waiting(queue) : lost(queue))) return next(queue, buffer, blocking, offset, size, from, count, wait, event);
    if (goes_on()) next(queue, buffer, 0, offset, size, from, 0, NULL, NULL);
    return LOST;
}

void *clEnqueueMapBuffer(void *queue, void *buffer, uint32_t blocking, uint64_t flags, size_t offset, size_t size, uint32_t count,
                         events wait, void **event, int32_t *status) {
    void *(*next)(void *, void *, uint32_t, uint64_t, size_t, size_t, uint32_t, events, void **, int32_t *) = real("clEnqueueMapBuffer");
    if (!(blocking ? lost_waiting(queue) : lost(queue))) {
        blocking |= lies();
        void *start = next(queue, buffer, blocking, flags, offset, size, count, wait, event, status);
        if (blocking && start) arrived(start, size);
        return start;
    }
    if (status) *status = LOST;
    return NULL;
}

int32_t clEnqueueNDRangeKernel(void *queue, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *global,
                               const size_t *local, uint32_t count, events wait, void **event) {
    int32_t (*next)(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, events, void **) =
        real("clEnqueueNDRangeKernel");
    int32_t (*info)(void *, uint32_t, size_t, void *, size_t *) = real("clGetCommandQueueInfo");
    void *(*user_event)(void *, int32_t *) = real("clCreateUserEvent");
    void *context = NULL;
    const char *stuck = getenv("SOCBFS_TEST_HANG_GROUP");
    if (lost(queue)) return LOST;
    if (stuck && local && *local == (size_t)atol(stuck) && !is_hanging(queue)) hang(queue);
    if (is_dropped(kernel)) return nothing(queue, count, wait, event);
    if (delay() == 0 || count > 0 || info(queue, 0x1090 /* CL_QUEUE_CONTEXT */, sizeof context, &context, NULL))
        return launched(next(queue, kernel, dimensions, offset, global, local, count, wait, event), event);
    if (gate && gate_context != context) open_gate();
    pthread_mutex_lock(&guard);
    if (!gate) {
        gate = user_event(context, NULL);
        gate_context = context;
    }
    const void *gates[] = {gate};
    int32_t status = next(queue, kernel, dimensions, offset, global, local, gate ? 1 : 0, gate ? gates : NULL, event);
    pthread_mutex_unlock(&guard);
    return launched(status, event);
}

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *into, size_t *needed) {
    int32_t (*next)(void *, uint32_t, size_t, void *, size_t *) = real("clGetDeviceInfo");
    int32_t status = next(device, what, size, into, needed);
    if (status == 0 && what == 0x1000 /* CL_DEVICE_TYPE */ && size >= sizeof(uint64_t) && into && getenv("SOCBFS_TEST_AS_GPU"))
        *(uint64_t *)into = 4 /* CL_DEVICE_TYPE_GPU */;
    return status;
}

/* ---- Memory and releases ---- */

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int32_t *status) {
    void *(*next)(void *, uint64_t, size_t, void *, int32_t *) = real("clCreateBuffer");
    void *buffer = next(context, flags, size, host, status);
    pthread_mutex_lock(&guard);
    for (size_t i = 0; buffer && flags & 8 /* CL_MEM_USE_HOST_PTR */ && i < sizeof over / sizeof *over; i++)
        if (!over[i].buffer) {
            over[i].buffer = buffer;
            over[i].start = host;
            over[i].size = size;
            break;
        }
    pthread_mutex_unlock(&guard);
    return buffer;
}

/* If the device is lost, a release fails and releases nothing. */
#define RELEASE(name)                                                                                                        \
    int32_t name(void *object) {                                                                                             \
        int32_t (*next)(void *) = real(#name);                                                                               \
        if (goes_on()) report(#name);                                                                                        \
        return keeps() ? LOST : next(object);                                                                             \
    }

RELEASE(clReleaseKernel)
RELEASE(clReleaseProgram)
RELEASE(clReleaseCommandQueue)
RELEASE(clReleaseContext)

int32_t clReleaseEvent(void *event) {
    int32_t (*next)(void *) = real("clReleaseEvent");
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].event == event) kernels[i].event = NULL;
    pthread_mutex_unlock(&guard);
    return keeps() ? LOST : next(event);
}

int32_t clGetEventProfilingInfo(void *event, uint32_t what, size_t size, void *into, size_t *needed) {
    int32_t (*next)(void *, uint32_t, size_t, void *, size_t *) = real("clGetEventProfilingInfo");
    int is_aborted = 0;
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) is_aborted |= kernels[i].event == event && kernels[i].is_aborted;
    pthread_mutex_unlock(&guard);
    return is_aborted ? -7 /* CL_PROFILING_INFO_NOT_AVAILABLE */ : next(event, what, size, into, needed);
}

int32_t clReleaseMemObject(void *buffer) {
    int32_t (*next)(void *) = real("clReleaseMemObject");
    if (goes_on()) report("clReleaseMemObject");
    if (keeps()) return LOST;
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        if (over[i].buffer == buffer) over[i].buffer = NULL;
    pthread_mutex_unlock(&guard);
    return next(buffer);
}

void clSVMFree(void *context, void *start) {
    void (*next)(void *, void *) = real("clSVMFree");
    if (goes_on()) report("clSVMFree");
    next(context, start);
}
