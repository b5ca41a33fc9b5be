/* The functions of the driver that numba-cuda and cuda-core call. They find them by `cuGetProcAddress`; one that is not
here is none of this driver's, and they say so where it is called. Everything happens at once: a stream is a number. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lane.h"


typedef void *Handle;
static char contexts[MOST_DEVICES]; /* a context is the address of its device's element */
static __thread char *context;

int current_device(void) { return context ? (int)(context - contexts) : -1; }

int lane_device_count(void) {
    const char *chosen = getenv("HOST_CUDA_DEVICES");
    int n = chosen ? atoi(chosen) : 2;
    return n < 1 ? 1 : n > MOST_DEVICES ? MOST_DEVICES : n;
}

int lane_device_of(Address place);

static int device_of(Handle its_context) {
    return its_context ? (int)((char *)its_context - contexts) : current_device();
}

/* --------------------------------------------------------------------------------------------------------- devices */
int api_cuInit(unsigned flags) { return SUCCESS; }
int api_cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
int api_cuDeviceGetCount(int *n) { *n = lane_device_count(); return SUCCESS; }
int api_cuDeviceGet(int *device, int i) { *device = i; return i < lane_device_count() ? SUCCESS : INVALID_DEVICE; }
int api_cuDeviceGetName(char *name, int size, int device) { snprintf(name, (size_t)size, "stand-in %d", device); return SUCCESS; }
int api_cuDeviceGetUuid(char *uuid, int device) { memset(uuid, device + 1, 16); return SUCCESS; }
int api_cuDeviceTotalMem(size_t *size, int device) { *size = (size_t)80 << 30; return SUCCESS; }
int api_cuDeviceCanAccessPeer(int *can, int a, int b) { *can = 0; return SUCCESS; }

int api_cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const int values[][2] = { /* attribute of CUdevice_attribute, its value */
        {1, MOST_THREADS}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152}, {10, WARP},
        {12, 65536}, {13, 1785000}, {16, MULTIPROCESSORS}, {36, 2619000}, {37, 5120}, {38, 52428800}, {39, 1024},
        {41, 1}, {75, 9}, {76, 0}, {81, 233472}, {82, 65536}, {95, 1}, {97, SHARED_BYTES}, {115, 1},
    };
    *value = 0;
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        if (values[k][0] == attribute) *value = values[k][1];
    return SUCCESS;
}

/* -------------------------------------------------------------------------------------------------------- contexts */
int api_cuDevicePrimaryCtxRetain(Handle *its, int device) { *its = &contexts[device]; return SUCCESS; }
int api_cuDevicePrimaryCtxRelease(int device) { return SUCCESS; }
int api_cuDevicePrimaryCtxReset(int device) { return SUCCESS; }
int api_cuDevicePrimaryCtxSetFlags(int device, unsigned flags) { return SUCCESS; }
int api_cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { *flags = 0; *active = 1; return SUCCESS; }
int api_cuCtxGetCurrent(Handle *its) { *its = context; return SUCCESS; }
int api_cuCtxSetCurrent(Handle its) { context = its; return SUCCESS; }
int api_cuCtxGetDevice(int *device) { *device = current_device(); return context ? SUCCESS : INVALID_CONTEXT; }
int api_cuCtxGetDevice_v2(int *device, Handle its) { *device = device_of(its); return SUCCESS; }
int api_cuCtxSynchronize(void) { count(WAITS, 1); return SUCCESS; }
int api_cuCtxGetApiVersion(Handle its, unsigned *version) { *version = 13000; return SUCCESS; }
int api_cuCtxGetLimit(size_t *value, int limit) { *value = 1024; return SUCCESS; }
int api_cuCtxGetFlags(unsigned *flags) { *flags = 0; return SUCCESS; }
int api_cuCtxGetId(Handle its, uint64_t *id) { *id = (uint64_t)device_of(its) + 1; return SUCCESS; }
int api_cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return SUCCESS; }

