/* A stand-in for NVIDIA's driver library: devices, memory and launches on the host, for tests.

memory.c   allocations with red zones and poison
launch.c   launches: kinds of arguments, order of threads, counters
fibers.c   blocks whose threads wait for each other
api.c      the functions of the driver that numba-cuda and cuda-core call
device.c   the functions that kernels call in place of intrinsics and of libdevice
What starts with `lane_` is called from Python. */
#ifndef LANE_H
#define LANE_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t Address;

/* the driver's numbers for results */
enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_DEVICE = 101,
       NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

enum { MOST_DEVICES = 16,
       MULTIPROCESSORS = 8, /* of each device; as many blocks run side by side */
       MOST_THREADS = 1024, /* of a block */
       WARP = 32, SHARED_BYTES = 232448, RED_ZONE = 256, POISON = 0xA5 };

typedef struct {
    char *name;
    void (*entry)(void **arguments); /* runs one thread */
    char *kinds;                     /* of its arguments: 'p' for a pointer */
    int shared;                      /* bytes of static shared memory */
    int meets;                       /* whether threads wait for each other */
} Kernel;

typedef struct { unsigned x, y, z; } Size;

typedef struct {
    const Kernel *kernel;
    Size blocks, threads;
    int shared; /* bytes, static and dynamic */
    void **arguments;
    unsigned *block_order, *thread_order;
} Launch;

/* memory.c */
int allocate(Address *place, size_t size);
int release(Address place);
const char *what_is_wrong_with(Address place, size_t size); /* NULL: all of it is allocated on the current device */
size_t bytes_in_use(int device);

/* launch.c */
extern pthread_mutex_t lock; /* one launch, allocation or fault at a time; recursive */
extern struct Ids { Size thread, block, threads, blocks; } lane_ids;
extern char lane_shared[SHARED_BYTES + RED_ZONE];
extern int dynamic_shared;
void fault(const char *format, ...); /* what the test that runs has to answer for */
int launch(const Kernel *kernel, Size blocks, Size threads, int dynamic, void *stream, void **arguments);
void place_in(Size *place, Size extent, unsigned number);
unsigned volume(Size size);
void begin_shared(int bytes);
int shared_is_whole(const Launch *launch);

enum Counter { LAUNCHES, TO_DEVICE, TO_HOST, ON_DEVICE, BYTES_TO_DEVICE, BYTES_TO_HOST, SETS, ALLOCATIONS, FREES, WAITS,
               COUNTERS };
void count(enum Counter counter, size_t number);

/* fibers.c */
int run_side_by_side(const Launch *launch);
int in_fiber(void);
void spin_in_fiber(void);

/* api.c */
int current_device(void); /* -1: none */
int lane_device_count(void);
#endif
