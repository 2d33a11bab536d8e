/* RNN, GRU and LSTM over whole sequences and back, against PyTorch's. */
/* link: -Wl,--wrap=aligned_alloc */
#include <omp.h>

#include "check_support.h"
#define ONLY_ARENAS_RUN_OUT
#include "scarcity.h"

typedef attn_tensor *network(attn_tape *, const attn_tensor *,
                             const attn_tensor *, const attn_tensor *,
                             const attn_tensor *, const attn_tensor *);

static network *const networks[] = {attn_rnn, attn_gru, attn_lstm};
static const char *const names[] = {"rnn", "gru", "lstm"};
static const size_t gates[] = {1, 3, 4};
enum { KINDS = 3, TENSORS = 5 };

/* x and the four parameters, biases NULL if the case has none. */
struct example {
    char name[32];
    attn_tensor *tensor[TENSORS];
};

static const char *const keys[TENSORS] = {
    "x", "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};

static struct example example_new(const golden *file, size_t kind,
                                  size_t number) {
    struct example e;
    snprintf(e.name, sizeof e.name, "%s/%zu", names[kind], number);
    for (size_t i = 0; i < TENSORS; i++)
        e.tensor[i] = golden_has(file, "%s/%s", e.name, keys[i])
                          ? golden_tensor(file, "%s/%s", e.name, keys[i])
                          : NULL;
    return e;
}

static attn_tensor *run(network *kind, attn_tape *tape,
                        attn_tensor *const tensor[TENSORS]) {
    return kind(tape, tensor[0], tensor[1], tensor[2], tensor[3],
                   tensor[4]);
}

/* Sums of up to 36 products, in another order than PyTorch's, 60 times
   one after the other; tanh and sigmoid forget most of it on the way.
   Gradients of weights sum up to 64 products of such numbers. Weights six
   times too large (case 6) magnify at each step what rounding left. */
static void check_example(const golden *file, size_t kind, size_t number) {
    struct example e = example_new(file, kind, number);
    const double tolerance = number == 6 ? 1e-5 : 2e-6;
    attn_tape *tape = attn_tape_new();
    attn_tensor *h = run(networks[kind], tape, e.tensor);
    ck_assert_ptr_nonnull(h);
    const attn_tensor *expected = golden_tensor(file, "%s/output", e.name);
    if (expected->rank == 2)
        h = attn_last_position(tape, h);
    check_values(h, expected, tolerance, e.name);
    ck_assert(attn_backward(tape, h, golden_tensor(file, "%s/wanted", e.name)));
    for (size_t i = 0; i < TENSORS; i++) {
        char what[80];
        snprintf(what, sizeof what, "%s: gradient of %s", e.name, keys[i]);
        if (e.tensor[i] != NULL)
            check_gradient(e.tensor[i],
                           golden_tensor(file, "%s/%s/gradient", e.name,
                                         keys[i]),
                           tolerance, what);
    }
    attn_tape_free(tape);
}

START_TEST(recurrent_networks_agree_with_pytorch) {
    golden file = golden_read("tests/golden/recurrence.golden");
    const size_t count = (size_t)golden_tensor(&file, "count")->value[0];
    for (size_t i = 0; i < count; i++)
        check_example(&file, (size_t)_i, i);
    golden_free(&file);
}
END_TEST

/* ---- A case of our own --------------------------------------------------- */

enum { BATCH = 3, STEPS = 4, IN = 2, HIDDEN = 5 };

static attn_arena *memory;
static attn_tape *tape;
static attn_torch_generator generator;

static void set_up(void) {
    memory = attn_arena_new();
    tape = attn_tape_new();
    attn_torch_seed(&generator, 1);
}

static void tear_down(void) {
    attn_tape_free(tape);
    attn_arena_free(memory);
}

static void make(attn_tensor *tensor[TENSORS], size_t kind) {
    const size_t rows = gates[kind] * HIDDEN;
    tensor[0] = attn_parameter_new(memory, ATTN_SHAPE(BATCH, STEPS, IN));
    tensor[1] = attn_parameter_new(memory, ATTN_SHAPE(rows, IN));
    tensor[2] = attn_parameter_new(memory, ATTN_SHAPE(rows, HIDDEN));
    tensor[3] = attn_parameter_new(memory, ATTN_SHAPE(rows));
    tensor[4] = attn_parameter_new(memory, ATTN_SHAPE(rows));
    for (size_t i = 0; i < TENSORS; i++)
        attn_torch_normal(&generator, tensor[i]);
}

static float *gradient_copy(const attn_tensor *tensor) {
    const size_t bytes = attn_tensor_size(tensor) * sizeof(float);
    float *copy = attn_arena_allocate(memory, bytes);
    memcpy(copy, tensor->gradient, bytes);
    memset(tensor->gradient, 0, bytes);
    return copy;
}

/* Who wants no gradient gets none, and the others' stay the same. */
START_TEST(gradients_go_where_they_are_wanted) {
    attn_tensor *tensor[TENSORS];
    make(tensor, (size_t)_i);
    attn_tensor *wanted =
        attn_tensor_new(memory, ATTN_SHAPE(BATCH, STEPS, HIDDEN));
    attn_torch_normal(&generator, wanted);
    ck_assert(attn_backward(tape, run(networks[_i], tape, tensor), wanted));
    float *all[TENSORS], *kept[TENSORS];
    for (size_t i = 0; i < TENSORS; i++)
        all[i] = gradient_copy(tensor[i]);
    for (size_t out = 0; out < TENSORS; out++) {
        kept[out] = tensor[out]->gradient;
        tensor[out]->gradient = NULL;
        attn_tape_reset(tape);
        ck_assert(
            attn_backward(tape, run(networks[_i], tape, tensor), wanted));
        for (size_t i = 0; i < TENSORS; i++)
            if (i != out)
                ck_assert_mem_eq(gradient_copy(tensor[i]), all[i],
                                 attn_tensor_size(tensor[i]) *
                                     sizeof(float));
        tensor[out]->gradient = kept[out];
    }
}
END_TEST

/* The same digits for any number of threads, in shapes that are large
   enough for several. */
START_TEST(threads_do_not_matter) {
    const size_t rows = gates[_i] * 96;
    attn_tensor *tensor[TENSORS] = {
        attn_parameter_new(memory, ATTN_SHAPE(300, 3, 70)),
        attn_parameter_new(memory, ATTN_SHAPE(rows, 70)),
        attn_parameter_new(memory, ATTN_SHAPE(rows, 96)),
        attn_parameter_new(memory, ATTN_SHAPE(rows)),
        attn_parameter_new(memory, ATTN_SHAPE(rows))};
    for (size_t i = 0; i < TENSORS; i++)
        attn_torch_normal(&generator, tensor[i]);
    float *alone[TENSORS], *output = NULL;
    const size_t size = (size_t)300 * 3 * 96;
    const int before = omp_get_max_threads();
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        attn_tape_reset(tape);
        attn_tensor *h = run(networks[_i], tape, tensor);
        ck_assert(attn_backward(tape, h, h));
        if (threads == 1) {
            output = attn_arena_allocate(memory, size * sizeof(float));
            memcpy(output, h->value, size * sizeof(float));
        }
        ck_assert_mem_eq(h->value, output, size * sizeof(float));
        for (size_t i = 0; i < TENSORS; i++) {
            float *gradient = gradient_copy(tensor[i]);
            if (threads == 1)
                alone[i] = gradient;
            ck_assert_mem_eq(gradient, alone[i],
                             attn_tensor_size(tensor[i]) * sizeof(float));
        }
    }
    omp_set_num_threads(before);
}
END_TEST