/* Contexts that are pushed are kept beside each other, as cuda-core and numba-cuda push one each. */
static __thread char *pushed[64];
static __thread int depth;
int api_cuCtxPushCurrent(Handle its) { pushed[depth++ % 64] = context; context = its; return SUCCESS; }
int api_cuCtxPopCurrent(Handle *its) {
    if (its) *its = context;
    context = depth ? pushed[--depth % 64] : NULL;
    return SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- memory */
int api_cuMemAlloc(Address *place, size_t size) { return allocate(place, size); }
int api_cuMemAllocAsync(Address *place, size_t size, Handle stream) { return allocate(place, size); }
int api_cuMemAllocFromPoolAsync(Address *place, size_t size, Handle pool, Handle stream) { return allocate(place, size); }
int api_cuMemFree(Address place) { return place ? release(place) : SUCCESS; }
int api_cuMemFreeAsync(Address place, Handle stream) { return api_cuMemFree(place); }
int api_cuMemGetInfo(size_t *rest, size_t *total) {
    *total = (size_t)80 << 30;
    *rest = *total - bytes_in_use(current_device());
    return SUCCESS;
}
int api_cuMemHostAlloc(Handle *place, size_t size, unsigned flags) {
    *place = aligned_alloc(4096, (size + 4096) / 4096 * 4096);
    return SUCCESS;
}
int api_cuMemAllocHost(Handle *place, size_t size) { return api_cuMemHostAlloc(place, size, 0); }
int api_cuMemFreeHost(Handle place) { free(place); return SUCCESS; }
int api_cuMemHostRegister(Handle place, size_t size, unsigned flags) { return SUCCESS; }
int api_cuMemHostUnregister(Handle place) { return SUCCESS; }
int api_cuMemHostGetDevicePointer(Address *place, Handle host, unsigned flags) { *place = (Address)host; return SUCCESS; }

/* Demand that all of what a copy or a set touches is memory of the current device. */
static int check(const char *what, Address place, size_t size) {
    const char *wrong = size ? what_is_wrong_with(place, size) : NULL;
    if (wrong) fault("%s of %zu bytes: %#llx is %s", what, size, (unsigned long long)place, wrong);
    return wrong ? ILLEGAL_ADDRESS : SUCCESS;
}

static int copy(const char *what, void *to, const void *from, size_t size, int checks_to, int checks_from,
                enum Counter counter, int bytes) {
    int result = checks_to ? check(what, (Address)to, size) : SUCCESS;
    if (!result && checks_from) result = check(what, (Address)from, size);
    if (result) return result;
    memmove(to, from, size);
    count(counter, 1);
    if (bytes) count((enum Counter)bytes, size);
    return SUCCESS;
}

int api_cuMemcpyHtoDAsync(Address to, const void *from, size_t size, Handle stream) {
    return copy("copy to the device", (void *)to, from, size, 1, 0, TO_DEVICE, BYTES_TO_DEVICE);
}
int api_cuMemcpyDtoHAsync(void *to, Address from, size_t size, Handle stream) {
    return copy("copy to the host", to, (void *)from, size, 0, 1, TO_HOST, BYTES_TO_HOST);
}
int api_cuMemcpyDtoDAsync(Address to, Address from, size_t size, Handle stream) {
    return copy("copy on the device", (void *)to, (void *)from, size, 1, 1, ON_DEVICE, 0);
}
int api_cuMemcpyHtoD(Address to, const void *from, size_t size) { return api_cuMemcpyHtoDAsync(to, from, size, NULL); }
int api_cuMemcpyDtoH(void *to, Address from, size_t size) {
    count(WAITS, 1);
    return api_cuMemcpyDtoHAsync(to, from, size, NULL);
}
int api_cuMemcpyDtoD(Address to, Address from, size_t size) { return api_cuMemcpyDtoDAsync(to, from, size, NULL); }

int api_cuMemsetD8Async(Address place, unsigned char value, size_t size, Handle stream) {
    int result = check("memset", place, size);
    if (result) return result;
    memset((void *)place, value, size);
    count(SETS, 1);
    return SUCCESS;
}
int api_cuMemsetD8(Address place, unsigned char value, size_t size) { return api_cuMemsetD8Async(place, value, size, NULL); }

/* Attributes 2 and 9: the kind of memory, 2 for a device's, and the device. */
int api_cuPointerGetAttribute(void *value, int attribute, Address place) {
    if (attribute == 2) *(int *)value = 2;
    else if (attribute == 9) *(int *)value = lane_device_of(place);
    else *(Address *)value = attribute == 8 ? 0 : place;
    return SUCCESS;
}
int api_cuPointerGetAttributes(unsigned n, int *attributes, void **values, Address place) {
    for (unsigned i = 0; i < n; i++)
        if (attributes[i] == 8) *(int *)values[i] = 0; /* is it managed memory */
        else api_cuPointerGetAttribute(values[i], attributes[i], place);
    return SUCCESS;
}
int api_cuDeviceGetDefaultMemPool(Handle *pool, int device) { *pool = &contexts[device]; return SUCCESS; }
int api_cuDeviceGetMemPool(Handle *pool, int device) { *pool = &contexts[device]; return SUCCESS; }
int api_cuMemPoolGetAttribute(Handle pool, int attribute, void *value) { *(uint64_t *)value = 0; return SUCCESS; }
int api_cuMemPoolSetAttribute(Handle pool, int attribute, void *value) { return SUCCESS; }

/* ----------------------------------------------------------------------------------------------- streams and events */
typedef struct { unsigned flags; char *context; } Stream;

/* 0, 1 and 2 are the default streams. */
static Stream *made(Handle stream) { return (uintptr_t)stream > 2 ? stream : NULL; }

int api_cuStreamCreate(Handle *stream, unsigned flags) {
    Stream *new = malloc(sizeof *new);
    *new = (Stream){flags, context};
    *stream = new;
    return SUCCESS;
}
int api_cuStreamCreateWithPriority(Handle *stream, unsigned flags, int priority) { return api_cuStreamCreate(stream, flags); }
int api_cuStreamDestroy(Handle stream) { free(made(stream)); return SUCCESS; }
int api_cuStreamSynchronize(Handle stream) { count(WAITS, 1); return SUCCESS; }
int api_cuStreamGetFlags(Handle stream, unsigned *flags) { *flags = made(stream) ? made(stream)->flags : 0; return SUCCESS; }
int api_cuStreamGetPriority(Handle stream, int *priority) { *priority = 0; return SUCCESS; }
int api_cuStreamGetCtx(Handle stream, Handle *its) { *its = made(stream) ? made(stream)->context : context; return SUCCESS; }
int api_cuStreamGetCtx_v2(Handle stream, Handle *its, Handle *green) {
    if (green) *green = NULL;
    return api_cuStreamGetCtx(stream, its);
}
int api_cuStreamGetDevice(Handle stream, int *device) {
    *device = made(stream) ? device_of(made(stream)->context) : current_device();
    return SUCCESS;
}
int api_cuStreamIsCapturing(Handle stream, int *captures) { *captures = 0; return SUCCESS; }
int api_cuStreamWaitEvent(Handle stream, Handle event, unsigned flags) { return SUCCESS; }
int api_cuStreamGetId(Handle stream, uint64_t *id) { *id = (uint64_t)stream; return SUCCESS; }
int api_cuStreamQuery(Handle stream) { return SUCCESS; }
int api_cuEventCreate(Handle *event, unsigned flags) { *event = malloc(8); return SUCCESS; }
int api_cuEventRecord(Handle event, Handle stream) { return SUCCESS; }
int api_cuEventSynchronize(Handle event) { count(WAITS, 1); return SUCCESS; }
int api_cuEventDestroy(Handle event) { free(event); return SUCCESS; }
int api_cuEventQuery(Handle event) { return SUCCESS; }
int api_cuEventElapsedTime(float *time, Handle a, Handle b) { *time = 0; return SUCCESS; }

/* -------------------------------------------------------------------------------------------------- code and launches */
/* Compiled code is what fake_gpu/objects.py wrote; it loads it, too. A library is its one kernel. */
static Kernel *(*load)(const void *code);
void lane_set_loader(Kernel *(*loader)(const void *)) { load = loader; }

Kernel *lane_make_kernel(const char *name, void (*entry)(void **), const char *kinds, int shared, int meets) {
    Kernel *kernel = malloc(sizeof *kernel);
    *kernel = (Kernel){strdup(name), entry, strdup(kinds), shared, meets};
    return kernel;
}

int api_cuLibraryLoadData(Handle *library, const void *code, void *a, void **b, unsigned n, void *c, void **d, unsigned m) {
    *library = load ? load(code) : NULL;
    return *library ? SUCCESS : INVALID_IMAGE;
}
int api_cuLibraryUnload(Handle library) { return SUCCESS; }
int api_cuLibraryGetKernel(Handle *kernel, Handle library, const char *name) { *kernel = library; return SUCCESS; }
int api_cuLibraryGetModule(Handle *module, Handle library) { *module = library; return SUCCESS; }
int api_cuLibraryGetGlobal(Address *place, size_t *size, Handle library, const char *name) { return NOT_FOUND; }
int api_cuLibraryGetKernelCount(unsigned *n, Handle library) { *n = 1; return SUCCESS; }
int api_cuModuleLoadDataEx(Handle *module, const void *code, unsigned n, void *options, void **values) {
    return api_cuLibraryLoadData(module, code, NULL, NULL, 0, NULL, NULL, 0);
}
int api_cuModuleGetFunction(Handle *kernel, Handle module, const char *name) { *kernel = module; return SUCCESS; }
int api_cuModuleGetGlobal(Address *place, size_t *size, Handle module, const char *name) { return NOT_FOUND; }
int api_cuModuleUnload(Handle module) { return SUCCESS; }
int api_cuKernelGetFunction(Handle *function, Handle kernel) { *function = kernel; return SUCCESS; }
int api_cuFuncGetAttribute(int *value, int attribute, Handle kernel) {
    *value = attribute == 0 ? MOST_THREADS : attribute == 1 ? ((Kernel *)kernel)->shared : 0;
    return SUCCESS;
}
int api_cuKernelGetAttribute(int *value, int attribute, Handle kernel, int device) {
    return api_cuFuncGetAttribute(value, attribute, kernel);
}
int api_cuFuncSetAttribute(Handle kernel, int attribute, int value) { return SUCCESS; }
int api_cuKernelSetAttribute(int attribute, int value, Handle kernel, int device) { return SUCCESS; }
int api_cuKernelSetCacheConfig(Handle kernel, int config, int device) { return SUCCESS; }
int api_cuKernelGetLibrary(Handle *library, Handle kernel) { *library = kernel; return SUCCESS; }
int api_cuKernelGetName(const char **name, Handle kernel) { *name = ((Kernel *)kernel)->name; return SUCCESS; }
int api_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, Handle kernel, int threads, size_t shared) { *n = 1; return SUCCESS; }

