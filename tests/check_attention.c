/* Softmax and attention, forward and backward, against PyTorch and
   against what attention.h promises. */
/* link: -Wl,--wrap=aligned_alloc */
#include <float.h>
#include <omp.h>

#include "check_support.h"
#define ONLY_ARENAS_RUN_OUT
#include "scarcity.h"
#include "internal.h"

/* Weights and outputs are at most a few units apart from the double
   result: rows of up to 1500 terms, each rounded to 2^-24. */
static const double TOLERANCE = 2e-6;

enum kind { NONE, CAUSAL, PADDING, BOTH, RANDOM, EMPTY_ROWS, NOTHING };

/* ---- Helpers ------------------------------------------------------------
 */

/* A mask from the golden file's ones and zeros, or NULL. */
static attn_mask *golden_mask(const golden *file, const char *name) {
    if (!golden_has(file, "%s/keep", name))
        return NULL;
    const attn_tensor *keep = golden_tensor(file, "%s/keep", name);
    const size_t size = attn_tensor_size(keep);
    bool *shown = attn_arena_allocate(file->memory, size);
    for (size_t i = 0; i < size; i++)
        shown[i] = keep->value[i] != 0;
    return attn_mask_from_keep(file->memory, shown, keep->shape[0],
                               keep->shape[1], keep->shape[2]);
}

static void clear_gradient(attn_tensor *tensor) {
    memset(tensor->gradient, 0, attn_tensor_size(tensor) * sizeof(float));
}

static bool same_bits(const float *a, const float *b, size_t count) {
    return memcmp(a, b, count * sizeof *a) == 0;
}

static void check_zero(const float *numbers, size_t count,
                       const char *what) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(numbers[i] == 0, "%s: element %zu is %g", what, i,
                      (double)numbers[i]);
}

static attn_tensor *normal(attn_arena *memory, attn_torch_generator *g,
                           size_t rank, const size_t shape[]) {
    attn_tensor *tensor = attn_parameter_new(memory, rank, shape);
    attn_torch_normal(g, tensor);
    return tensor;
}

/* ---- PyTorch's numbers --------------------------------------------------
 */

static void check_softmax_case(const golden *file, size_t number) {
    char name[40];
    snprintf(name, sizeof name, "softmax/%zu", number);
    attn_tensor *scores = golden_tensor(file, "%s/scores", name);
    const attn_tensor *wanted = golden_tensor(file, "%s/wanted", name);
    attn_tape *tape = attn_tape_new();
    attn_tensor *weights =
        attn_softmax(tape, scores, golden_mask(file, name));
    check_values(weights, golden_tensor(file, "%s/weights", name),
                 TOLERANCE, name);
    ck_assert(attn_backward(tape, weights, wanted));
    check_gradient(scores, golden_tensor(file, "%s/gradient", name),
                   TOLERANCE, name);
    attn_tape_free(tape);
}

START_TEST(softmax_agrees_with_pytorch) {
    golden file = golden_read("tests/golden/attention.golden");
    const size_t count =
        (size_t)golden_tensor(&file, "softmax/count")->value[0];
    for (size_t i = 0; i < count; i++)
        check_softmax_case(&file, i);
    golden_free(&file);
}
END_TEST

/* What one case of attention is made of. */
struct example {
    char name[40];
    attn_tensor *query, *key, *value, *wanted, *wanted_weights;
    attn_attend_options options;
    enum kind kind;
    attn_tape *tape;
    attn_tensor *weights, *output;
};

static struct example example_new(const golden *file, size_t number) {
    struct example e = {.tape = attn_tape_new()};
    snprintf(e.name, sizeof e.name, "attend/%zu", number);
    const float *facts = golden_tensor(file, "%s/facts", e.name)->value;
    e.query = golden_tensor(file, "%s/query", e.name);
    e.key = golden_tensor(file, "%s/key", e.name);
    e.value = golden_tensor(file, "%s/value", e.name);
    e.wanted = golden_tensor(file, "%s/wanted", e.name);
    e.wanted_weights = golden_tensor(file, "%s/wanted-weights", e.name);
    e.options.heads = (size_t)facts[1];
    e.options.scale = facts[6];
    e.options.mask = golden_mask(file, e.name);
    e.kind = (enum kind)facts[7];
    return e;
}

