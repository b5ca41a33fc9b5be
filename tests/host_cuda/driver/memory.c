/* Allocations. Each lies between red zones, starts as poison, and belongs to the device that was current. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lane.h"

typedef struct {
    unsigned char *start;
    size_t size;     /* what was asked for; the red zone behind it begins here */
    size_t capacity; /* what there is, as a pool may ask for less */
    int device, is_pooled;
} Block;

static Block *blocks; /* by address */
static size_t n_blocks, room;
static size_t in_use[MOST_DEVICES];

/* Return how many blocks start at or before a place. */
static size_t blocks_up_to(Address place) {
    size_t low = 0, high = n_blocks;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((Address)blocks[middle].start <= place) low = middle + 1;
        else high = middle;
    }
    return low;
}

static Block *block_at(Address place) {
    size_t k = blocks_up_to(place);
    return k && (Address)blocks[k - 1].start == place ? &blocks[k - 1] : NULL;
}

static void poison(Block *block, size_t size) {
    block->size = size;
    memset(block->start - RED_ZONE, POISON, block->capacity + 2 * RED_ZONE);
}

/* Return how far from the block its red zones were written to, 0 where they are whole; a negative one is before it. */
static long damage(const Block *block) {
    for (long i = 1; i <= RED_ZONE; i++)
        if (block->start[-i] != POISON) return -i;
    for (size_t i = block->size; i < block->capacity + RED_ZONE; i++)
        if (block->start[i] != POISON) return (long)(i - block->size) + 1;
    return 0;
}

static void check(Block *block) {
    long far = damage(block);
    if (!far) return;
    fault("device %d: written outside of an allocation of %zu bytes, %ld bytes %s it", block->device, block->size,
          labs(far), far < 0 ? "before" : "behind");
    memset(block->start - RED_ZONE, POISON, RED_ZONE);
    memset(block->start + block->size, POISON, block->capacity + RED_ZONE - block->size);
}

/* Check the red zones of all allocations. */
void lane_check(void) {
    pthread_mutex_lock(&lock);
    for (size_t k = 0; k < n_blocks; k++) check(&blocks[k]);
    pthread_mutex_unlock(&lock);
}

static void insert(Block block) {
    if (n_blocks == room) blocks = realloc(blocks, (room = 2 * room + 64) * sizeof(Block));
    size_t k = blocks_up_to((Address)block.start);
    memmove(&blocks[k + 1], &blocks[k], (n_blocks++ - k) * sizeof(Block));
    blocks[k] = block;
}

int allocate(Address *place, size_t size) {
    int device = current_device();
    if (device < 0) return INVALID_CONTEXT;
    if (!size) return INVALID_VALUE;
    size_t capacity = (size + 255) / 256 * 256;
    unsigned char *memory = aligned_alloc(256, capacity + 2 * RED_ZONE);
    if (!memory) return 2; /* out of memory */
    pthread_mutex_lock(&lock);
    insert((Block){memory + RED_ZONE, size, capacity, device, 0});
    poison(block_at(*place = (Address)(memory + RED_ZONE)), size);
    in_use[device] += capacity;
    count(ALLOCATIONS, 1);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int release(Address place) {
    pthread_mutex_lock(&lock);
    Block *block = block_at(place);
    if (block) {
        check(block);
        memset(block->start, POISON, block->capacity);
        free(block->start - RED_ZONE);
        in_use[block->device] -= block->capacity;
        size_t k = (size_t)(block - blocks);
        memmove(block, block + 1, (--n_blocks - k) * sizeof(Block));
        count(FREES, 1);
    } else fault("memory is freed that is not allocated, at %#llx", (unsigned long long)place);
    pthread_mutex_unlock(&lock);
    return block ? SUCCESS : INVALID_VALUE;
}

size_t bytes_in_use(int device) { return in_use[device]; }

const char *what_is_wrong_with(Address place, size_t size) {
    static char words[200];
    size_t k = blocks_up_to(place);
    Block *block = k ? &blocks[k - 1] : NULL;
    if (!block || place >= (Address)block->start + block->capacity) return "no device's memory: the host's, or freed";
    if (block->is_pooled) return "memory that was given back to the pool";
    if (block->device != current_device())
        snprintf(words, sizeof words, "memory of device %d, while device %d is current", block->device, current_device());
    else if (place + size > (Address)block->start + block->size)
        snprintf(words, sizeof words, "%zu bytes at %llu in an allocation of %zu", size,
                 (unsigned long long)(place - (Address)block->start), block->size);
    else return NULL;
    return words;
}

/* ------------------------------------------------------------------------------------------ for the pool of arrays */
/* Use an allocation again, for so many bytes. */
void lane_pool_take(Address place, size_t size) {
    pthread_mutex_lock(&lock);
    Block *block = block_at(place);
    block->is_pooled = 0;
    poison(block, size);
    pthread_mutex_unlock(&lock);
}

/* Keep an allocation for later; until then nobody may touch it. */
void lane_pool_give(Address place) {
    pthread_mutex_lock(&lock);
    Block *block = block_at(place);
    check(block);
    block->is_pooled = 1;
    poison(block, 0);
    pthread_mutex_unlock(&lock);
}

/* Return which device's memory this is, the current one's where it is nobody's. */
int lane_device_of(Address place) {
    pthread_mutex_lock(&lock);
    size_t k = blocks_up_to(place);
    Block *block = k ? &blocks[k - 1] : NULL;
    int device = block && place < (Address)block->start + block->capacity ? block->device : current_device();
    pthread_mutex_unlock(&lock);
    return device;
}

/* Return why an array's memory may not be used now, NULL where it may. */
const char *lane_wrong(Address place, size_t size) {
    pthread_mutex_lock(&lock);
    const char *words = what_is_wrong_with(place, size);
    pthread_mutex_unlock(&lock);
    return words;
}