int api_cuLaunchKernel(Handle kernel, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz,
                       unsigned shared, Handle stream, void **arguments, void **extra) {
    return launch(kernel, (Size){bx, by, bz}, (Size){tx, ty, tz}, (int)shared, stream, arguments);
}
typedef struct { Size blocks, threads; unsigned shared; Handle stream, attributes; unsigned n; } Configuration;
int api_cuLaunchKernelEx(const Configuration *how, Handle kernel, void **arguments, void **extra) {
    return launch(kernel, how->blocks, how->threads, (int)how->shared, how->stream, arguments);
}
int api_cuLaunchCooperativeKernel(Handle kernel, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                                  unsigned tz, unsigned shared, Handle stream, void **arguments) {
    return launch(kernel, (Size){bx, by, bz}, (Size){tx, ty, tz}, (int)shared, stream, arguments);
}

int api_cuGetErrorName(int error, const char **name) { *name = "CUDA_ERROR_OF_THE_STAND_IN"; return SUCCESS; }
int api_cuGetErrorString(int error, const char **words) { *words = "see the faults of the stand-in driver"; return SUCCESS; }
int api_cuProfilerStart(void) { return SUCCESS; }
int api_cuProfilerStop(void) { return SUCCESS; }

/* ----------------------------------------------------------------------------------------------- what is looked up */
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    char name[200];
    snprintf(name, sizeof name, "api_%s", symbol);
    static void *self;
    if (!self) self = dlopen("libcuda.so.1", RTLD_LAZY);
    *function = strcmp(symbol, "cuGetProcAddress") ? dlsym(self, name) : (void *)cuGetProcAddress_v2;
    if (status) *status = *function ? 0 : 1;
    return *function ? SUCCESS : NOT_FOUND;
}
int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
int cuInit(unsigned flags) { return api_cuInit(flags); }
int cuDriverGetVersion(int *version) { return api_cuDriverGetVersion(version); }