static void run_example(struct example *e, bool ask_for_weights) {
    e->options.weights = ask_for_weights ? &e->weights : NULL;
    attn_tape_reset(e->tape);
    e->output =
        attn_attend(e->tape, e->query, e->key, e->value, &e->options);
    ck_assert_ptr_nonnull(e->output);
}

static void check_gradients(const golden *file, const struct example *e) {
    check_gradient(e->query,
                   golden_tensor(file, "%s/query-gradient", e->name),
                   TOLERANCE, e->name);
    check_gradient(e->key, golden_tensor(file, "%s/key-gradient", e->name),
                   TOLERANCE, e->name);
    check_gradient(e->value,
                   golden_tensor(file, "%s/value-gradient", e->name),
                   TOLERANCE, e->name);
}

static void check_attend_case(const golden *file, size_t number) {
    struct example e = example_new(file, number);
    run_example(&e, true);
    check_values(e.output, golden_tensor(file, "%s/output", e.name),
                 TOLERANCE, e.name);
    check_values(e.weights, golden_tensor(file, "%s/weights", e.name),
                 TOLERANCE, e.name);
    /* The loss wants something of the weights and of the output. */
    const size_t count = attn_tensor_size(e.weights);
    for (size_t i = 0; i < count; i++)
        e.weights->gradient[i] += e.wanted_weights->value[i];
    ck_assert(attn_backward(e.tape, e.output, e.wanted));
    check_gradients(file, &e);
    attn_tape_free(e.tape);
}

static size_t attend_cases(const golden *file) {
    return (size_t)golden_tensor(file, "attend/count")->value[0];
}

START_TEST(attend_agrees_with_pytorch) {
    golden file = golden_read("tests/golden/attention.golden");
    for (size_t i = 0; i < attend_cases(&file); i++)
        check_attend_case(&file, i);
    golden_free(&file);
}
END_TEST

/* ---- The same numbers on every path -------------------------------------
 */

START_TEST(weights_kept_or_not_give_the_same_bits) {
    golden file = golden_read("tests/golden/attention.golden");
    for (size_t i = 0; i < attend_cases(&file); i++) {
        struct example e = example_new(&file, i);
        run_example(&e, true);
        const size_t size = attn_tensor_size(e.output);
        float *asked =
            attn_arena_allocate(file.memory, size * sizeof *asked);
        memcpy(asked, e.output->value, size * sizeof *asked);
        run_example(&e, false);
        ck_assert(same_bits(asked, e.output->value, size));
        attn_tape_record(e.tape, false);
        run_example(&e, false);
        ck_assert_ptr_null(e.output->gradient);
        ck_assert(same_bits(asked, e.output->value, size));
        attn_tape_free(e.tape);
    }
    golden_free(&file);
}
END_TEST

/* The mask that the case's kind names, made by its own maker. */
static attn_mask *named_mask(const struct example *e, attn_arena *memory) {
    const size_t batch = e->query->shape[0];
    const size_t queries = e->query->shape[1], keys = e->key->shape[1];
    size_t *tokens =
        attn_arena_allocate(memory, batch * keys * sizeof *tokens);
    for (size_t b = 0; b < batch; b++)
        for (size_t j = 0; j < keys; j++)
            tokens[b * keys + j] = j + b + 1 < keys;
    if (e->kind == CAUSAL)
        return attn_mask_causal(memory, queries, keys);
    attn_mask *padding = attn_mask_padding(memory, tokens, batch, keys, 0);
    if (e->kind == PADDING)
        return padding;
    return attn_mask_both(memory, padding,
                          attn_mask_causal(memory, queries, keys));
}

START_TEST(named_masks_do_what_their_tables_do) {
    golden file = golden_read("tests/golden/attention.golden");
    size_t tried = 0;
    for (size_t i = 0; i < attend_cases(&file); i++) {
        struct example e = example_new(&file, i);
        if (e.kind == CAUSAL || e.kind == PADDING || e.kind == BOTH) {
            tried++;
            e.options.mask = named_mask(&e, file.memory);
            run_example(&e, true);
            check_values(e.weights,
                         golden_tensor(&file, "%s/weights", e.name),
                         TOLERANCE, e.name);
        }
        attn_tape_free(e.tape);
    }
    ck_assert_uint_ge(tried, 5);
    golden_free(&file);
}
END_TEST

