/* The two tasks, and models that are trained on them: the data and the
   losses of the first hundred steps are PyTorch's. */
/* link: -Wl,--wrap=malloc,--wrap=calloc */
/* link: -Wl,--wrap=realloc,--wrap=aligned_alloc */
#include "check_support.h"
#include "scarcity.h"

#include <omp.h>

#include "models.h"

/* Rounding apart, the paths are the same; PyTorch's own move by some
   1e-7 from one BLAS kernel to another. The issue asks for 1e-4. */
#define LOSS_TOLERANCE 1e-5

static golden numbers;

static void open_numbers(void) {
    numbers = golden_read("tests/golden/training.golden");
}

static void close_numbers(void) {
    golden_free(&numbers);
}

/* ---- Data ---- */

START_TEST(digits_are_pytorchs) {
    static const struct {
        const char *name;
        size_t count, length;
        uint64_t seed;
    } cases[] = {
        {"train", 8000, 8, 0}, {"test", 2000, 8, 1}, {"long", 50, 13, 7}};
    for (size_t c = 0; c < 3; c++) {
        attn_arena *memory = attn_arena_new();
        size_t count = cases[c].count, length = cases[c].length;
        task_examples *digits =
            task_repeated_digit(memory, count, length, cases[c].seed);
        ck_assert_uint_eq(digits->count, count);
        ck_assert_uint_eq(digits->length, length);
        ck_assert_ptr_null(digits->values);
        double sums[2] = {0, 0};
        for (size_t i = 0; i < count * length; i++)
            sums[0] += (double)(digits->tokens[i] * (i % 101));
        for (size_t i = 0; i < count; i++)
            sums[1] += (double)digits->labels[i];
        const char *name = cases[c].name;
        const attn_tensor *expected =
            golden_tensor(&numbers, "task/repeated/%s", name);
        ck_assert((float)sums[0] == expected->value[0]);
        ck_assert((float)sums[1] == expected->value[1]);
        const attn_tensor *rows =
            golden_tensor(&numbers, "task/repeated/%s/tokens", name);
        const attn_tensor *labels =
            golden_tensor(&numbers, "task/repeated/%s/labels", name);
        for (size_t i = 0; i < 8 * length; i++)
            ck_assert_uint_eq(digits->tokens[i], (size_t)rows->value[i]);
        for (size_t i = 0; i < 8; i++)
            ck_assert_uint_eq(digits->labels[i], (size_t)labels->value[i]);
        attn_arena_free(memory);
    }
}
END_TEST

START_TEST(the_label_says_what_the_digits_do) {
    attn_arena *memory = attn_arena_new();
    task_examples *digits = task_repeated_digit(memory, 3000, 5, 42);
    for (size_t i = 0; i < 3000; i++) {
        const size_t *row = digits->tokens + 5 * i;
        size_t again = 0;
        for (size_t t = 0; t < 5; t++)
            ck_assert(row[t] >= 1 && row[t] <= 9);
        for (size_t t = 1; t < 5; t++)
            again += row[t] == row[0];
        ck_assert_uint_eq(again, digits->labels[i]);
    }
    attn_arena_free(memory);
}
END_TEST

START_TEST(the_shortest_sequence_has_two_digits) {
    attn_arena *memory = attn_arena_new();
    task_examples *digits = task_repeated_digit(memory, 100, 2, 3);
    for (size_t i = 0; i < 100; i++)
        ck_assert_uint_eq(digits->tokens[2 * i] ==
                              digits->tokens[2 * i + 1],
                          digits->labels[i]);
    attn_arena_free(memory);
}
END_TEST

START_TEST(numbers_are_numpys) {
    attn_arena *memory = attn_arena_new();
    task_examples *first = task_first_element(memory, 100, 60, 1);
    ck_assert_uint_eq(first->count, 100);
    ck_assert_uint_eq(first->length, 60);
    ck_assert_ptr_null(first->tokens);
    const attn_tensor *values =
        golden_tensor(&numbers, "task/first/values");
    const attn_tensor *labels =
        golden_tensor(&numbers, "task/first/labels");
    check_close(first->values->value, values->value, 120, 0, "values");
    for (size_t i = 0; i < 100; i++)
        ck_assert_uint_eq(first->labels[i], (size_t)labels->value[i]);
    attn_arena_free(memory);
}
END_TEST

