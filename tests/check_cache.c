/* The cache of keys and values: what it holds, what it refuses, and that a
   layer that reads with it gives what one without it gives. */
/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc,--wrap=free */
#include "allocation.h"
#include "check_support.h"

static attn_arena *memory;
static attn_tape *tape;
static attn_torch_generator generator;

static void set_up(void) {
    memory = attn_arena_new();
    tape = attn_tape_new();
    attn_torch_seed(&generator, 0);
}

static void tear_down(void) {
    attn_tape_free(tape);
    attn_arena_free(memory);
}

static attn_tensor *drawn(size_t batch, size_t length, size_t width) {
    attn_tensor *tensor =
        attn_tensor_new(memory, ATTN_SHAPE(batch, length, width));
    attn_torch_normal(&generator, tensor);
    return tensor;
}

/* Positions first, first + 1, ... of every sequence. */
static attn_tensor *part_of(const attn_tensor *x, size_t first,
                            size_t count) {
    const size_t length = x->shape[1], width = x->shape[2];
    attn_tensor *part =
        attn_tensor_new(memory, ATTN_SHAPE(x->shape[0], count, width));
    for (size_t b = 0; b < x->shape[0]; b++)
        memcpy(part->value + b * count * width,
               x->value + (b * length + first) * width,
               count * width * sizeof(float));
    return part;
}

static void check_same(const attn_tensor *found,
                       const attn_tensor *expected) {
    ck_assert_uint_eq(found->rank, expected->rank);
    for (size_t i = 0; i < found->rank; i++)
        ck_assert_uint_eq(found->shape[i], expected->shape[i]);
    ck_assert_mem_eq(found->value, expected->value,
                     attn_tensor_size(found) * sizeof(float));
}

START_TEST(holds_what_it_was_given) {
    for (size_t batch = 1; batch <= 3; batch++) {
        const attn_tensor *key = drawn(batch, 7, 4);
        const attn_tensor *value = drawn(batch, 7, 6);
        attn_cache *cache = attn_cache_new(memory, batch, 7, 4, 6);
        ck_assert_uint_eq(attn_cache_length(cache), 0);
        static const size_t step[] = {3, 1, 2, 1};
        for (size_t i = 0, length = 0; i < 4; i++) {
            ck_assert(attn_cache_append(cache,
                                        part_of(key, length, step[i]),
                                        part_of(value, length, step[i])));
            length += step[i];
            ck_assert_uint_eq(attn_cache_length(cache), length);
            check_same(attn_cache_keys(tape, cache),
                       part_of(key, 0, length));
            check_same(attn_cache_values(tape, cache),
                       part_of(value, 0, length));
        }
    }
}
END_TEST

START_TEST(forgets_and_goes_on) {
    const attn_tensor *x = drawn(2, 6, 4);
    attn_cache *cache = attn_cache_new(memory, 2, 6, 4, 4);
    ck_assert(attn_cache_append(cache, x, x));
    ck_assert(attn_cache_shorten(cache, 2));
    ck_assert(attn_cache_append(cache, part_of(x, 2, 3), part_of(x, 2, 3)));
    check_same(attn_cache_keys(tape, cache), part_of(x, 0, 5));
    ck_assert(attn_cache_shorten(cache, 0));
    ck_assert_uint_eq(attn_cache_length(cache), 0);
}
END_TEST

/* Reads a few positions at a time and compares with reading them all. */
static void check_layer(size_t batch, double rotary_base) {
    attn_parameters *parameters = attn_parameters_new();
    attn_multi_head_layer layer;
    attn_multi_head_new(&layer, parameters, "attention", &generator, 16, 4,
                        true);
    const attn_tensor *x = drawn(batch, 9, 16);
    attn_multi_head_options options = {.rotary_base = rotary_base};
    options.mask = attn_mask_causal(memory, 9, 9);
    const attn_tensor *expected =
        attn_multi_head_apply(tape, &layer, x, x, x, &options);
    options.cache = attn_cache_new(memory, batch, 9, 16, 16);
    static const size_t step[] = {4, 1, 3, 1};
    for (size_t i = 0, length = 0; i < 4; i++) {
        const attn_tensor *new = part_of(x, length, step[i]);
        options.mask =
            attn_mask_causal(memory, step[i], length + step[i]);
        check_values(
            attn_multi_head_apply(tape, &layer, new, new, new, &options),
            part_of(expected, length, step[i]), 1e-6, "output");
        length += step[i];
    }
    attn_parameters_free(parameters);
}