START_TEST(a_batch_of_one_may_go_without_saying) {
    attn_tape *tape = attn_tape_new();
    attn_arena *memory = attn_tape_arena(tape);
    attn_torch_generator g;
    attn_torch_seed(&g, 3);
    attn_tensor *q = normal(memory, &g, ATTN_SHAPE(1, 3, 4));
    attn_tensor *k = normal(memory, &g, ATTN_SHAPE(1, 5, 4));
    attn_tensor *v = normal(memory, &g, ATTN_SHAPE(1, 5, 2));
    attn_tensor *weights = NULL;
    const attn_attend_options options = {.heads = 2, .weights = &weights};
    attn_tensor *three = attn_attend(tape, q, k, v, &options);
    attn_tensor *two =
        attn_attend(tape, attn_reshape(tape, q, ATTN_SHAPE(3, 4)),
                    attn_reshape(tape, k, ATTN_SHAPE(5, 4)),
                    attn_reshape(tape, v, ATTN_SHAPE(5, 2)), &options);
    ck_assert_uint_eq(two->rank, 2);
    ck_assert_uint_eq(two->shape[0], 3);
    ck_assert_uint_eq(two->shape[1], 2);
    ck_assert(same_bits(two->value, three->value, 6));
    ck_assert_uint_eq(weights->rank, 4);
    ck_assert_uint_eq(weights->shape[0], 1);
    ck_assert_uint_eq(weights->shape[1], 2);
    attn_tape_free(tape);
}
END_TEST

/* ---- Every small shape, against three loops in double
 * -------------------- */

static void attend_by_loops(const attn_tensor *q, const attn_tensor *k,
                            const attn_tensor *v, size_t i,
                            double output[]) {
    const size_t keys = k->shape[0], width = k->shape[1];
    double score[16], largest = -HUGE_VAL, sum = 0;
    for (size_t j = 0; j < keys; j++) {
        score[j] = 0;
        for (size_t c = 0; c < width; c++)
            score[j] +=
                (double)q->value[i * width + c] * k->value[j * width + c];
        score[j] /= sqrt((double)width);
        largest = fmax(largest, score[j]);
    }
    for (size_t j = 0; j < keys; j++)
        sum += exp(score[j] - largest);
    for (size_t c = 0; c < v->shape[1]; c++) {
        output[c] = 0;
        for (size_t j = 0; j < keys; j++)
            output[c] += exp(score[j] - largest) / sum *
                         v->value[j * v->shape[1] + c];
    }
}

START_TEST(every_small_shape) {
    attn_tape *tape = attn_tape_new();
    attn_torch_generator g;
    attn_torch_seed(&g, 4);
    for (size_t code = 0; code < 4 * 9 * 5 * 5; code++) {
        const size_t queries = code % 4 + 1, keys = code / 4 % 9 + 1;
        const size_t width = code / 36 % 5 + 1, values = code / 180 + 1;
        attn_arena *memory = attn_tape_arena(tape);
        attn_tensor *q = normal(memory, &g, ATTN_SHAPE(queries, width));
        attn_tensor *k = normal(memory, &g, ATTN_SHAPE(keys, width));
        attn_tensor *v = normal(memory, &g, ATTN_SHAPE(keys, values));
        attn_tensor *output = attn_attend(tape, q, k, v, NULL);
        for (size_t i = 0; i < queries; i++) {
            double expected[8];
            attend_by_loops(q, k, v, i, expected);
            for (size_t c = 0; c < values; c++)
                ck_assert_double_eq_tol(output->value[i * values + c],
                                        expected[c], TOLERANCE);
        }
        attn_tape_reset(tape);
    }
    attn_tape_free(tape);
}
END_TEST

/* ---- Digits and threads
 * -------------------------------------------------- */

enum { T = 150, E = 64, BATCH = 2 };

