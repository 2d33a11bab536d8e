/* Attention over long sequences, which goes by tiles, against PyTorch and
   against the direct path, which is taken when the weights are asked for. */
/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc,--wrap=free */
#include <omp.h>

#include "allocation.h"
#include "check_support.h"

/* Relative to the largest number of a tensor. */
static const double TOLERANCE = 1e-5;

enum kind { NONE, CAUSAL, PADDING, BOTH, RANDOM, WINDOW, NOTHING, KINDS };

/* ---- A call of attention ------------------------------------------------ */

struct sizes {
    size_t batch, queries, keys, width, values, heads;
    float scale;
};

struct call {
    attn_arena *memory;
    attn_tensor *query, *key, *value, *wanted;
    const attn_mask *mask;
    attn_tape *tape;
    attn_tensor *output;
};

static attn_tensor *drawn(attn_arena *memory, attn_torch_generator *g,
                          size_t batch, size_t length, size_t width) {
    attn_tensor *tensor =
        attn_parameter_new(memory, ATTN_SHAPE(batch, length, width));
    attn_torch_normal(g, tensor);
    return tensor;
}

static struct call call_new(struct sizes n) {
    struct call c = {.memory = attn_arena_new(), .tape = attn_tape_new()};
    attn_torch_generator g;
    attn_torch_seed(&g, 0);
    c.query = drawn(c.memory, &g, n.batch, n.queries, n.width);
    c.key = drawn(c.memory, &g, n.batch, n.keys, n.width);
    c.value = drawn(c.memory, &g, n.batch, n.keys, n.values);
    c.wanted = drawn(c.memory, &g, n.batch, n.queries, n.values);
    return c;
}

static void call_free(struct call *c) {
    attn_tape_free(c->tape);
    attn_arena_free(c->memory);
}

static void clear(attn_tensor *tensor) {
    memset(tensor->gradient, 0, attn_tensor_size(tensor) * sizeof(float));
}

/* Forward and backward. Asked for the weights, the direct way. */
static void run(struct call *c, struct sizes n, bool directly) {
    attn_tensor *weights = NULL;
    const attn_attend_options options = {
        .heads = n.heads,
        .mask = c->mask,
        .scale = n.scale,
        .weights = directly ? &weights : NULL};
    clear(c->query);
    clear(c->key);
    clear(c->value);
    c->output =
        attn_attend(c->tape, c->query, c->key, c->value, &options);
    ck_assert_ptr_nonnull(c->output);
    ck_assert(attn_backward(c->tape, c->output, c->wanted));
}

static void check_relative(const float *found, const float *expected,
                           size_t count, const char *what) {
    double largest = 0, apart = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
        apart = fmax(apart, fabs((double)found[i] - expected[i]));
        ck_assert_msg(isnan(found[i]) == isnan(expected[i]),
                      "%s: element %zu is %g, not %g", what, i,
                      (double)found[i], (double)expected[i]);
    }
    ck_assert_msg(apart <= TOLERANCE * largest, "%s: %g apart of %g", what,
                  apart, largest);
}

static void check_gradients(const struct call *found,
                            const struct call *expected) {
    check_relative(found->query->gradient, expected->query->gradient,
                   attn_tensor_size(found->query), "query gradient");
    check_relative(found->key->gradient, expected->key->gradient,
                   attn_tensor_size(found->key), "key gradient");
    check_relative(found->value->gradient, expected->value->gradient,
                   attn_tensor_size(found->value), "value gradient");
}

/* ---- Masks -------------------------------------------------------------- */

static const attn_mask *padding(attn_arena *memory, struct sizes n) {
    size_t *tokens =
        attn_arena_allocate(memory, n.batch * n.keys * sizeof *tokens);
    for (size_t i = 0; i < n.batch * n.keys; i++)
        tokens[i] = i % n.keys < 300 * (i / n.keys) + 7 ? 0 : 1;
    return attn_mask_padding(memory, tokens, n.batch, n.keys, 0);
}

