/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc,--wrap=free */
/* Arenas: alignment, growth, reuse, and how often they ask the system. */
#include <stdint.h>

#include "allocation.h"
#include "check_support.h"

static bool aligned(const void *piece) {
    return (uintptr_t)piece % 64 == 0;
}

START_TEST(pieces_are_aligned_and_apart) {
    attn_arena *arena = attn_arena_new();
    unsigned char *piece[200];
    for (size_t i = 0; i < 200; i++) {
        piece[i] = attn_arena_allocate(arena, i * 37);
        ck_assert_ptr_nonnull(piece[i]);
        ck_assert(aligned(piece[i]));
        memset(piece[i], (int)i, i * 37);
    }
    for (size_t i = 0; i < 200; i++) {
        size_t wrong = 0;
        for (size_t j = 0; j < i * 37; j++)
            wrong += piece[i][j] != i;
        ck_assert_uint_eq(wrong, 0);
    }
    attn_arena_free(arena);
}
END_TEST

START_TEST(large_pieces_keep_what_came_before) {
    attn_arena *arena = attn_arena_new();
    char *small = attn_arena_allocate(arena, 10);
    memcpy(small, "untouched", 10);
    char *large = attn_arena_allocate(arena, 10 << 20);
    memset(large, 'x', 10 << 20);
    char *after = attn_arena_allocate(arena, 10);
    memcpy(after, "also here", 10);
    ck_assert_str_eq(small, "untouched");
    ck_assert_int_eq(large[(10 << 20) - 1], 'x');
    attn_arena_free(arena);
}
END_TEST

START_TEST(peak_is_the_most_at_one_time) {
    attn_arena *arena = attn_arena_new();
    ck_assert_uint_eq(attn_arena_peak(arena), 0);
    attn_arena_allocate(arena, 64);
    attn_arena_allocate(arena, 1); /* takes a whole line */
    ck_assert_uint_eq(attn_arena_peak(arena), 128);
    attn_arena_reset(arena);
    attn_arena_allocate(arena, 64);
    ck_assert_uint_eq(attn_arena_peak(arena), 128);
    attn_arena_allocate(arena, 1 << 20);
    ck_assert_uint_eq(attn_arena_peak(arena), 64 + (1 << 20));
    attn_arena_free(arena);
}
END_TEST

/* Many pieces of sizes that look random; how many were refused. */
static size_t one_round(attn_arena *arena, unsigned seed) {
    size_t refused = 0;
    for (int i = 0; i < 500; i++) {
        seed = seed * 1103515245u + 12345u;
        size_t bytes = (seed >> 8) % 20000;
        unsigned char *piece = attn_arena_allocate(arena, bytes);
        refused += piece == NULL;
        if (piece != NULL)
            memset(piece, i, bytes);
    }
    return refused;
}

static void *allocate_watched(attn_arena *arena, size_t bytes) {
    void *piece;
    WATCH(piece = attn_arena_allocate(arena, bytes));
    return piece;
}

static attn_arena *new_watched(void) {
    attn_arena *arena;
    WATCH(arena = attn_arena_new());
    return arena;
}

START_TEST(a_second_round_never_asks_the_system) {
    attn_arena *arena = attn_arena_new();
    start_counting(NEVER);
    WATCH(one_round(arena, 1));
    ck_assert_uint_gt(allocation.calls, 3);
    ck_assert_uint_lt(allocation.calls, 12); /* blocks double */
    WATCH(attn_arena_reset(arena));
    start_counting(NEVER);
    for (int round = 0; round < 10; round++) {
        WATCH(one_round(arena, 1));
        WATCH(attn_arena_reset(arena));
    }
    ck_assert_uint_eq(allocation.calls, 0);
    attn_arena_free(arena);
}
END_TEST

START_TEST(pieces_in_another_order_fit_too) {
    attn_arena *arena = attn_arena_new();
    for (size_t i = 1; i <= 64; i++)
        attn_arena_allocate(arena, i * 4096);
    attn_arena_reset(arena);
    start_counting(NEVER);
    for (size_t i = 64; i >= 1; i--)
        ck_assert_ptr_nonnull(allocate_watched(arena, i * 4096));
    ck_assert_uint_eq(allocation.calls, 0);
    attn_arena_free(arena);
}
END_TEST

START_TEST(old_blocks_serve_when_they_cannot_be_merged) {
    attn_arena *arena = attn_arena_new();
    size_t refused = one_round(arena, 1);
    start_counting(1);
    WATCH(attn_arena_reset(arena));
    ck_assert_uint_eq(allocation.calls, 1); /* tried, and refused */
    catch_errors();
    WATCH(refused += one_round(arena, 1));
    ck_assert_uint_eq(refused, 0);
    ck_assert_int_eq(caught.count, 0);
    start_counting(NEVER);
    attn_arena_reset(arena); /* now they are merged */
    WATCH(refused += one_round(arena, 1));
    ck_assert_uint_eq(refused, 0);
    ck_assert_uint_eq(allocation.calls, 0);
    attn_arena_free(arena);
}
END_TEST