/* ---- Training ---- */

/* valgrind makes everything some hundred times as slow, so that a few
   steps must do, and takes what OpenMP's threads keep for a leak. */
static bool under_valgrind(void) {
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

static size_t steps_to_compare(void) {
    return under_valgrind() ? 5 : 100;
}

static void check_losses(const char *name, const float losses[]) {
    size_t steps = steps_to_compare();
    const attn_tensor *expected =
        golden_tensor(&numbers, "losses/%s", name);
    double apart = 0;
    for (size_t i = 0; i < steps; i++)
        apart = fmax(apart,
                     fabs((double)losses[i] - (double)expected->value[i]));
    printf("%-20s the first %zu losses are within %.1e of PyTorch's\n",
           name, steps, apart);
    check_close(losses, expected->value, steps, LOSS_TOLERANCE, name);
}

typedef float procedure(const task_model *, attn_parameters *,
                        const task_options *);

static void check_training(const char *name, procedure *train,
                           task_model model) {
    float losses[100];
    attn_parameters *parameters = attn_parameters_new();
    float accuracy = train(
        &model, parameters,
        &(task_options){.steps = steps_to_compare(), .losses = losses});
    ck_assert(accuracy > 0.3f && accuracy <= 1.0f);
    check_losses(name, losses);
    attn_parameters_free(parameters);
}

START_TEST(the_bottleneck_trains_as_in_pytorch) {
    bottleneck layers = {.kind = &lstm, .hidden = 8};
    check_training(
        "bottleneck", task_fit,
        (task_model){bottleneck_make, bottleneck_apply, &layers});
}
END_TEST

START_TEST(positions_train_as_in_pytorch) {
    for (int used = 0; used <= 1; used++) {
        positions_matter layers = {.positions = used};
        check_training(used ? "positions-matter" : "positions-left-out",
                       task_fit,
                       (task_model){positions_matter_make,
                                    positions_matter_apply, &layers});
    }
}
END_TEST

START_TEST(the_first_element_trains_as_in_pytorch) {
    first_attention attention = {.positions = true, .length = 60};
    check_training("first-element", task_train,
                   (task_model){first_attention_make, first_attention_apply,
                                &attention});
    first_recurrent recurrent = {.kind = &rnn};
    task_model model = {first_recurrent_make, first_recurrent_apply,
                        &recurrent};
    check_training("first-element-rnn", task_train, model);
    recurrent.kind = &lstm;
    check_training("first-element-lstm", task_train, model);
}
END_TEST

static long allocations_of(procedure *train, const task_model *model,
                           size_t steps) {
    attn_parameters *parameters = attn_parameters_new();
    long before = allocations;
    float accuracy = train(model, parameters,
                           &(task_options){.steps = steps, .length = 6});
    long count = allocations - before;
    ck_assert(!isnan(accuracy));
    attn_parameters_free(parameters);
    return count;
}

/* Twenty steps ask for memory as often as three: none but the first
   do. */
START_TEST(the_training_loop_asks_for_no_memory) {
    bottleneck digits[] = {{.kind = &rnn, .hidden = 8},
                           {.kind = &gru, .hidden = 8},
                           {.kind = &lstm, .hidden = 8}};
    positions_matter positions = {.positions = true};
    first_attention attention = {.positions = true, .length = 6};
    first_recurrent values = {.kind = &lstm};
    const struct {
        procedure *train;
        task_model model;
    } cases[] = {
        {task_fit, {bottleneck_make, bottleneck_apply, &digits[0]}},
        {task_fit, {bottleneck_make, bottleneck_apply, &digits[1]}},
        {task_fit, {bottleneck_make, bottleneck_apply, &digits[2]}},
        {task_fit,
         {positions_matter_make, positions_matter_apply, &positions}},
        {task_train,
         {first_attention_make, first_attention_apply, &attention}},
        {task_train,
         {first_recurrent_make, first_recurrent_apply, &values}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        long few = allocations_of(cases[i].train, &cases[i].model, 3);
        long many = allocations_of(cases[i].train, &cases[i].model, 20);
        ck_assert_msg(few == many,
                      "model %zu: %ld allocations in 3 steps, %ld in 20", i,
                      few, many);
    }
}
END_TEST

/* Every allocation fails once: the run says so and ends in NaN. */
START_TEST(without_memory_there_is_no_training) {
    positions_matter layers = {.positions = true};
    task_model model = {positions_matter_make, positions_matter_apply,
                        &layers};
    float accuracy = NAN;
    long needed = 0;
    for (; isnan(accuracy); needed++) {
        attn_parameters *parameters = attn_parameters_new();
        catch_errors();
        allocations_left = needed;
        accuracy = task_fit(&model, parameters,
                            &(task_options){.steps = 2, .length = 2});
        allocations_left = -1;
        ck_assert(isnan(accuracy) == (caught.count > 0));
        attn_parameters_free(parameters);
    }
    ck_assert_int_gt(needed, 20);
}
END_TEST

/* Runs of two seeds in four threads at once: those of one seed give the
   same digits. */
START_TEST(runs_do_not_disturb_each_other) {
    enum { RUNS = 4,
           STEPS = 130 };
    size_t steps = under_valgrind() ? 10 : STEPS, last = steps / 126;
    static float losses[RUNS][STEPS];
    float accuracy[RUNS], epochs[RUNS][2];
    int threads = under_valgrind() ? 1 : RUNS;
#pragma omp parallel for num_threads(threads)
    for (size_t i = 0; i < RUNS; i++) {
        positions_matter layers = {.positions = true};
        task_model model = {positions_matter_make, positions_matter_apply,
                            &layers};
        attn_parameters *parameters = attn_parameters_new();
        task_options options = {.seed = i % 2,
                                .epochs = 2,
                                .length = 2,
                                .steps = steps,
                                .losses = losses[i],
                                .accuracies = epochs[i]};
        accuracy[i] = task_fit(&model, parameters, &options);
        attn_parameters_free(parameters);
    }
    for (size_t i = 0; i < RUNS; i++) {
        bool same = memcmp(losses[i], losses[0], sizeof losses[i]) == 0;
        ck_assert(same == (i % 2 == 0));
        ck_assert(memcmp(losses[i], losses[i % 2], sizeof losses[i]) == 0);
        ck_assert(accuracy[i] == accuracy[i % 2]);
        ck_assert(epochs[i][last] == accuracy[i]);
        ck_assert(epochs[i][0] > 0.3f);
    }
}
END_TEST

/* The same steps with one thread and with several. */
static void check_threads(procedure *train, task_model model) {
    enum { STEPS = 5 };
    float losses[4][STEPS];
    for (int threads = 1; threads <= (under_valgrind() ? 1 : 4); threads++) {
        omp_set_num_threads(threads);
        attn_parameters *parameters = attn_parameters_new();
        train(
            &model, parameters,
            &(task_options){.steps = STEPS, .losses = losses[threads - 1]});
        ck_assert(
            memcmp(losses[threads - 1], losses[0], sizeof losses[0]) == 0);
        attn_parameters_free(parameters);
    }
    omp_set_num_threads(1);
}

START_TEST(losses_do_not_depend_on_threads) {
    first_attention attention = {.positions = true, .length = 60};
    check_threads(task_train,
                  (task_model){first_attention_make, first_attention_apply,
                               &attention});
    bottleneck digits = {.kind = &gru, .hidden = 64};
    check_threads(task_fit,
                  (task_model){bottleneck_make, bottleneck_apply, &digits});
    positions_matter positions = {.positions = true};
    check_threads(task_fit,
                  (task_model){positions_matter_make,
                               positions_matter_apply, &positions});
}
END_TEST

START_TEST(a_rate_that_climbs_begins_small) {
    float losses[2][3];
    for (size_t i = 0; i < 2; i++) {
        positions_matter layers = {.positions = true};
        task_model model = {positions_matter_make, positions_matter_apply,
                            &layers};
        attn_parameters *parameters = attn_parameters_new();
        attn_tensor *moved;
        task_fit(&model, parameters,
                 &(task_options){.steps = 1,
                                 .rate = 0.1,
                                 .warm_up = i == 0 ? 0 : 1000,
                                 .losses = losses[i]});
        moved = attn_parameters_find(parameters, "head.bias");
        attn_torch_generator generator;
        attn_parameters *fresh = attn_parameters_new();
        attn_torch_seed(&generator, 0);
        positions_matter_make(&layers, fresh, &generator);
        float way = moved->value[0] -
                    attn_parameters_find(fresh, "head.bias")->value[0];
        /* The first step of Adam moves by the rate. */
        ck_assert_float_eq_tol(fabsf(way), i == 0 ? 0.1f : 0.0001f,
                               i == 0 ? 1e-3f : 1e-5f);
        attn_parameters_free(fresh);
        attn_parameters_free(parameters);
    }
    ck_assert(losses[0][0] == losses[1][0]);
}
END_TEST

/* A model that fails says so once, and training ends in NaN. */
static attn_tensor *give_up(attn_tape *tape, const void *layers,
                            const task_examples *examples,
                            attn_torch_generator *generator) {
    (void)layers, (void)examples, (void)generator;
    return attn_mean_positions(tape, NULL);
}

static bool make_nothing(void *layers, attn_parameters *parameters,
                         attn_torch_generator *generator) {
    (void)layers, (void)parameters, (void)generator;
    return true;
}

static bool refuse(void *layers, attn_parameters *parameters,
                   attn_torch_generator *generator) {
    (void)layers, (void)parameters, (void)generator;
    return false;
}

START_TEST(a_model_that_fails_ends_the_run) {
    attn_parameters *parameters = attn_parameters_new();
    task_model model = {make_nothing, give_up, NULL};
    catch_errors();
    ck_assert(isnan(task_fit(&model, parameters, NULL)));
    ck_assert_int_eq(caught.count, 1);
    catch_errors();
    ck_assert(isnan(task_train(&model, parameters, NULL)));
    ck_assert_int_eq(caught.count, 1);
    catch_errors();
    ck_assert(isnan(
        task_fit(&(task_model){refuse, give_up, NULL}, parameters, NULL)));
    ck_assert_int_eq(caught.count, 0);
    attn_parameters_free(parameters);
    ck_assert(!attn_flush_denormals(false)); /* put back as it was */
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("tasks");
    TCase *data = tcase_create("data"),
          *training = tcase_create("training");
    tcase_add_unchecked_fixture(data, open_numbers, close_numbers);
    tcase_add_test(data, digits_are_pytorchs);
    tcase_add_test(data, the_label_says_what_the_digits_do);
    tcase_add_test(data, the_shortest_sequence_has_two_digits);
    tcase_add_test(data, numbers_are_numpys);
    suite_add_tcase(suite, data);
    tcase_add_unchecked_fixture(training, open_numbers, close_numbers);
    tcase_set_timeout(training, 300);
    tcase_add_test(training, the_bottleneck_trains_as_in_pytorch);
    tcase_add_test(training, positions_train_as_in_pytorch);
    tcase_add_test(training, the_first_element_trains_as_in_pytorch);
    tcase_add_test(training, runs_do_not_disturb_each_other);
    tcase_add_test(training, losses_do_not_depend_on_threads);
    tcase_add_test(training, the_training_loop_asks_for_no_memory);
    tcase_add_test(training, without_memory_there_is_no_training);
    tcase_add_test(training, a_rate_that_climbs_begins_small);
    tcase_add_test(training, a_model_that_fails_ends_the_run);
    suite_add_tcase(suite, training);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
