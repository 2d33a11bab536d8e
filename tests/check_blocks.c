/* The transformer block and sampling: outputs, gradients and first values
   against PyTorch's, and what attention.h promises about mistakes. */
/* link: -Wl,--wrap=aligned_alloc */
#include <math.h>

#include "check_support.h"
#define ONLY_ARENAS_RUN_OUT
#include "scarcity.h"
#include "internal.h"

static golden numbers;

static void open_numbers(void) {
    numbers = golden_read("tests/golden/blocks.golden");
}

static void close_numbers(void) {
    golden_free(&numbers);
}

/* Sums of some tens of products in another order. */
static const double tolerance = 4e-6;

enum { BATCH,
       POSITIONS,
       WIDTH,
       HEADS,
       HIDDEN,
       CAUSAL,
       DROPOUT,
       RELU,
       POST };

static void check_parameters(const attn_parameters *parameters,
                             const char *name, bool gradients) {
    ck_assert_uint_eq(attn_parameters_length(parameters), 12);
    for (size_t i = 0; i < 12; i++) {
        const char *key = attn_parameters_name(parameters, i) + 2;
        const attn_tensor *found = attn_parameters_at(parameters, i);
        if (gradients)
            check_gradient(found,
                           golden_tensor(&numbers, "%s/%s/gradient", name,
                                         key),
                           tolerance, key);
        else
            check_values(found, golden_tensor(&numbers, "%s/%s", name, key),
                         0, key);
    }
}

static void check_case(size_t number, size_t post) {
    char name[32];
    snprintf(name, sizeof name, "block/%zu/%zu", number, post);
    const float *fact = golden_tensor(&numbers, "%s/facts", name)->value;
    const size_t positions = (size_t)fact[POSITIONS];
    attn_torch_generator generator;
    attn_torch_seed(&generator, number);
    attn_tape *tape = attn_tape_new();
    attn_parameters *parameters = attn_parameters_new();
    attn_block_layer block;
    ck_assert(attn_block_new(&block, parameters, "b", &generator,
                             (size_t)fact[WIDTH], (size_t)fact[HEADS],
                             (size_t)fact[HIDDEN],
                             fact[RELU] != 0 ? attn_relu : attn_gelu));
    check_parameters(parameters, name, false);
    attn_tensor *x = golden_tensor(&numbers, "%s/x", name);
    attn_tensor *drawn = attn_tensor_new(attn_tape_arena(tape), x->rank, x->shape);
    attn_torch_normal(&generator, drawn);
    attn_multi_head_options options = {
        .dropout = round((double)fact[DROPOUT] * 10) / 10,
        .generator = &generator};
    if (fact[CAUSAL] != 0)
        options.mask =
            attn_mask_causal(attn_tape_arena(tape), positions, positions);
    attn_tensor *y = post == 1
                         ? attn_block_post_norm(tape, &block, x, &options)
                         : attn_block_pre_norm(tape, &block, x, &options);
    check_values(y, golden_tensor(&numbers, "%s/output", name), tolerance,
                 name);
    ck_assert(attn_backward(tape, y,
                            golden_tensor(&numbers, "%s/wanted", name)));
    check_gradient(x, golden_tensor(&numbers, "%s/x/gradient", name),
                   tolerance, name);
    check_parameters(parameters, name, true);
    attn_parameters_free(parameters);
    attn_tape_free(tape);
}

START_TEST(blocks_agree_with_pytorch) {
    const size_t count =
        (size_t)golden_tensor(&numbers, "block/count")->value[0];
    for (size_t i = 0; i < count; i++)
        for (size_t post = 0; post < 2; post++)
            if (i > 1 || post == i)
                check_case(i, post);
}
END_TEST