/* Output and the gradients of all three inputs, one after the other. */
static void attend_with_threads(int threads, float *results) {
    const size_t size = (size_t)BATCH * T * E;
    attn_tape *tape = attn_tape_new();
    attn_arena *memory = attn_tape_arena(tape);
    attn_torch_generator g;
    attn_torch_seed(&g, 5);
    attn_tensor *x[4];
    for (size_t i = 0; i < 4; i++)
        x[i] = normal(memory, &g, ATTN_SHAPE(BATCH, T, E));
    const attn_attend_options options = {
        .heads = 4, .mask = attn_mask_causal(memory, T, T)};
    omp_set_num_threads(threads);
    attn_tensor *output = attn_attend(tape, x[0], x[1], x[2], &options);
    ck_assert(attn_backward(tape, output, x[3]));
    memcpy(results, output->value, size * sizeof *results);
    for (size_t i = 0; i < 3; i++)
        memcpy(results + (i + 1) * size, x[i]->gradient,
               size * sizeof *results);
    attn_tape_free(tape);
}

START_TEST(threads_do_not_change_a_digit) {
    const size_t count = (size_t)4 * BATCH * T * E;
    float *one = malloc(count * sizeof *one);
    float *many = malloc(count * sizeof *many);
    attend_with_threads(1, one);
    for (int threads = 2; threads <= 5; threads++) {
        attend_with_threads(threads, many);
        ck_assert(same_bits(one, many, count));
    }
    free(one);
    free(many);
}
END_TEST

/* More threads on the way back than there were on the way forward. */
START_TEST(threads_may_change_on_the_way) {
    attn_tape *tape = attn_tape_new();
    attn_arena *memory = attn_tape_arena(tape);
    attn_torch_generator g;
    attn_torch_seed(&g, 5);
    attn_tensor *x = normal(memory, &g, ATTN_SHAPE(BATCH, T, E));
    omp_set_num_threads(1);
    attn_tensor *output = attn_attend(tape, x, x, x, NULL);
    omp_set_num_threads(4);
    ck_assert(attn_backward(tape, output, x));
    attn_tape_free(tape);
}
END_TEST

/* ---- One tensor in three parts
 * ------------------------------------------- */

START_TEST(gradients_of_one_tensor_in_three_parts_add_up) {
    attn_tape *tape = attn_tape_new();
    attn_arena *memory = attn_tape_arena(tape);
    attn_torch_generator g;
    attn_torch_seed(&g, 6);
    attn_tensor *x = normal(memory, &g, ATTN_SHAPE(2, 7, 6));
    attn_tensor *wanted = normal(memory, &g, ATTN_SHAPE(2, 7, 6));
    const size_t size = attn_tensor_size(x);
    const attn_attend_options options = {.heads = 3};
    attn_tensor *part[3];
    for (size_t i = 0; i < 3; i++) {
        part[i] = attn_parameter_new(memory, ATTN_SHAPE(2, 7, 6));
        memcpy(part[i]->value, x->value, size * sizeof(float));
    }
    ck_assert(
        attn_backward(tape, attn_attend(tape, x, x, x, &options), wanted));
    ck_assert(attn_backward(
        tape, attn_attend(tape, part[0], part[1], part[2], &options),
        wanted));
    for (size_t i = 0; i < size; i++)
        ck_assert_double_eq_tol(x->gradient[i],
                                (double)part[0]->gradient[i] +
                                    part[1]->gradient[i] +
                                    part[2]->gradient[i],
                                TOLERANCE);
    attn_tape_free(tape);
}
END_TEST

START_TEST(only_who_wants_a_gradient_gets_one) {
    attn_tape *tape = attn_tape_new();
    attn_arena *memory = attn_tape_arena(tape);
    attn_torch_generator g;
    attn_torch_seed(&g, 7);
    attn_tensor *x[3], *alone[3];
    for (size_t i = 0; i < 3; i++)
        x[i] = normal(memory, &g, ATTN_SHAPE(4, 5));
    attn_tensor *wanted = normal(memory, &g, ATTN_SHAPE(4, 5));
    ck_assert(attn_backward(tape, attn_attend(tape, x[0], x[1], x[2], NULL),
                            wanted));
    for (size_t which = 0; which < 3; which++) {
        for (size_t i = 0; i < 3; i++)
            alone[i] =
                attn_tensor_from(memory, x[i]->value, ATTN_SHAPE(4, 5));
        alone[which] = attn_parameter_new(memory, ATTN_SHAPE(4, 5));
        memcpy(alone[which]->value, x[which]->value, 20 * sizeof(float));
        ck_assert(attn_backward(
            tape, attn_attend(tape, alone[0], alone[1], alone[2], NULL),
            wanted));
        ck_assert(
            same_bits(alone[which]->gradient, x[which]->gradient, 20));
    }
    attn_tape_free(tape);
}
END_TEST

