/* An OpenCL library for tests: everything goes to the system's own, but programs whose work-groups are larger than
 * SOCBFS_TEST_LARGEST_GROUP are not built, as by drivers that find too late that they have not the registers for them.
 * Functions that are not here are found in libOpenCL.so.1, which this library is linked to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED (-11) /* CL_BUILD_PROGRAM_FAILURE */

int32_t clBuildProgram(void *program, uint32_t count, const void *const *devices, const char *options, void (*notify)(void *, void *),
                       void *user) {
    int32_t (*real)(void *, uint32_t, const void *const *, const char *, void (*)(void *, void *), void *) =
        dlsym(RTLD_NEXT, "clBuildProgram");
    const char *largest = getenv("SOCBFS_TEST_LARGEST_GROUP"), *group = options ? strstr(options, "-DGROUP=") : NULL;
    if (largest && group && atol(group + strlen("-DGROUP=")) > atol(largest)) return REFUSED;
    return real(program, count, devices, options, notify, user);
}
