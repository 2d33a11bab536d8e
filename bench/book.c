/* The book's side of the benchmark.

   book WORKLOAD EPOCHS   trains and prints the processor time in seconds,
                          and the last loss
   book --attend LENGTH   attends forward, 8 heads of 64, and prints the
                          processor time, the shortest of several, and
                          the mean size of the output
   book --core            prints which code OpenBLAS uses, if it is one */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models.h"

extern char *openblas_get_corename(void) __attribute__((weak));

static bottleneck bottleneck_2 = {.kind = &lstm, .hidden = 2};
static bottleneck bottleneck_64 = {.kind = &lstm, .hidden = 64};
static positions_matter positions = {.positions = true};
static first_recurrent first_rnn = {.kind = &rnn};
static first_recurrent first_lstm = {.kind = &lstm};
static first_attention attention = {.positions = true, .length = 60};

typedef float procedure(const task_model *model,
                        attn_parameters *parameters,
                        const task_options *options);

/* The order and the names are those of peer.py. */
static const struct workload {
    const char *name;
    procedure *train;
    task_model model;
} workloads[] = {
    {"bottleneck-64",
     task_fit,
     {bottleneck_make, bottleneck_apply, &bottleneck_64}},
    {"bottleneck-2",
     task_fit,
     {bottleneck_make, bottleneck_apply, &bottleneck_2}},
    {"positions-matter",
     task_fit,
     {positions_matter_make, positions_matter_apply, &positions}},
    {"first-element-rnn",
     task_train,
     {first_recurrent_make, first_recurrent_apply, &first_rnn}},
    {"first-element-lstm",
     task_train,
     {first_recurrent_make, first_recurrent_apply, &first_lstm}},
    {"first-element-attention",
     task_train,
     {first_attention_make, first_attention_apply, &attention}},
};

static double processor_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void run(const struct workload *w, const task_options *options) {
    attn_parameters *parameters = attn_parameters_new();
    w->train(&w->model, parameters, options);
    attn_parameters_free(parameters);
}

static int measure(const struct workload *w, size_t epochs) {
    enum { STEPS_OF_AN_EPOCH = 125 }; /* at most */
    float *losses = calloc(epochs * STEPS_OF_AN_EPOCH, sizeof *losses);
    if (losses == NULL)
        return EXIT_FAILURE;
    /* Whatever is done once a process has been done before the clock runs.
     */
    run(w, &(task_options){.steps = 5});
    double start = processor_seconds();
    run(w, &(task_options){.epochs = epochs, .losses = losses});
    double seconds = processor_seconds() - start;
    size_t steps = epochs * STEPS_OF_AN_EPOCH;
    while (steps > 1 && losses[steps - 1] == 0.0f)
        steps--;
    printf("%.4f %.6f\n", seconds, (double)losses[steps - 1]);
    free(losses);
    return EXIT_SUCCESS;
}

static double attend(attn_tape *tape, attn_tensor *const input[3],
                     double *size) {
    double start = processor_seconds();
    const attn_tensor *output =
        attn_attend(tape, input[0], input[1], input[2], NULL);
    double seconds = processor_seconds() - start;
    *size = 0;
    for (size_t i = 0; i < attn_tensor_size(output); i++)
        *size += fabs((double)output->value[i]);
    *size /= (double)attn_tensor_size(output);
    attn_tape_reset(tape);
    return seconds;
}

static int measure_attention(size_t length) {
    attn_torch_generator generator;
    attn_torch_seed(&generator, 0);
    attn_arena *memory = attn_arena_new();
    attn_tape *tape = attn_tape_new();
    attn_tensor *input[3];
    for (size_t i = 0; i < 3; i++) {
        input[i] = attn_tensor_new(memory, ATTN_SHAPE(8, length, 64));
        attn_torch_normal(&generator, input[i]);
    }
    double best = INFINITY, size = 0;
    for (int run = 0; run < 5; run++)
        best = fmin(best, attend(tape, input, &size));
    printf("%.4f %.8f\n", best, size);
    attn_tape_free(tape);
    attn_arena_free(memory);
    return EXIT_SUCCESS;
}

static int show_core(void) {
    run(&workloads[0], &(task_options){.steps = 1});
    puts(openblas_get_corename != NULL ? openblas_get_corename() : "");
    return EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
    if (argc == 2 && strcmp(argv[1], "--core") == 0)
        return show_core();
    if (argc == 3 && strcmp(argv[1], "--attend") == 0)
        return measure_attention((size_t)strtoul(argv[2], NULL, 10));
    long epochs = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        if (epochs > 0 && strcmp(argv[1], workloads[i].name) == 0)
            return measure(&workloads[i], (size_t)epochs);
    fprintf(stderr, "usage: book WORKLOAD EPOCHS\n       book --attend LENGTH\n"
                    "       book --core\n");
    return 2;
}