START_TEST(a_block_is_made_whole_or_not_at_all) {
    attn_parameters *parameters = attn_parameters_new();
    attn_torch_generator generator, before;
    attn_torch_seed(&generator, 3);
    before = generator;
    attn_block_layer block;
    ck_assert_ptr_nonnull(
        attn_parameters_add(parameters, "b.ff.2.bias", ATTN_SHAPE(4)));
    ck_assert_error(attn_block_new(&block, parameters, "b", &generator, 4,
                                   2, 8, attn_gelu),
                    "attn_parameters_add: the name \"b.ff.2.bias\" is taken");
    ck_assert_uint_eq(attn_parameters_length(parameters), 1);
    ck_assert_mem_eq(&generator, &before, sizeof before);
    ck_assert_error(attn_block_new(&block, parameters, "b", &generator, 4,
                                   3, 8, attn_gelu),
                    "attn_multi_head_new: 3 heads do not divide a width of 4");
    ck_assert_error(attn_block_new(NULL, parameters, "b", &generator, 4, 2,
                                   8, attn_gelu),
                    "attn_block_new: layer is NULL");
    attn_parameters_free(parameters);
}
END_TEST

START_TEST(a_block_refuses_what_does_not_fit) {
    attn_parameters *parameters = attn_parameters_new();
    attn_tape *tape = attn_tape_new();
    attn_torch_generator generator;
    attn_torch_seed(&generator, 0);
    attn_block_layer block;
    ck_assert(attn_block_new(&block, parameters, "b", &generator, 4, 2, 8,
                             attn_gelu));
    ck_assert_error(attn_block_pre_norm(tape, &block, NULL, NULL),
                    "attn_block_pre_norm: x is NULL");
    ck_assert_error(attn_block_post_norm(NULL, &block, NULL, NULL),
                    "attn_block_post_norm: tape is NULL");
    attn_tensor *x =
        attn_tensor_new(attn_tape_arena(tape), ATTN_SHAPE(3, 4));
    ck_assert_error(attn_block_pre_norm(tape, &block, x, NULL),
                    "attn_multi_head_apply: (3, 4) is not (B, T, E)");
    ck_assert_error(attn_block_post_norm(tape, &block, x, NULL),
                    "attn_multi_head_apply: (3, 4) is not (B, T, E)");
    attn_tape_free(tape);
    attn_parameters_free(parameters);
}
END_TEST

/* ---- Memory that runs out ------------------------------------------------ */

typedef attn_tensor *apply_block(attn_tape *, const attn_block_layer *,
                                 const attn_tensor *,
                                 const attn_multi_head_options *);

/* Wide enough for each piece of memory to need a block of its own. */
enum { BROAD = 128,
       LONG = 120 };

START_TEST(blocks_survive_without_memory) {
    static apply_block *const apply[] = {attn_block_pre_norm,
                                         attn_block_post_norm};
    attn_parameters *parameters = attn_parameters_new();
    attn_torch_generator generator, before;
    attn_torch_seed(&generator, 0);
    before = generator;
    attn_block_layer block;
    long blocks = 0;
    for (bool made = false; !made; blocks++) {
        catch_errors();
        allocations_left = blocks;
        made = attn_block_new(&block, parameters, "b", &generator, BROAD, 2,
                              4 * BROAD, attn_gelu);
        allocations_left = -1;
        ck_assert_int_eq(caught.count, made ? 0 : 1);
        if (!made) {
            ck_assert_uint_eq(attn_parameters_length(parameters), 0);
            ck_assert_mem_eq(&generator, &before, sizeof before);
        }
    }
    ck_assert_int_gt(blocks, 1);
    attn_arena *memory = attn_arena_new();
    const attn_tensor *x =
        attn_parameter_new(memory, ATTN_SHAPE(1, LONG, BROAD));
    const attn_multi_head_options options = {.dropout = 0.1,
                                             .generator = &generator};
    for (size_t i = 0; i < 2; i++) {
        attn_tape *tape = attn_tape_new();
        blocks = 0;
        for (bool done = false; !done; blocks++) {
            catch_errors();
            allocations_left = blocks;
            done = apply[i](tape, &block, x, &options) != NULL;
            allocations_left = -1;
            ck_assert_int_eq(caught.count, done ? 0 : 1);
        }
        ck_assert_int_gt(blocks, 4);
        attn_tape_free(tape);
    }
    attn_arena_free(memory);
    attn_parameters_free(parameters);
}
END_TEST