/* Random, but queries 5, 10, ... see nothing; or a window of 40 keys. */
static const attn_mask *pattern(attn_arena *memory, struct sizes n,
                                enum kind kind) {
    bool *keep =
        attn_arena_allocate(memory, n.batch * n.queries * n.keys);
    attn_torch_generator g;
    attn_torch_seed(&g, 1);
    for (size_t b = 0, at = 0; b < n.batch; b++)
        for (size_t i = 0; i < n.queries; i++)
            for (size_t j = 0; j < n.keys; j++, at++)
                keep[at] = kind == WINDOW ? j <= i && i < j + 40
                           : kind == RANDOM
                               ? i % 5 != 0 &&
                                     attn_torch_integer(&g, 0, 2) == 0
                               : false;
    return attn_mask_from_keep(memory, keep, n.batch, n.queries, n.keys);
}

static const attn_mask *mask_of(attn_arena *memory, struct sizes n,
                                enum kind kind) {
    if (kind == NONE)
        return NULL;
    const attn_mask *causal =
        attn_mask_causal(memory, n.queries, n.keys);
    if (kind == CAUSAL)
        return causal;
    if (kind == PADDING)
        return padding(memory, n);
    if (kind == BOTH)
        return attn_mask_both(memory, causal, padding(memory, n));
    return pattern(memory, n, kind);
}

static void check_both_ways(struct sizes n, enum kind kind) {
    struct call tiled = call_new(n), direct = call_new(n);
    tiled.mask = mask_of(tiled.memory, n, kind);
    direct.mask = mask_of(direct.memory, n, kind);
    run(&tiled, n, false);
    run(&direct, n, true);
    check_relative(tiled.output->value, direct.output->value,
                   attn_tensor_size(direct.output), "output");
    check_gradients(&tiled, &direct);
    call_free(&tiled);
    call_free(&direct);
}

/* ---- The same numbers --------------------------------------------------- */

static void check_golden(const golden *file, const char *name) {
    const float *f = golden_tensor(file, "%s/facts", name)->value;
    const struct sizes n = {.batch = 1,
                            .queries = (size_t)f[0],
                            .keys = (size_t)f[1],
                            .width = (size_t)f[2],
                            .values = (size_t)f[3],
                            .heads = (size_t)f[4]};
    struct call c = call_new(n);
    c.mask = mask_of(c.memory, n, f[5] != 0 ? CAUSAL : NONE);
    run(&c, n, false);
    check_values(c.output, golden_tensor(file, "%s/output", name), 2e-6,
                 name);
    check_gradient(c.query, golden_tensor(file, "%s/query-gradient", name),
                   2e-6, name);
    check_gradient(c.key, golden_tensor(file, "%s/key-gradient", name),
                   2e-6, name);
    check_gradient(c.value, golden_tensor(file, "%s/value-gradient", name),
                   2e-6, name);
    call_free(&c);
}

START_TEST(agrees_with_pytorch) {
    golden file = golden_read("tests/golden/tiles.golden");
    check_golden(&file, "open");
    check_golden(&file, "causal");
    golden_free(&file);
}
END_TEST

START_TEST(agrees_around_the_borders) {
    static const size_t queries[] = {512, 575, 576, 577};
    static const size_t keys[] = {512, 513, 767, 768, 769};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 5; j++) {
            const struct sizes n = {1, queries[i], keys[j], 8, 4, 2, 0};
            check_both_ways(n, NONE);
            check_both_ways(n, CAUSAL);
        }
}
END_TEST

START_TEST(agrees_under_every_mask) {
    for (int kind = NONE; kind < KINDS; kind++) {
        check_both_ways((struct sizes){2, 600, 600, 9, 6, 3, 0},
                        (enum kind)kind);
        check_both_ways((struct sizes){2, 700, 530, 9, 6, 3, 0},
                        (enum kind)kind);
        check_both_ways((struct sizes){2, 530, 700, 9, 6, 3, 0},
                        (enum kind)kind);
    }
}
END_TEST

START_TEST(agrees_for_other_scales_and_widths) {
    check_both_ways((struct sizes){1, 512, 512, 1, 1, 1, 0}, NONE);
    check_both_ways((struct sizes){1, 512, 512, 256, 300, 2, 0}, CAUSAL);
    check_both_ways((struct sizes){1, 512, 512, 8, 8, 1, 20}, CAUSAL);
    check_both_ways((struct sizes){1, 512, 512, 8, 8, 1, -1}, CAUSAL);
}
END_TEST

/* ---- Rows that are not ordinary ----------------------------------------- */

static bool all_zero(const float *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != 0)
            return false;
    return true;
}

