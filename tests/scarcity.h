/* Memory that runs out. A program that includes this is linked with
   -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
   so that these calls come by here first; or, if it defines
   ONLY_ARENAS_RUN_OUT before, with the last of these alone. */
#ifndef SCARCITY_H
#define SCARCITY_H

#include <stdbool.h>
#include <stddef.h>

static long allocations;           /* so far */
static long allocations_left = -1; /* below zero: without end */

static inline bool may_allocate(void) {
    if (allocations_left == 0)
        return false;
    if (allocations_left > 0)
        allocations_left--;
    allocations++;
    return true;
}

#ifndef ONLY_ARENAS_RUN_OUT
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
    return may_allocate() ? __real_realloc(old, size) : NULL;
}
#endif

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return may_allocate() ? __real_aligned_alloc(alignment, size) : NULL;
}

#endif