START_TEST(a_layer_reads_on) {
    check_layer(1, 0);
    check_layer(3, 0);
    check_layer(1, 10000);
    check_layer(2, 10000);
}
END_TEST

START_TEST(refuses_what_does_not_fit) {
    attn_cache *cache = attn_cache_new(memory, 2, 5, 4, 6);
    const attn_tensor *key = drawn(2, 3, 4), *value = drawn(2, 3, 6);
    ck_assert_error(attn_cache_append(NULL, key, value),
                    "attn_cache_append: cache is NULL");
    ck_assert_error(attn_cache_append(cache, key, NULL),
                    "attn_cache_append: value is NULL");
    ck_assert_error(attn_cache_append(cache, value, value),
                    "attn_cache_append: key (2, 3, 6) and value (2, 3, 6) "
                    "for a cache of (2, t, 4) and (2, t, 6)");
    ck_assert_error(attn_cache_append(cache, key, drawn(2, 2, 6)),
                    "attn_cache_append: key (2, 3, 4) and value (2, 2, 6) "
                    "for a cache of (2, t, 4) and (2, t, 6)");
    ck_assert(attn_cache_append(cache, key, value));
    ck_assert_error(attn_cache_append(cache, key, value),
                    "attn_cache_append: no room for 3 more positions: 3 of "
                    "5 are taken");
    ck_assert_uint_eq(attn_cache_length(cache), 3);
    ck_assert_error(attn_cache_shorten(cache, 4),
                    "attn_cache_shorten: a cache of 3 positions cannot "
                    "keep 4");
    ck_assert(attn_cache_shorten(cache, 0));
    ck_assert_error(attn_cache_keys(tape, cache),
                    "attn_cache_keys: the cache is empty");
    ck_assert_error(attn_cache_values(tape, cache),
                    "attn_cache_values: the cache is empty");
    ck_assert_error(attn_cache_values(NULL, cache),
                    "attn_cache_values: tape is NULL");
    ck_assert_error(attn_cache_new(memory, 1, 0, 4, 4),
                    "attn_cache_new: a size is 0: (1, 0, 4)");
    ck_assert_error(attn_cache_new(NULL, 1, 1, 4, 4),
                    "attn_cache_new: arena is NULL");
}
END_TEST

/* Rank 2 and another batch are not taken for what they are not. */
START_TEST(refuses_other_ranks) {
    attn_cache *cache = attn_cache_new(memory, 1, 5, 4, 4);
    const attn_tensor *flat = attn_tensor_new(memory, ATTN_SHAPE(3, 4));
    ck_assert_error(attn_cache_append(cache, flat, flat),
                    "attn_cache_append: key (3, 4) and value (3, 4) for a "
                    "cache of (1, t, 4) and (1, t, 4)");
    const attn_tensor *two = drawn(2, 3, 4);
    ck_assert_error(attn_cache_append(cache, two, two),
                    "attn_cache_append: key (2, 3, 4) and value (2, 3, 4) "
                    "for a cache of (1, t, 4) and (1, t, 4)");
}
END_TEST

START_TEST(fails_once_without_memory) {
    size_t failures = 0;
    for (attn_cache *cache = NULL; cache == NULL; failures++) {
        attn_arena *own = attn_arena_new();
        catch_errors();
        start_counting(failures + 1);
        WATCH(cache = attn_cache_new(own, 1, 1 << 18, 4, 4));
        start_counting(NEVER);
        ck_assert_int_eq(caught.count, cache == NULL);
        attn_arena_free(own);
    }
    ck_assert_uint_gt(failures, 1);
    attn_cache *cache = attn_cache_new(memory, 2, 1 << 16, 4, 4);
    const attn_tensor *x = drawn(2, 1 << 15, 4);
    ck_assert(attn_cache_append(cache, x, x));
    catch_errors();
    start_counting(1);
    attn_tensor *keys;
    WATCH(keys = attn_cache_keys(tape, cache));
    start_counting(NEVER);
    ck_assert_ptr_null(keys);
    ck_assert_int_eq(caught.count, 1);
    ck_assert_ptr_nonnull(attn_cache_keys(tape, cache));
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("cache");
    TCase *all = tcase_create("cache");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, holds_what_it_was_given);
    tcase_add_test(all, forgets_and_goes_on);
    tcase_add_test(all, a_layer_reads_on);
    tcase_add_test(all, refuses_what_does_not_fit);
    tcase_add_test(all, refuses_other_ranks);
    tcase_add_test(all, fails_once_without_memory);
    suite_add_tcase(suite, all);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