START_TEST(gives_zeros_for_nothing_to_see) {
    const struct sizes n = {2, 600, 520, 8, 8, 2, 0};
    struct call c = call_new(n);
    c.mask = mask_of(c.memory, n, RANDOM);
    run(&c, n, false);
    for (size_t i = 0; i < 600; i += 5) {
        ck_assert(all_zero(c.output->value + i * 8, 8));
        ck_assert(all_zero(c.query->gradient + i * 8, 8));
    }
    c.mask = mask_of(c.memory, n, NOTHING);
    run(&c, n, false);
    ck_assert(all_zero(c.output->value, attn_tensor_size(c.output)));
    ck_assert(all_zero(c.query->gradient, attn_tensor_size(c.query)));
    ck_assert(all_zero(c.key->gradient, attn_tensor_size(c.key)));
    ck_assert(all_zero(c.value->gradient, attn_tensor_size(c.value)));
    call_free(&c);
}
END_TEST

START_TEST(passes_on_what_is_not_finite) {
    const struct sizes n = {1, 520, 600, 4, 4, 1, 0};
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < 3; k++) {
        struct call tiled = call_new(n), direct = call_new(n);
        tiled.query->value[4 * 100] = odd[k];
        direct.query->value[4 * 100] = odd[k];
        run(&tiled, n, false);
        run(&direct, n, true);
        for (size_t i = 0; i < 520; i++)
            for (size_t c = 0; c < 4; c++)
                ck_assert_int_eq(isnan(tiled.output->value[4 * i + c]),
                                 i == 100);
        check_relative(tiled.output->value, direct.output->value, 4 * 520,
                       "output");
        call_free(&tiled);
        call_free(&direct);
    }
}
END_TEST

/* Scores so far apart that all but one weight of a row are zero. */
START_TEST(survives_large_scores) {
    const struct sizes n = {1, 512, 512, 4, 4, 1, 1e4f};
    struct call c = call_new(n);
    run(&c, n, false);
    for (size_t i = 0; i < attn_tensor_size(c.output); i++)
        ck_assert(isfinite(c.output->value[i]));
    call_free(&c);
}
END_TEST

/* ---- Threads, gradients, memory ----------------------------------------- */

START_TEST(has_the_same_digits_on_any_number_of_threads) {
    const struct sizes n = {2, 600, 700, 12, 12, 3, 0};
    struct call one = call_new(n), three = call_new(n);
    one.mask = mask_of(one.memory, n, CAUSAL);
    three.mask = mask_of(three.memory, n, CAUSAL);
    omp_set_num_threads(1);
    run(&one, n, false);
    omp_set_num_threads(3);
    run(&three, n, false);
    const attn_tensor *const a[] = {one.query, one.key, one.value};
    const attn_tensor *const b[] = {three.query, three.key, three.value};
    for (size_t i = 0; i < 3; i++)
        ck_assert_mem_eq(a[i]->gradient, b[i]->gradient,
                         attn_tensor_size(a[i]) * sizeof(float));
    ck_assert_mem_eq(one.output->value, three.output->value,
                     attn_tensor_size(one.output) * sizeof(float));
    call_free(&one);
    call_free(&three);
}
END_TEST

START_TEST(gives_gradients_to_those_who_want_them) {
    const struct sizes n = {1, 512, 512, 8, 8, 2, 0};
    struct call all = call_new(n);
    run(&all, n, false);
    for (size_t which = 0; which < 3; which++) {
        struct call one = call_new(n);
        attn_tensor *const input[] = {one.query, one.key, one.value};
        attn_tensor *const full[] = {all.query, all.key, all.value};
        for (size_t i = 0; i < 3; i++)
            if (i != which)
                input[i]->gradient = NULL;
        one.output = attn_attend(one.tape, one.query, one.key, one.value,
                                 &(attn_attend_options){.heads = 2});
        ck_assert(attn_backward(one.tape, one.output, one.wanted));
        ck_assert_mem_eq(input[which]->gradient, full[which]->gradient,
                         attn_tensor_size(full[which]) * sizeof(float));
        call_free(&one);
    }
    call_free(&all);
}
END_TEST