START_TEST(gradients_are_added) {
    attn_tape *tape = attn_tape_new();
    attn_torch_generator g;
    attn_torch_seed(&g, 8);
    attn_tensor *x = normal(attn_tape_arena(tape), &g, ATTN_SHAPE(3, 2));
    float once[6];
    ck_assert(attn_backward(tape, attn_attend(tape, x, x, x, NULL), x));
    memcpy(once, x->gradient, sizeof once);
    ck_assert(attn_backward(tape, attn_attend(tape, x, x, x, NULL), x));
    for (size_t i = 0; i < 6; i++)
        ck_assert_float_eq_tol(x->gradient[i], 2 * once[i], 1e-6f);
    clear_gradient(x);
    ck_assert(attn_backward(tape, attn_softmax(tape, x, NULL), x));
    memcpy(once, x->gradient, sizeof once);
    ck_assert(attn_backward(tape, attn_softmax(tape, x, NULL), x));
    for (size_t i = 0; i < 6; i++)
        ck_assert_float_eq_tol(x->gradient[i], 2 * once[i], 1e-6f);
    attn_tape_free(tape);
}
END_TEST

/* ---- Nothing to see, infinities, NaN
 * ------------------------------------- */

START_TEST(nothing_to_see_is_silent) {
    attn_tape *tape = attn_tape_new();
    attn_arena *memory = attn_tape_arena(tape);
    attn_torch_generator g;
    attn_torch_seed(&g, 9);
    attn_tensor *q = normal(memory, &g, ATTN_SHAPE(1, 3, 4));
    attn_tensor *k = normal(memory, &g, ATTN_SHAPE(1, 2, 4));
    attn_tensor *v = normal(memory, &g, ATTN_SHAPE(1, 2, 4));
    attn_tensor *wanted = normal(memory, &g, ATTN_SHAPE(1, 3, 4));
    attn_tensor *weights;
    static const bool blocked[6] = {false, true, true, true, false, false};
    const attn_attend_options options = {
        .heads = 2,
        .weights = &weights,
        .mask = attn_mask_from_blocked(memory, blocked, 1, 3, 2)};
    attn_tensor *output = attn_attend(tape, q, k, v, &options);
    check_zero(output->value + 4, 4, "output of the blind query");
    check_zero(weights->value + 2, 2, "its weights, head 0");
    check_zero(weights->value + 8, 2, "its weights, head 1");
    for (size_t i = 0; i < 12; i++)
        wanted->value[i] *= 1e30f;
    ck_assert(attn_backward(tape, output, wanted));
    check_zero(q->gradient + 4, 4, "gradient of the blind query");
    for (size_t i = 0; i < 8; i++)
        ck_assert(isfinite(k->gradient[i]) && isfinite(v->gradient[i]));
    attn_tape_free(tape);
}
END_TEST

/* Softmax of one row of four, of which the mask hides some. */
static const float *softmax_of(attn_tape *tape, const float scores[4],
                               const bool blocked[4]) {
    attn_arena *memory = attn_tape_arena(tape);
    attn_mask *mask = NULL;
    if (blocked != NULL)
        mask = attn_mask_from_blocked(memory, blocked, 1, 1, 4);
    return attn_softmax(tape,
                        attn_tensor_from(memory, scores, ATTN_SHAPE(1, 4)),
                        mask)
        ->value;
}

