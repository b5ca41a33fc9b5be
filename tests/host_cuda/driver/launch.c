/* Launches: arguments are checked, and every thread of every block runs, in an order that a test may choose. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lane.h"

pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
struct Ids lane_ids;
char lane_shared[SHARED_BYTES + RED_ZONE] __attribute__((aligned(256)));
int dynamic_shared;

/* -------------------------------------------------------------------------------------------- faults and counters */
static char faults[1 << 16];

void fault(const char *format, ...) {
    pthread_mutex_lock(&lock);
    size_t end = strlen(faults);
    if (end < sizeof faults - 400) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(faults + end, 390, format, arguments);
        va_end(arguments);
        strcat(faults, "\n");
    }
    pthread_mutex_unlock(&lock);
}

/* Return what was wrong since the last call, a line each. */
const char *lane_faults(void) {
    static char told[sizeof faults];
    pthread_mutex_lock(&lock);
    strcpy(told, faults);
    faults[0] = 0;
    pthread_mutex_unlock(&lock);
    return told;
}

static size_t counters[COUNTERS];

void count(enum Counter counter, size_t number) {
    pthread_mutex_lock(&lock);
    counters[counter] += number;
    pthread_mutex_unlock(&lock);
}

/* Count what CuPy does to learn the size of a result. */
void lane_read_a_number(void) {
    count(TO_HOST, 1);
    count(BYTES_TO_HOST, 8);
    count(WAITS, 1);
}

size_t lane_counter(int counter) { return counters[counter]; }

/* What was launched, in order. */
typedef struct { char name[200]; int device; unsigned blocks, threads; void *stream; } Launched;
static Launched *launched;
static size_t n_launched, room;

/* Note a launch; the stand-in for CuPy calls this for what CuPy would launch. */
void lane_note(const char *name, unsigned blocks, unsigned threads, void *stream) {
    pthread_mutex_lock(&lock);
    if (n_launched == room) launched = realloc(launched, (room = 2 * room + 64) * sizeof(Launched));
    Launched *now = &launched[n_launched++];
    *now = (Launched){"", current_device(), blocks, threads, stream};
    strncpy(now->name, name, sizeof now->name - 1);
    count(LAUNCHES, 1);
    pthread_mutex_unlock(&lock);
}

size_t lane_launched(const Launched **first) {
    *first = launched;
    return n_launched;
}

void lane_reset(void) {
    pthread_mutex_lock(&lock);
    memset(counters, 0, sizeof counters);
    n_launched = 0;
    pthread_mutex_unlock(&lock);
}

/* --------------------------------------------------------------------------------------------------------- order */
static int order; /* 0 forward, 1 reverse, 2 shuffled */
static uint64_t seed;

void lane_set_order(int chosen, uint64_t its_seed) {
    order = chosen;
    seed = its_seed | 1;
}

static uint64_t random_number(void) { /* xorshift */
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Return the numbers up to n in the order chosen. */
static unsigned *ordered(unsigned n) {
    unsigned *numbers = malloc(n * sizeof *numbers);
    for (unsigned k = 0; k < n; k++) numbers[k] = order == 1 ? n - 1 - k : k;
    for (unsigned k = n; order == 2 && k > 1; k--) {
        unsigned other = (unsigned)(random_number() % k), value = numbers[k - 1];
        numbers[k - 1] = numbers[other];
        numbers[other] = value;
    }
    return numbers;
}

unsigned volume(Size size) { return size.x * size.y * size.z; }

void place_in(Size *place, Size extent, unsigned number) {
    *place = (Size){number % extent.x, number / extent.x % extent.y, number / extent.x / extent.y};
}

/* -------------------------------------------------------------------------------------------------------- shared */
void begin_shared(int bytes) { memset(lane_shared, POISON, (size_t)bytes + RED_ZONE); }

int shared_is_whole(const Launch *launch) {
    for (int i = 0; i < RED_ZONE; i++)
        if ((unsigned char)lane_shared[launch->shared + i] != POISON) {
            fault("%s: written behind the %d bytes of shared memory", launch->kernel->name, launch->shared);
            return 0;
        }
    return 1;
}

/* --------------------------------------------------------------------------------------------------------- launch */
/* Threads that do not wait for each other run one after the other. */
static jmp_buf given_up;
static int spins; /* atomics of the thread that runs */
enum { MOST_SPINS = 20000000 };

static int run_in_turn(const Launch *launch) {
    unsigned n_threads = volume(launch->threads), n_blocks = volume(launch->blocks);
    if (setjmp(given_up)) return LAUNCH_FAILED;
    for (unsigned b = 0; b < n_blocks; b++) {
        place_in(&lane_ids.block, launch->blocks, launch->block_order[b]);
        begin_shared(launch->shared);
        for (unsigned t = 0; t < n_threads; t++) {
            place_in(&lane_ids.thread, launch->threads, launch->thread_order[t]);
            spins = 0;
            launch->kernel->entry(launch->arguments);
        }
        if (!shared_is_whole(launch)) return LAUNCH_FAILED;
    }
    return SUCCESS;
}

/* Called before every atomic: one that is repeated without end waits for another thread. */
void nvvm_spin(void) {
    if (in_fiber()) spin_in_fiber();
    else if (++spins == MOST_SPINS) {
        fault("a thread waits for another one that never comes: %d atomics, and no barrier", MOST_SPINS);
        longjmp(given_up, 1);
    }
}

/* Demand that pointers lead to memory of the current device. */
static int check_arguments(const Kernel *kernel, void **arguments) {
    for (int k = 0; kernel->kinds[k]; k++) {
        Address place = kernel->kinds[k] == 'p' ? *(Address *)arguments[k] : 0;
        const char *wrong = place ? what_is_wrong_with(place, 1) : NULL;
        if (wrong) {
            fault("%s: argument %d, %#llx, is %s", kernel->name, k, (unsigned long long)place, wrong);
            return ILLEGAL_ADDRESS;
        }
    }
    return SUCCESS;
}

static int check_sizes(const Kernel *kernel, Size blocks, Size threads, int shared) {
    if (volume(blocks) && volume(threads) && volume(threads) <= MOST_THREADS && shared <= SHARED_BYTES) return SUCCESS;
    fault("%s: %u x %u x %u blocks of %u x %u x %u threads with %d bytes of shared memory", kernel->name, blocks.x,
          blocks.y, blocks.z, threads.x, threads.y, threads.z, shared);
    return INVALID_VALUE;
}

int launch(const Kernel *kernel, Size blocks, Size threads, int dynamic, void *stream, void **arguments) {
    pthread_mutex_lock(&lock);
    int result = check_sizes(kernel, blocks, threads, kernel->shared + dynamic);
    if (!result) result = check_arguments(kernel, arguments);
    if (!result) {
        lane_note(kernel->name, volume(blocks), volume(threads), stream);
        Launch now = {kernel, blocks, threads, kernel->shared + dynamic, arguments, ordered(volume(blocks)),
                      ordered(volume(threads))};
        lane_ids.threads = threads;
        lane_ids.blocks = blocks;
        dynamic_shared = dynamic;
        result = kernel->meets ? run_side_by_side(&now) : run_in_turn(&now);
        free(now.block_order);
        free(now.thread_order);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