/* Gradients are added to what is there. */
START_TEST(gradients_accumulate) {
    attn_tensor *tensor[TENSORS];
    make(tensor, (size_t)_i);
    attn_tensor *wanted =
        attn_tensor_new(memory, ATTN_SHAPE(BATCH, STEPS, HIDDEN));
    attn_torch_normal(&generator, wanted);
    ck_assert(attn_backward(tape, run(networks[_i], tape, tensor), wanted));
    float *once[TENSORS];
    for (size_t i = 0; i < TENSORS; i++) {
        once[i] = gradient_copy(tensor[i]);
        for (size_t j = 0; j < attn_tensor_size(tensor[i]); j++) {
            once[i][j] += 1;
            tensor[i]->gradient[j] = 1;
        }
    }
    attn_tape_reset(tape);
    ck_assert(attn_backward(tape, run(networks[_i], tape, tensor), wanted));
    /* Added to 1 the parts round another way. */
    for (size_t i = 0; i < TENSORS; i++)
        check_close(tensor[i]->gradient, once[i],
                    attn_tensor_size(tensor[i]), 1e-6, keys[i]);
}
END_TEST

/* A batch is its sequences, each by itself. */
START_TEST(sequences_do_not_touch) {
    attn_tensor *tensor[TENSORS];
    make(tensor, (size_t)_i);
    const attn_tensor *together = run(networks[_i], tape, tensor);
    for (size_t b = 0; b < BATCH; b++) {
        attn_tensor *one[TENSORS];
        memcpy(one, tensor, sizeof one);
        one[0] = attn_tensor_from(memory,
                                  tensor[0]->value + b * STEPS * IN,
                                  ATTN_SHAPE(1, STEPS, IN));
        const attn_tensor *alone = run(networks[_i], tape, one);
        check_close(alone->value, together->value + b * STEPS * HIDDEN,
                    STEPS * HIDDEN, 5e-7, names[_i]);
    }
}
END_TEST