START_TEST(strange_scores) {
    attn_tape *tape = attn_tape_new();
    const float low = -INFINITY;
    const float *w = softmax_of(tape, (float[]){low, 1, low, 1}, NULL);
    ck_assert(same_bits(w, (float[]){0, 0.5f, 0, 0.5f}, 4));
    w = softmax_of(tape, (float[]){low, low, low, low}, NULL);
    ck_assert(same_bits(w, (float[]){0, 0, 0, 0}, 4));
    w = softmax_of(tape, (float[]){FLT_MAX, -FLT_MAX, 0, FLT_MAX}, NULL);
    ck_assert(same_bits(w, (float[]){0.5f, 0, 0, 0.5f}, 4));
    w = softmax_of(tape, (float[]){1e4f, 1e4f - 1, -1e4f, 0}, NULL);
    ck_assert_float_eq_tol(w[0], 0.7310586f, 1e-6f);
    const float bad[] = {INFINITY, NAN, -NAN};
    for (size_t i = 0; i < 3; i++) {
        w = softmax_of(tape, (float[]){1, 2, bad[i], 3}, NULL);
        for (size_t j = 0; j < 4; j++)
            ck_assert_float_nan(w[j]);
        w = softmax_of(tape, (float[]){low, low, bad[i], low}, NULL);
        for (size_t j = 0; j < 4; j++)
            ck_assert_float_nan(w[j]);
        w = softmax_of(tape, (float[]){1, 1, bad[i], low},
                       (bool[]){false, false, true, false});
        ck_assert(same_bits(w, (float[]){0.5f, 0.5f, 0, 0}, 4));
    }
    attn_tape_free(tape);
}
END_TEST

START_TEST(strange_rows_do_not_spread) {
    attn_tape *tape = attn_tape_new();
    attn_arena *memory = attn_tape_arena(tape);
    const float numbers[] = {1, NAN, 2, INFINITY, 3};
    attn_tensor *q = attn_tensor_from(memory, numbers, ATTN_SHAPE(5, 1));
    attn_tensor *k =
        attn_tensor_from(memory, (float[]){1, 2}, ATTN_SHAPE(2, 1));
    attn_tensor *output = attn_attend(tape, q, k, k, NULL);
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(isfinite(output->value[i]) != 0, i % 2 == 0);
    attn_tape_free(tape);
}
END_TEST

/* ---- The exponential and the entropy
 * ------------------------------------- */

/* In units of the last place, at most what its comment promises. */
START_TEST(the_exponential_is_good_to_the_last_place) {
    double worst = 0;
    for (float x = -103; x < 88.7f; x += 0.0007f) {
        const double exact = exp((double)x);
        const double unit =
            fmax(ldexp(1, ilogb(exact) - 23), ldexp(1, -149));
        worst =
            fmax(worst, fabs((double)attn_exponential(x) - exact) / unit);
    }
    ck_assert_double_lt(worst, 1.25);
    ck_assert_float_eq(attn_exponential(0), 1);
    ck_assert_float_eq(attn_exponential(-INFINITY), 0);
    ck_assert_float_eq(attn_exponential(-FLT_MAX), 0);
    ck_assert_float_infinite(attn_exponential(INFINITY));
    ck_assert_float_infinite(attn_exponential(89));
    ck_assert_float_nan(attn_exponential(NAN));
}
END_TEST

START_TEST(entropy_of_weights) {
    ck_assert_float_eq(attn_entropy((float[]){1}, 1), 0);
    ck_assert_float_eq(attn_entropy((float[]){0, 1, 0}, 3), 0);
    ck_assert_float_eq(attn_entropy((float[]){0.5f, 0, 0.5f}, 3), 1);
    float even[8];
    for (size_t i = 0; i < 8; i++)
        even[i] = 0.125f;
    ck_assert_float_eq(attn_entropy(even, 8), 3);
    ck_assert_float_nan(attn_entropy((float[]){NAN, 0.5f}, 2));
    ck_assert_float_eq(attn_entropy(even, 0), 0);
}
END_TEST

/* ---- What is refused
 * ------------------------------------------------------ */

static attn_tape *tape;
static attn_arena *memory;

static void make_tape(void) {
    tape = attn_tape_new();
    memory = attn_tape_arena(tape);
}

static void free_tape(void) {
    attn_set_error_handler(NULL, NULL);
    attn_tape_free(tape);
}

static attn_tensor *zeros(size_t rank, const size_t shape[]) {
    return attn_parameter_new(memory, rank, shape);
}

START_TEST(null_is_refused) {
    attn_tensor *x = zeros(ATTN_SHAPE(2, 2));
    ck_assert_error(attn_softmax(NULL, x, NULL),
                    "attn_softmax: tape is NULL");
    ck_assert_error(attn_softmax(tape, NULL, NULL),
                    "attn_softmax: scores is NULL");
    ck_assert_error(attn_attend(NULL, x, x, x, NULL),
                    "attn_attend: tape is NULL");
    ck_assert_error(attn_attend(tape, NULL, x, x, NULL),
                    "attn_attend: query is NULL");
    ck_assert_error(attn_attend(tape, x, NULL, x, NULL),
                    "attn_attend: key is NULL");
    ck_assert_error(attn_attend(tape, x, x, NULL, NULL),
                    "attn_attend: value is NULL");
    catch_errors();
    ck_assert_float_nan(attn_entropy(NULL, 3));
    ck_assert_str_eq(caught.last, "attn_entropy: weights is NULL");
}
END_TEST

