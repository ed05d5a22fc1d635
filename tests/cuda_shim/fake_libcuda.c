/* Stands in for the driver's libcuda.so.1: what it answers is chosen by the environment.
   FAKE_CUINIT: status that cuInit returns; -11 crashes, -1 hangs. FAKE_DRIVER: CUDA version. FAKE_DEVICES: how many. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int chosen(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

int cuDriverGetVersion(int *version) {
    *version = chosen("FAKE_DRIVER", 13020);
    return 0;
}

int cuInit(unsigned flags) {
    int status = chosen("FAKE_CUINIT", 0);
    if (status == -11) raise(SIGSEGV);
    if (status == -1) sleep(100);
    return status;
}

int cuDeviceGetCount(int *count) {
    *count = chosen("FAKE_DEVICES", 1);
    return 0;
}

/* What the CUDA runtime asks for its functions; all that it may ask beside the above fails. */
static int other(void) { return 999; }

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long flags, int *found) {
    if (found) *found = 0;
    if (!strcmp(name, "cuInit")) *function = (void *)cuInit;
    else if (!strcmp(name, "cuDriverGetVersion")) *function = (void *)cuDriverGetVersion;
    else if (!strcmp(name, "cuDeviceGetCount")) *function = (void *)cuDeviceGetCount;
    else if (!strcmp(name, "cuGetProcAddress")) *function = (void *)cuGetProcAddress_v2;
    else *function = (void *)other;
    return 0;
}

int cuGetProcAddress(const char *name, void **function, int version, unsigned long flags) {
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}