START_TEST(without_recording_there_is_no_gradient) {
    attn_tensor *tensor[TENSORS];
    make(tensor, (size_t)_i);
    const attn_tensor *recorded = run(networks[_i], tape, tensor);
    attn_tape_record(tape, false);
    const attn_tensor *result = run(networks[_i], tape, tensor);
    ck_assert_ptr_null(result->gradient);
    ck_assert_mem_eq(result->value, recorded->value,
                     attn_tensor_size(result) * sizeof(float));
}
END_TEST

START_TEST(not_a_number_stays_in_its_sequence) {
    attn_tensor *tensor[TENSORS];
    make(tensor, (size_t)_i);
    tensor[0]->value[(1 * STEPS + 2) * IN] = NAN;
    const attn_tensor *h = run(networks[_i], tape, tensor);
    for (size_t b = 0; b < BATCH; b++)
        for (size_t t = 0; t < STEPS; t++)
            for (size_t j = 0; j < HIDDEN; j++) {
                const bool strange = b == 1 && t >= 2;
                ck_assert(isnan(h->value[(b * STEPS + t) * HIDDEN + j]) ==
                          strange);
            }
}
END_TEST

/* ---- Mistakes ------------------------------------------------------------ */

#define REFUSED(place, wrong, sentence)                                     \
    do {                                                                    \
        attn_tensor *given[TENSORS];                                        \
        memcpy(given, tensor, sizeof given);                                \
        given[place] = (wrong);                                             \
        snprintf(expected, sizeof expected, "attn_%s: %s", names[_i],       \
                 (sentence));                                               \
        ck_assert_error(run(networks[_i], tape, given), expected);          \
    } while (0)

START_TEST(mistakes_are_refused) {
    attn_tensor *tensor[TENSORS];
    char expected[200], sentence[160];
    const size_t rows = gates[_i] * HIDDEN;
    make(tensor, (size_t)_i);
    REFUSED(0, NULL, "x is NULL");
    REFUSED(1, NULL, "weight_ih is NULL");
    REFUSED(2, NULL, "weight_hh is NULL");
    snprintf(sentence, sizeof sentence,
             "the biases do not fit: none and (%zu)", rows);
    REFUSED(3, NULL, sentence);
    snprintf(sentence, sizeof sentence,
             "the biases do not fit: (%zu) and none", rows);
    REFUSED(4, NULL, sentence);
    snprintf(sentence, sizeof sentence,
             "the biases do not fit: (%zu) and (3)", rows);
    REFUSED(4, attn_tensor_new(memory, ATTN_SHAPE(3)), sentence);
    snprintf(sentence, sizeof sentence, "(%zu, 5) is not (batch, steps, width)",
             rows);
    REFUSED(0, tensor[2], sentence);
    snprintf(sentence, sizeof sentence,
             "weights (%zu, 2) and (%zu, 5) do not make %zu gates from "
             "(3, 4, 3)",
             rows, rows, gates[_i]);
    REFUSED(0, attn_tensor_new(memory, ATTN_SHAPE(3, 4, 3)), sentence);
    snprintf(sentence, sizeof sentence,
             "weights (7, 2) and (%zu, 5) do not make %zu gates from "
             "(3, 4, 2)",
             rows, gates[_i]);
    REFUSED(1, attn_tensor_new(memory, ATTN_SHAPE(7, 2)), sentence);
    snprintf(sentence, sizeof sentence,
             "weights (%zu, 2) and (5, 4) do not make %zu gates from "
             "(3, 4, 2)",
             rows, gates[_i]);
    REFUSED(2, attn_tensor_new(memory, ATTN_SHAPE(5, 4)), sentence);
    catch_errors();
    ck_assert_ptr_null(run(networks[_i], NULL, tensor));
    snprintf(expected, sizeof expected, "attn_%s: tape is NULL", names[_i]);
    ck_assert_str_eq(caught.last, expected);
}
END_TEST