START_TEST(a_block_of_just_the_piece_may_do) {
    attn_arena *arena = attn_arena_new();
    attn_arena_allocate(arena, 1 << 20);
    start_counting(NEVER);
    allocation.largest = 1 << 19;
    ck_assert_ptr_nonnull(allocate_watched(arena, 1000));
    ck_assert_uint_eq(allocation.calls, 2);
    ck_assert_error(allocate_watched(arena, 1 << 21),
                    "attn_arena_allocate: no memory for 2097152 bytes");
    allocation.largest = SIZE_MAX;
    attn_arena_free(arena);
}
END_TEST

START_TEST(everything_is_given_back) {
    allocation.live = 0;
    start_counting(NEVER);
    attn_arena *arena = new_watched();
    WATCH(one_round(arena, 3));
    WATCH(attn_arena_reset(arena));
    WATCH(one_round(arena, 4));
    ck_assert_int_gt(allocation.live, 1);
    WATCH(attn_arena_free(arena));
    ck_assert_int_eq(allocation.live, 0);
    attn_arena_free(NULL);
}
END_TEST

START_TEST(errors) {
    attn_arena *arena = attn_arena_new();
    ck_assert_error(attn_arena_allocate(NULL, 1),
                    "attn_arena_allocate: arena is NULL");
    ck_assert_error(attn_arena_peak(NULL),
                    "attn_arena_peak: arena is NULL");
    ck_assert_error((attn_arena_reset(NULL), false),
                    "attn_arena_reset: arena is NULL");
    ck_assert_error(attn_arena_allocate(arena, SIZE_MAX),
                    "attn_arena_allocate: no memory for "
                    "18446744073709551615 bytes");
    ck_assert_error(attn_arena_allocate(arena, SIZE_MAX / 2),
                    "attn_arena_allocate: no memory for "
                    "9223372036854775807 bytes");
    start_counting(1);
    ck_assert_error(allocate_watched(arena, 100),
                    "attn_arena_allocate: no memory for 100 bytes");
    ck_assert_error(new_watched(), "attn_arena_new: no memory");
    start_counting(NEVER);
    ck_assert_uint_eq(attn_arena_peak(arena), 0);
    ck_assert_ptr_nonnull(attn_arena_allocate(arena, 100));
    attn_arena_free(arena);
}
END_TEST

/* Only AddressSanitizer can tell. */
#if defined __SANITIZE_ADDRESS__
#define WATCHED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif

#ifdef WATCHED
#include <sanitizer/asan_interface.h>

START_TEST(the_sanitizer_knows_what_is_handed_out) {
    attn_arena *arena = attn_arena_new();
    char *first = attn_arena_allocate(arena, 40);
    char *second = attn_arena_allocate(arena, 100);
    ck_assert(!__asan_address_is_poisoned(first + 39));
    ck_assert(__asan_address_is_poisoned(first + 40));
    ck_assert(!__asan_address_is_poisoned(second + 99));
    ck_assert(__asan_address_is_poisoned(second + 100));
    attn_arena_reset(arena);
    ck_assert(__asan_address_is_poisoned(first));
    ck_assert(__asan_address_is_poisoned(second));
    ck_assert_ptr_eq(attn_arena_allocate(arena, 1), first);
    ck_assert(!__asan_address_is_poisoned(first));
    ck_assert(__asan_address_is_poisoned(first + 1));
    attn_arena_free(arena);
}
END_TEST
#endif

static Suite *make_suite(void) {
    Suite *suite = suite_create("arenas");
    TCase *test = tcase_create("arena");
    tcase_add_test(test, pieces_are_aligned_and_apart);
    tcase_add_test(test, large_pieces_keep_what_came_before);
    tcase_add_test(test, peak_is_the_most_at_one_time);
    tcase_add_test(test, a_second_round_never_asks_the_system);
    tcase_add_test(test, pieces_in_another_order_fit_too);
    tcase_add_test(test, old_blocks_serve_when_they_cannot_be_merged);
    tcase_add_test(test, a_block_of_just_the_piece_may_do);
    tcase_add_test(test, everything_is_given_back);
    tcase_add_test(test, errors);
#ifdef WATCHED
    tcase_add_test(test, the_sanitizer_knows_what_is_handed_out);
#endif
    suite_add_tcase(suite, test);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
