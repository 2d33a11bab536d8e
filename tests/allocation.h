/* Allocation under control. A program that includes this is linked with
   -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc,--wrap=free
   so that these calls come by here first. (A compiler may make a calloc of
   a malloc and zeros.) Within WATCH(...) they are
   counted, and refused if so asked; Check's own calls, which come between,
   are let through. One thread only. */
#ifndef ALLOCATION_H
#define ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static struct {
    bool watching;
    size_t calls;      /* since the last start_counting */
    ptrdiff_t live;    /* allocated and not yet freed, under WATCH */
    size_t fails_from; /* the call of this number and all after fail */
    size_t largest;    /* larger ones fail */
} allocation = {.fails_from = SIZE_MAX, .largest = SIZE_MAX};

#define WATCH(statement)             \
    do {                             \
        allocation.watching = true;  \
        statement;                   \
        allocation.watching = false; \
    } while (0)

/* Counts anew; the call of the number given, and all after it, fail. */
static inline void start_counting(size_t fails_from) {
    allocation.calls = 0;
    allocation.fails_from = fails_from;
}

/* A number of a call that never comes. */
#define NEVER SIZE_MAX

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *place);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *place);

static inline bool allocation_refused(size_t bytes) {
    if (!allocation.watching)
        return false;
    allocation.calls++;
    return bytes > allocation.largest ||
           allocation.calls >= allocation.fails_from;
}

static inline void *allocation_made(void *place) {
    allocation.live += allocation.watching && place != NULL;
    return place;
}

void *__wrap_malloc(size_t bytes) {
    return allocation_made(
        allocation_refused(bytes) ? NULL : __real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return allocation_made(allocation_refused(count * bytes)
                               ? NULL
                               : __real_calloc(count, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return allocation_made(
        allocation_refused(bytes)
            ? NULL
            : __real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *place) {
    allocation.live -= allocation.watching && place != NULL;
    __real_free(place);
}

#endif