/* ---- Sampling ------------------------------------------------------------ */

START_TEST(samples_follow_the_probabilities) {
    enum { DRAWS = 20000 };
    const float logits[] = {0, 1, -INFINITY, 2};
    const double temperature[] = {0.5, 1, 2};
    attn_torch_generator generator;
    attn_torch_seed(&generator, 0);
    for (size_t k = 0; k < 3; k++) {
        size_t count[4] = {0};
        double share[4], sum = 0;
        for (size_t i = 0; i < 4; i++)
            sum += share[i] = exp((double)logits[i] / temperature[k]);
        for (size_t n = 0; n < DRAWS; n++)
            count[attn_sample(logits, 4, temperature[k], &generator)]++;
        ck_assert_uint_eq(count[2], 0);
        /* Five standard deviations of a count, at most. */
        for (size_t i = 0; i < 4; i++)
            ck_assert_double_eq_tol((double)count[i] / DRAWS, share[i] / sum,
                                    5 * 0.5 / sqrt(DRAWS));
    }
}
END_TEST

START_TEST(the_likeliest_and_the_certain) {
    attn_torch_generator generator, before;
    attn_torch_seed(&generator, 0);
    before = generator;
    const float equal[] = {1, 3, 3}, certain[] = {0, INFINITY, 9};
    ck_assert_uint_eq(attn_sample(equal, 3, 0, &generator), 1);
    ck_assert_uint_eq(attn_sample(certain, 3, 1, &generator), 1);
    ck_assert_mem_eq(&generator, &before, sizeof before);
    const float large[] = {1e30f, -1e30f};
    ck_assert_uint_eq(attn_sample(large, 2, 1, &generator), 0);
    ck_assert_uint_eq(attn_sample(large, 1, 1e-300, &generator), 0);
}
END_TEST

START_TEST(samples_refuse_what_is_no_choice) {
    attn_torch_generator g;
    attn_torch_seed(&g, 0);
    const float logits[] = {1, 2}, bad[] = {1, NAN};
    ck_assert_error(attn_sample(NULL, 2, 1, &g) != SIZE_MAX,
                    "attn_sample: logits is NULL");
    ck_assert_error(attn_sample(logits, 2, 1, NULL) != SIZE_MAX,
                    "attn_sample: generator is NULL");
    ck_assert_error(attn_sample(logits, 0, 1, &g) != SIZE_MAX,
                    "attn_sample: nothing to draw from");
    ck_assert_error(attn_sample(bad, 2, 1, &g) != SIZE_MAX,
                    "attn_sample: a logit is not a number");
    ck_assert_error(
        attn_sample(logits, 2, -1, &g) != SIZE_MAX,
        "attn_sample: the temperature is -1, not a finite number from 0");
    ck_assert_error(
        attn_sample(logits, 2, (double)NAN, &g) != SIZE_MAX,
        "attn_sample: the temperature is nan, not a finite number from 0");
    ck_assert_error(
        attn_sample(logits, 2, (double)INFINITY, &g) != SIZE_MAX,
        "attn_sample: the temperature is inf, not a finite number from 0");
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("blocks");
    TCase *test = tcase_create("blocks");
    tcase_add_unchecked_fixture(test, open_numbers, close_numbers);
    tcase_add_test(test, blocks_agree_with_pytorch);
    tcase_add_test(test, a_block_is_made_whole_or_not_at_all);
    tcase_add_test(test, a_block_refuses_what_does_not_fit);
    tcase_add_test(test, blocks_survive_without_memory);
    tcase_add_test(test, samples_follow_the_probabilities);
    tcase_add_test(test, the_likeliest_and_the_certain);
    tcase_add_test(test, samples_refuse_what_is_no_choice);
    suite_add_tcase(suite, test);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