START_TEST(wrong_shapes_are_refused) {
    attn_tensor *x = zeros(ATTN_SHAPE(2, 3, 4));
    ck_assert_error(attn_attend(tape, x, zeros(ATTN_SHAPE(3, 4)), x, NULL),
                    "attn_attend: not all are (T, E), or all (B, T, E): "
                    "query (2, 3, 4), key (3, 4), value (2, 3, 4)");
    attn_tensor *row = zeros(ATTN_SHAPE(4));
    ck_assert_error(attn_attend(tape, row, row, row, NULL),
                    "attn_attend: not all are (T, E), or all (B, T, E): "
                    "query (4), key (4), value (4)");
    ck_assert_error(
        attn_attend(tape, x, zeros(ATTN_SHAPE(1, 3, 4)), x, NULL),
        "attn_attend: batches differ: "
        "query (2, 3, 4), key (1, 3, 4), value (2, 3, 4)");
    ck_assert_error(
        attn_attend(tape, x, x, zeros(ATTN_SHAPE(1, 3, 4)), NULL),
        "attn_attend: batches differ: "
        "query (2, 3, 4), key (2, 3, 4), value (1, 3, 4)");
    ck_assert_error(
        attn_attend(tape, x, zeros(ATTN_SHAPE(2, 3, 5)), x, NULL),
        "attn_attend: query and key are not equally wide: "
        "query (2, 3, 4), key (2, 3, 5), value (2, 3, 4)");
    ck_assert_error(
        attn_attend(tape, x, x, zeros(ATTN_SHAPE(2, 2, 4)), NULL),
        "attn_attend: there are not as many values as keys: "
        "query (2, 3, 4), key (2, 3, 4), value (2, 2, 4)");
    ck_assert_error(attn_softmax(tape, row, NULL),
                    "attn_softmax: scores have at least queries and "
                    "keys, not (4)");
}
END_TEST

START_TEST(wrong_options_are_refused) {
    attn_tensor *x = zeros(ATTN_SHAPE(2, 3, 4));
    attn_tensor *untouched = x;
    attn_attend_options options = {.heads = 3, .weights = &untouched};
    ck_assert_error(attn_attend(tape, x, x, x, &options),
                    "attn_attend: 3 heads do not divide the widths: "
                    "query (2, 3, 4), value (2, 3, 4)");
    options.heads = 4;
    ck_assert_error(
        attn_attend(tape, x, x, zeros(ATTN_SHAPE(2, 3, 6)), &options),
        "attn_attend: 4 heads do not divide the widths: "
        "query (2, 3, 4), value (2, 3, 6)");
    options = (attn_attend_options){.scale = NAN, .weights = &untouched};
    ck_assert_error(attn_attend(tape, x, x, x, &options),
                    "attn_attend: the scale is nan");
    options = (attn_attend_options){.mask = attn_mask_causal(memory, 3, 5),
                                    .weights = &untouched};
    ck_assert_error(attn_attend(tape, x, x, x, &options),
                    "attn_attend: a mask of (any, 3, 5) for scores of "
                    "(2, 3, 3)");
    ck_assert_error(attn_softmax(tape, x, options.mask),
                    "attn_softmax: a mask of (any, 3, 5) for scores of "
                    "(2, 3, 4)");
    ck_assert_ptr_eq(untouched, x);
}
END_TEST

/* ---- Memory
 * ---------------------------------------------------------------- */

/* Large enough for each of its tensors to need a block of its own. */
static attn_tensor *attend_largely(attn_tape *on, attn_tensor *x,
                                   attn_tensor **weights) {
    const attn_attend_options options = {.heads = 2, .weights = weights};
    return attn_attend(on, x, x, x, &options);
}