START_TEST(layers_check_their_arguments) {
    attn_parameters *parameters = attn_parameters_new();
    attn_lstm_layer layer;
    ck_assert_error(attn_rnn_new(NULL, parameters, "r", &generator, 1, 1),
                    "attn_rnn_new: layer is NULL");
    ck_assert_error(attn_gru_new(&layer, NULL, "r", &generator, 1, 1),
                    "attn_gru_new: parameters is NULL");
    ck_assert_error(attn_lstm_new(&layer, parameters, NULL, &generator, 1, 1),
                    "attn_lstm_new: name is NULL");
    ck_assert_error(attn_lstm_new(&layer, parameters, "r", NULL, 1, 1),
                    "attn_lstm_new: generator is NULL");
    ck_assert_error(attn_lstm_new(&layer, parameters, "r", &generator, 3, 0),
                    "attn_parameters_add: a size is 0: (0, 3)");
    ck_assert_uint_eq(attn_parameters_length(parameters), 0);
    ck_assert_error(attn_rnn_apply(tape, NULL, NULL),
                    "attn_rnn_apply: layer is NULL");
    ck_assert_error(attn_gru_apply(tape, NULL, NULL),
                    "attn_gru_apply: layer is NULL");
    ck_assert_error(attn_lstm_apply(tape, NULL, NULL),
                    "attn_lstm_apply: layer is NULL");
    ck_assert(attn_lstm_new(&layer, parameters, "r", &generator, 2, 3));
    ck_assert_error(attn_lstm_apply(tape, &layer, NULL),
                    "attn_lstm: x is NULL");
    attn_parameters_free(parameters);
}
END_TEST

/* ---- Memory that runs out ------------------------------------------------ */

START_TEST(networks_survive_without_memory) {
    const size_t rows = gates[_i] * 8;
    attn_tensor *tensor[TENSORS] = {
        attn_parameter_new(memory, ATTN_SHAPE(300, 20, 9)),
        attn_parameter_new(memory, ATTN_SHAPE(rows, 9)),
        attn_parameter_new(memory, ATTN_SHAPE(rows, 8)),
        attn_parameter_new(memory, ATTN_SHAPE(rows)),
        attn_parameter_new(memory, ATTN_SHAPE(rows))};
    long blocks = 0;
    for (bool done = false; !done; blocks++) {
        ck_assert_int_lt(blocks, 12);
        catch_errors();
        attn_tape *fresh = attn_tape_new();
        allocations_left = blocks;
        done = run(networks[_i], fresh, tensor) != NULL;
        allocations_left = -1;
        ck_assert_int_eq(caught.count, done ? 0 : 1);
        attn_tape_free(fresh);
    }
    ck_assert_int_gt(blocks, 2);
}
END_TEST

/* ---- The suite ----------------------------------------------------------- */

static Suite *make_suite(void) {
    Suite *suite = suite_create("recurrence");
    TCase *golden_case = tcase_create("golden");
    tcase_add_loop_test(golden_case, recurrent_networks_agree_with_pytorch,
                        0, KINDS);
    suite_add_tcase(suite, golden_case);
    TCase *own = tcase_create("own");
    tcase_add_checked_fixture(own, set_up, tear_down);
    tcase_add_loop_test(own, gradients_go_where_they_are_wanted, 0, KINDS);
    tcase_add_loop_test(own, gradients_accumulate, 0, KINDS);
    tcase_add_loop_test(own, threads_do_not_matter, 0, KINDS);
    tcase_add_loop_test(own, sequences_do_not_touch, 0, KINDS);
    tcase_add_loop_test(own, without_recording_there_is_no_gradient, 0,
                        KINDS);
    tcase_add_loop_test(own, not_a_number_stays_in_its_sequence, 0, KINDS);
    tcase_add_loop_test(own, mistakes_are_refused, 0, KINDS);
    tcase_add_test(own, layers_check_their_arguments);
    tcase_add_loop_test(own, networks_survive_without_memory, 0, KINDS);
    suite_add_tcase(suite, own);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