/* Self-attention: one tensor asks, is asked and is handed over. */
START_TEST(adds_up_when_all_three_are_one) {
    const struct sizes n = {1, 600, 600, 8, 8, 2, 0};
    struct call tiled = call_new(n), direct = call_new(n);
    tiled.key = tiled.value = tiled.query;
    direct.key = direct.value = direct.query;
    run(&tiled, n, false);
    run(&direct, n, true);
    check_relative(tiled.query->gradient, direct.query->gradient,
                   attn_tensor_size(direct.query), "gradient");
    call_free(&tiled);
    call_free(&direct);
}
END_TEST

static size_t peak_of(size_t length) {
    const struct sizes n = {1, length, length, 16, 16, 2, 0};
    struct call c = call_new(n);
    c.mask = mask_of(c.memory, n, CAUSAL);
    run(&c, n, false);
    const size_t peak = attn_arena_peak(attn_tape_arena(c.tape));
    call_free(&c);
    return peak;
}

START_TEST(has_no_array_that_grows_with_the_square) {
    omp_set_num_threads(2);
    const size_t first = peak_of(1024), second = peak_of(2048),
                 third = peak_of(4096);
    ck_assert_uint_lt(third, 4096 * 4096);
    ck_assert_uint_lt(third - second, 3 * (second - first));
}
END_TEST

/* A shape is refused before the ways part. */
START_TEST(refuses_what_does_not_fit) {
    struct call c = call_new((struct sizes){1, 600, 700, 8, 8, 1, 0});
    attn_tensor *short_value =
        attn_parameter_new(c.memory, ATTN_SHAPE(1, 600, 8));
    ck_assert_error(
        attn_attend(c.tape, c.query, c.key, short_value, NULL),
        "attn_attend: there are not as many values as keys: "
        "query (1, 600, 8), key (1, 700, 8), value (1, 600, 8)");
    const attn_mask *mask = attn_mask_causal(c.memory, 700, 700);
    ck_assert_error(attn_attend(c.tape, c.query, c.key, c.value,
                                &(attn_attend_options){.mask = mask}),
                    "attn_attend: a mask of (any, 700, 700) for scores "
                    "of (1, 600, 700)");
    call_free(&c);
}
END_TEST

/* Whichever allocation is refused, the call says so once, and the next
   one works. */
START_TEST(fails_once_without_memory) {
    const struct sizes n = {1, 600, 600, 8, 8, 2, 0};
    struct call c = call_new(n);
    c.mask = mask_of(c.memory, n, CAUSAL);
    const attn_attend_options options = {.heads = 2, .mask = c.mask};
    size_t failures = 0;
    for (attn_tensor *output = NULL; output == NULL; failures++) {
        attn_tape *tape = attn_tape_new();
        catch_errors();
        start_counting(failures + 1);
        WATCH(output = attn_attend(tape, c.query, c.key, c.value,
                                   &options));
        start_counting(NEVER);
        ck_assert_int_eq(caught.count, output == NULL);
        if (output == NULL)
            ck_assert_int_eq(
                strncmp(caught.last, "attn_attend: no memory", 22), 0);
        attn_tape_free(tape);
    }
    ck_assert_uint_gt(failures, 2);
    call_free(&c);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("tiles");
    TCase *numbers = tcase_create("the same numbers");
    tcase_set_timeout(numbers, 120);
    tcase_add_test(numbers, agrees_with_pytorch);
    tcase_add_test(numbers, agrees_around_the_borders);
    tcase_add_test(numbers, agrees_under_every_mask);
    tcase_add_test(numbers, agrees_for_other_scales_and_widths);
    suite_add_tcase(suite, numbers);
    TCase *rows = tcase_create("rows that are not ordinary");
    tcase_add_test(rows, gives_zeros_for_nothing_to_see);
    tcase_add_test(rows, passes_on_what_is_not_finite);
    tcase_add_test(rows, survives_large_scores);
    suite_add_tcase(suite, rows);
    TCase *rest = tcase_create("threads, gradients, memory");
    tcase_set_timeout(rest, 120);
    tcase_add_test(rest, has_the_same_digits_on_any_number_of_threads);
    tcase_add_test(rest, gives_gradients_to_those_who_want_them);
    tcase_add_test(rest, adds_up_when_all_three_are_one);
    tcase_add_test(rest, has_no_array_that_grows_with_the_square);
    tcase_add_test(rest, refuses_what_does_not_fit);
    tcase_add_test(rest, fails_once_without_memory);
    suite_add_tcase(suite, rest);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