START_TEST(running_out_of_memory_changes_nothing) {
    omp_set_num_threads(1);
    attn_torch_generator g;
    attn_torch_seed(&g, 10);
    attn_tensor *x = normal(memory, &g, ATTN_SHAPE(1, 300, 128));
    attn_tensor *weights = NULL, *output = NULL;
    long failures = 0;
    for (; output == NULL; failures++) {
        attn_tape *fresh = attn_tape_new();
        ck_assert_int_lt(failures, 20);
        catch_errors();
        allocations_left = failures;
        output = attend_largely(fresh, x, &weights);
        allocations_left = -1;
        ck_assert_int_eq(caught.count, output == NULL);
        if (output == NULL) {
            ck_assert_ptr_null(weights);
            ck_assert_ptr_nonnull(
                strstr(caught.last, "attn_attend: no memory for"));
            check_zero(x->gradient, attn_tensor_size(x), "gradient");
            /* The tape still serves. */
            attn_tape_reset(fresh);
            ck_assert_ptr_nonnull(attend_largely(fresh, x, NULL));
        }
        attn_tape_free(fresh);
    }
    ck_assert_int_ge(failures, 4);
}
END_TEST

START_TEST(softmax_without_memory) {
    attn_tensor *x = zeros(ATTN_SHAPE(200, 200));
    attn_tape *fresh = attn_tape_new();
    catch_errors();
    allocations_left = 0;
    attn_tensor *weights = attn_softmax(fresh, x, NULL);
    allocations_left = -1;
    ck_assert_ptr_null(weights);
    ck_assert_int_eq(caught.count, 1);
    ck_assert_ptr_nonnull(strstr(caught.last, "attn_softmax: no memory"));
    attn_tape_free(fresh);
}
END_TEST

START_TEST(a_second_round_allocates_nothing) {
    attn_arena *parameters = attn_arena_new();
    attn_torch_generator g;
    attn_torch_seed(&g, 11);
    attn_tensor *x = normal(parameters, &g, ATTN_SHAPE(2, 90, 16));
    long before = 0;
    for (int round = 0; round < 4; round++) {
        before = round < 2 ? 0 : allocations;
        attn_tensor *output = attn_attend(tape, x, x, x, NULL);
        ck_assert(attn_backward(tape, output, x));
        attn_tape_reset(tape);
        if (round >= 2)
            ck_assert_int_eq(allocations, before);
    }
    attn_arena_free(parameters);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("attention");
    TCase *agreement = tcase_create("agreement");
    tcase_set_timeout(agreement, 60);
    tcase_add_test(agreement, softmax_agrees_with_pytorch);
    tcase_add_test(agreement, attend_agrees_with_pytorch);
    tcase_add_test(agreement, weights_kept_or_not_give_the_same_bits);
    tcase_add_test(agreement, named_masks_do_what_their_tables_do);
    tcase_add_test(agreement, a_batch_of_one_may_go_without_saying);
    tcase_add_test(agreement, every_small_shape);
    tcase_add_test(agreement, threads_do_not_change_a_digit);
    tcase_add_test(agreement, threads_may_change_on_the_way);
    tcase_add_test(agreement,
                   gradients_of_one_tensor_in_three_parts_add_up);
    tcase_add_test(agreement, only_who_wants_a_gradient_gets_one);
    tcase_add_test(agreement, gradients_are_added);
    suite_add_tcase(suite, agreement);

    TCase *strange = tcase_create("strange");
    tcase_set_timeout(strange, 60);
    tcase_add_test(strange, nothing_to_see_is_silent);
    tcase_add_test(strange, strange_scores);
    tcase_add_test(strange, strange_rows_do_not_spread);
    tcase_add_test(strange, the_exponential_is_good_to_the_last_place);
    tcase_add_test(strange, entropy_of_weights);
    suite_add_tcase(suite, strange);

    TCase *refusal = tcase_create("refusal");
    tcase_set_timeout(refusal, 60);
    tcase_add_checked_fixture(refusal, make_tape, free_tape);
    tcase_add_test(refusal, null_is_refused);
    tcase_add_test(refusal, wrong_shapes_are_refused);
    tcase_add_test(refusal, wrong_options_are_refused);
    tcase_add_test(refusal, running_out_of_memory_changes_nothing);
    tcase_add_test(refusal, softmax_without_memory);
    tcase_add_test(refusal, a_second_round_allocates_nothing);
    suite_add_tcase(suite, refusal);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
