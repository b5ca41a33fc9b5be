/* Threads that wait for each other: each has a stack of its own, and they take turns on one thread of the host.

Turns change at barriers of the block, and where an atomic is repeated many times, as by a thread that waits for another
block. As many blocks as the device has multiprocessors run side by side. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "lane.h"

enum { STACK = 1 << 17, SPINS_A_TURN = 200, MOST_ROUNDS = 20000 };

typedef enum { READY, AT_BARRIER, ENDED } State;

typedef struct {
    State state;
    int has_stack_in_use; /* it stands in the loop of `live` */
    jmp_buf here;
} Thread;

/* A block that runs, and the threads that run it. */
typedef struct {
    Thread *threads;
    Size place;
    char *shared;
    int is_running;
} Slot;

static Slot slots[MULTIPROCESSORS];
static char *stacks;
static const Launch *now;
static Slot *slot; /* the block whose turn it is */
static unsigned me; /* the thread */
static int runs_fiber, has_moved;
static int rounds, spins;
static jmp_buf scheduler;
static ucontext_t first_context;

int in_fiber(void) { return runs_fiber; }

/* ---------------------------------------------------------------------------------------------------------- turns */
/* Hand over to the scheduler; go on when it comes back. */
static void pause_as(State state) {
    Thread *thread = &slot->threads[me];
    thread->state = state;
    if (!_setjmp(thread->here)) _longjmp(scheduler, 1);
}

/* What each stack runs: one thread of the device after the other. */
static void live(void) {
    for (;;) {
        now->kernel->entry(now->arguments);
        has_moved = 1;
        pause_as(ENDED);
    }
}

static void start(Thread *thread, unsigned number) {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)STACK * number;
    context.uc_stack.ss_size = STACK;
    makecontext(&context, live, 0);
    thread->has_stack_in_use = 1;
    swapcontext(&first_context, &context);
}

static void give_turn(unsigned number) {
    Thread *thread = &slot->threads[number];
    me = number;
    place_in(&lane_ids.thread, now->threads, number);
    spins = 0;
    runs_fiber = 1;
    if (!_setjmp(scheduler)) {
        if (thread->has_stack_in_use) _longjmp(thread->here, 1);
        start(thread, (unsigned)(slot - slots) * MOST_THREADS + number);
    }
    runs_fiber = 0;
}

void spin_in_fiber(void) {
    if (++spins < SPINS_A_TURN) return;
    pause_as(READY);
}

/* -------------------------------------------------------------------------------------------------------- meetings */
/* Let the block go on where all its threads have come to a barrier: 1, or 0, or -1 after a fault. */
static int pass(void) {
    unsigned n = volume(now->threads), waiting = 0, ended = 0;
    for (unsigned t = 0; t < n; t++) {
        waiting += slot->threads[t].state == AT_BARRIER;
        ended += slot->threads[t].state == ENDED;
    }
    if (!waiting || waiting + ended < n) return 0;
    if (ended) {
        fault("%s: %u of %u threads of a block wait at a barrier; the others have ended", now->kernel->name, waiting, n);
        return -1;
    }
    for (unsigned t = 0; t < n; t++) slot->threads[t].state = READY;
    return 1;
}

void lane_meet_block(void) { pause_as(AT_BARRIER); }

/* ---------------------------------------------------------------------------------------------------------- blocks */
static void begin_block(Slot *its, unsigned number) {
    place_in(&its->place, now->blocks, number);
    its->is_running = 1;
    for (unsigned t = 0; t < volume(now->threads); t++) its->threads[t].state = READY;
    memset(its->shared, POISON, (size_t)now->shared + RED_ZONE);
}

/* Run the block of a slot as far as it comes: 1 where it ended, 0 where it waits for other blocks, -1 after a fault. */
static int run_block(Slot *its) {
    unsigned n = volume(now->threads);
    int passed;
    slot = its;
    lane_ids.block = its->place;
    memcpy(lane_shared, its->shared, (size_t)now->shared + RED_ZONE);
    do {
        for (unsigned t = 0; t < n; t++)
            if (its->threads[now->thread_order[t]].state == READY) give_turn(now->thread_order[t]);
        passed = pass();
        has_moved |= passed;
    } while (passed > 0);
    memcpy(its->shared, lane_shared, (size_t)now->shared + RED_ZONE);
    if (passed < 0 || !shared_is_whole(now)) return -1;
    for (unsigned t = 0; t < n; t++)
        if (its->threads[t].state != ENDED) return 0;
    return 1;
}

/* Run all blocks; a new one begins where another ended. */
static int run_blocks(unsigned n_blocks) {
    unsigned begun = 0, ended = 0;
    while (ended < n_blocks) {
        has_moved = 0;
        for (Slot *its = slots; its < slots + MULTIPROCESSORS; its++) {
            if (!its->is_running && begun < n_blocks) begin_block(its, now->block_order[begun++]);
            if (!its->is_running) continue;
            int result = run_block(its);
            if (result < 0) return LAUNCH_FAILED;
            its->is_running = !result;
            ended += (unsigned)result;
        }
        rounds = has_moved ? 0 : rounds + 1;
        if (rounds == MOST_ROUNDS) {
            fault("%s: all threads wait, and none goes on; %u blocks of %u fit side by side", now->kernel->name,
                  MULTIPROCESSORS, n_blocks);
            return LAUNCH_FAILED;
        }
    }
    return SUCCESS;
}

static void make_slots(void) {
    if (stacks) return;
    stacks = mmap(NULL, (size_t)STACK * MOST_THREADS * MULTIPROCESSORS, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (Slot *its = slots; its < slots + MULTIPROCESSORS; its++) {
        its->threads = calloc(MOST_THREADS, sizeof(Thread));
        its->shared = malloc(SHARED_BYTES + RED_ZONE);
    }
}

/* Threads that stand in the middle of a kernel are given up; their stacks begin anew. */
static void give_up(void) {
    for (Slot *its = slots; its < slots + MULTIPROCESSORS; its++) {
        its->is_running = 0;
        for (unsigned t = 0; t < MOST_THREADS; t++) its->threads[t].has_stack_in_use = 0;
    }
}

int run_side_by_side(const Launch *launch) {
    make_slots();
    now = launch;
    rounds = 0;
    int result = run_blocks(volume(launch->blocks));
    if (result) give_up();
    return result;
}
