/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc,--wrap=free */
/* Memory that runs out: at every place where an operation allocates, the
   call fails once, in its own name, and leaves all else as it was. And a
   training step that asks for none. */
#include "allocation.h"
#include "check_support.h"

/* ---- One operation at a time -------------------------------------------- */

static attn_arena *inputs; /* with its own memory, never short */
static attn_tensor *matrix, *row, *batch;

static attn_tensor *parameter(size_t rank, const size_t shape[]) {
    attn_tensor *tensor = attn_parameter_new(inputs, rank, shape);
    for (size_t i = 0; i < attn_tensor_size(tensor); i++)
        tensor->value[i] = 1.0f + (float)(i % 3);
    return tensor;
}

static void set_up(void) {
    inputs = attn_arena_new();
    matrix = parameter(ATTN_SHAPE(4, 4));
    row = parameter(ATTN_SHAPE(4));
    batch = parameter(ATTN_SHAPE(2, 3, 4));
    start_counting(NEVER);
}

static void tear_down(void) {
    attn_arena_free(inputs);
}

static const size_t places[4] = {3, 0, 1, 3};

static attn_tensor *run_add(attn_tape *tape) {
    return attn_add(tape, batch, row);
}
static attn_tensor *run_scale(attn_tape *tape) {
    return attn_scale(tape, batch, 2.0f);
}
static attn_tensor *run_matmul(attn_tape *tape) {
    return attn_matmul(tape, batch, matrix);
}
static attn_tensor *run_transposed(attn_tape *tape) {
    return attn_matmul_transposed(tape, batch, batch);
}
static attn_tensor *run_linear(attn_tape *tape) {
    return attn_linear(tape, batch, matrix, row);
}
static attn_tensor *run_embedding(attn_tape *tape) {
    return attn_embedding(tape, matrix, places, ATTN_SHAPE(2, 2));
}
static attn_tensor *run_rows(attn_tape *tape) {
    return attn_rows(tape, matrix, places, 4);
}
static attn_tensor *run_mean(attn_tape *tape) {
    return attn_mean_positions(tape, batch);
}
static attn_tensor *run_reshape(attn_tape *tape) {
    return attn_reshape(tape, batch, ATTN_SHAPE(6, 4));
}
static attn_tensor *run_softmax(attn_tape *tape) {
    return attn_softmax(tape, batch, NULL);
}
static attn_tensor *run_attend(attn_tape *tape) {
    return attn_attend(tape, batch, batch, batch, NULL);
}
static attn_tensor *run_attend_masked(attn_tape *tape) {
    attn_tensor *weights = NULL;
    attn_mask *mask = attn_mask_causal(inputs, 3, 3);
    const attn_attend_options options = {
        .heads = 2, .mask = mask, .weights = &weights};
    return attn_attend(tape, batch, batch, batch, &options);
}

static const struct {
    const char *name;
    attn_tensor *(*run)(attn_tape *tape);
} operations[] = {
    {"attn_add: no memory", run_add},
    {"attn_scale: no memory", run_scale},
    {"attn_matmul: no memory", run_matmul},
    {"attn_matmul_transposed: no memory", run_transposed},
    {"attn_linear: no memory", run_linear},
    {"attn_embedding: no memory", run_embedding},
    {"attn_rows: no memory", run_rows},
    {"attn_mean_positions: no memory", run_mean},
    {"attn_reshape: no memory", run_reshape},
    {"attn_softmax: no memory", run_softmax},
    {"attn_attend: no memory", run_attend},
    {"attn_attend: no memory", run_attend_masked},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* A tape whose arena has a single block with this many bytes left, and a
   step recorded before. */
enum { BLOCK = 1 << 16 };
static attn_tape *tape_with_room(size_t room, attn_tensor **before) {
    attn_tape *tape = attn_tape_new();
    *before = attn_scale(tape, row, 3.0f);
    size_t used = attn_arena_peak(attn_tape_arena(tape));
    attn_arena_allocate(attn_tape_arena(tape), BLOCK - room - used);
    return tape;
}

/* Runs it with so much room and not a byte more. True if that was enough;
   if not, checks that nothing else has happened. */
static bool run_with_room(size_t which, size_t room) {
    attn_tensor *before, *result;
    attn_tape *tape = tape_with_room(room, &before);
    catch_errors();
    start_counting(1);
    WATCH(result = operations[which].run(tape));
    start_counting(NEVER);
    if (result == NULL) {
        const char *name = operations[which].name;
        ck_assert_int_eq(caught.count, 1);
        ck_assert_msg(strncmp(caught.last, name, strlen(name)) == 0,
                      "%s was reported", caught.last);
    } else {
        ck_assert_int_eq(caught.count, 0);
    }
    /* Only the first operation goes back, if the second failed. */
    ck_assert(attn_backward(tape, before, row));
    for (size_t i = 0; i < 4; i++)
        ck_assert(row->gradient[i] == 3.0f * row->value[i]);
    for (size_t i = 0; i < 16; i++)
        ck_assert(matrix->gradient[i] == 0.0f);
    for (size_t i = 0; i < 24; i++)
        ck_assert(batch->gradient[i] == 0.0f);
    memset(row->gradient, 0, 4 * sizeof(float));
    attn_tape_free(tape);
    return result != NULL;
}

START_TEST(an_operation_short_of_memory) {
    size_t room = 0;
    while (!run_with_room((size_t)_i, room)) {
        room += 64;
        ck_assert_uint_lt(room, 1 << 15);
    }
    ck_assert_uint_gt(room, 0);
    ck_assert(run_with_room((size_t)_i, room + 64));
}
END_TEST

/* ---- A whole training step ---------------------------------------------- */

enum {
    BATCH = 16,
    TIME = 20,
    WIDTH = 24
};

struct model {
    attn_tensor *words, *query, *key, *value, *out, *bias;
};

static struct model model_new(attn_arena *arena) {
    struct model model = {
        attn_parameter_new(arena, ATTN_SHAPE(10, WIDTH)),
        attn_parameter_new(arena, ATTN_SHAPE(WIDTH, WIDTH)),
        attn_parameter_new(arena, ATTN_SHAPE(WIDTH, WIDTH)),
        attn_parameter_new(arena, ATTN_SHAPE(WIDTH, WIDTH)),
        attn_parameter_new(arena, ATTN_SHAPE(1, WIDTH)),
        attn_parameter_new(arena, ATTN_SHAPE(1)),
    };
    return model;
}

/* One step on a batch of so many sequences: forward, a mask, and back.
   NULL from one call is passed to the next nowhere. */
static bool step(attn_tape *tape, const struct model *m,
                 const size_t *tokens, size_t sequences) {
    attn_tensor *x =
        attn_embedding(tape, m->words, tokens, ATTN_SHAPE(sequences, TIME));
    attn_mask *mask =
        x ? attn_mask_causal(attn_tape_arena(tape), TIME, TIME) : NULL;
    attn_tensor *q = mask ? attn_linear(tape, x, m->query, NULL) : NULL;
    attn_tensor *k = q ? attn_linear(tape, x, m->key, NULL) : NULL;
    attn_tensor *v = k ? attn_linear(tape, x, m->value, NULL) : NULL;
    const attn_attend_options options = {.heads = 3, .mask = mask};
    attn_tensor *y = v ? attn_attend(tape, q, k, v, &options) : NULL;
    y = y ? attn_add(tape, x, y) : NULL;
    y = y ? attn_mean_positions(tape, y) : NULL;
    y = y ? attn_linear(tape, y, m->out, m->bias) : NULL;
    attn_tensor *ones =
        y ? attn_tensor_new(attn_tape_arena(tape), y->rank, y->shape)
          : NULL;
    return ones && attn_backward(tape, y, ones);
}

static size_t tokens[BATCH * TIME];

START_TEST(a_training_step_never_allocates) {
    attn_tape *tape = attn_tape_new();
    struct model model = model_new(inputs);
    for (size_t i = 0; i < BATCH * TIME; i++)
        tokens[i] = i * 7 % 10;
    catch_errors();
    ck_assert(step(tape, &model, tokens, BATCH));
    attn_tape_reset(tape);
    start_counting(NEVER);
    for (int round = 0; round < 20; round++) {
        bool done;
        /* Also a last batch that is shorter. */
        WATCH(done = step(tape, &model, tokens,
                          round % 5 == 4 ? BATCH / 3 : BATCH));
        ck_assert(done);
        WATCH(attn_tape_reset(tape));
    }
    ck_assert_uint_eq(allocation.calls, 0);
    ck_assert_int_eq(caught.count, 0);
    attn_tape_free(tape);
}
END_TEST

/* A tape from its making to its end, in which the call of the number given
   to the system fails. True if none did. */
static bool live_and_fail(size_t call) {
    struct model model = model_new(inputs);
    attn_tape *tape;
    bool done = false;
    allocation.live = 0;
    catch_errors();
    start_counting(call);
    WATCH(tape = attn_tape_new());
    if (tape != NULL)
        WATCH(done = step(tape, &model, tokens, BATCH));
    if (done)
        WATCH(attn_tape_reset(tape));
    bool none_failed = allocation.calls < call;
    start_counting(NEVER);
    if (tape != NULL)
        WATCH(attn_tape_free(tape));
    ck_assert_int_eq(allocation.live, 0);
    if (!done)
        ck_assert_int_eq(caught.count, 1);
    else
        ck_assert_int_eq(caught.count, 0); /* a reset may make do */
    return none_failed;
}

START_TEST(every_allocation_of_a_step_may_fail) {
    size_t call = 1;
    while (!live_and_fail(call))
        ck_assert_uint_lt(++call, 100);
    ck_assert_uint_gt(call, 4); /* the tape, its arena, some blocks */
}
END_TEST

START_TEST(a_tape_short_of_memory) {
    attn_tape *tape;
    allocation.live = 0;
    start_counting(1);
    catch_errors();
    WATCH(tape = attn_tape_new());
    ck_assert_ptr_null(tape);
    ck_assert_str_eq(caught.last, "attn_tape_new: no memory");
    start_counting(2);
    catch_errors();
    WATCH(tape = attn_tape_new());
    ck_assert_ptr_null(tape);
    ck_assert_int_eq(caught.count, 1);
    ck_assert_str_eq(caught.last, "attn_tape_new: no memory");
    ck_assert_int_eq(allocation.live, 0);
    start_counting(NEVER);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("allocation");
    TCase *test = tcase_create("failures");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_loop_test(test, an_operation_short_of_memory, 0, OPERATIONS);
    tcase_add_test(test, every_allocation_of_a_step_may_fail);
    tcase_add_test(test, a_tape_short_of_memory);
    suite_add_tcase(suite, test);
    TCase *steady = tcase_create("steady");
    tcase_add_checked_fixture(steady, set_up, tear_down);
    tcase_add_test(steady, a_training_step_never_allocates);
    suite_add_tcase(suite, steady);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
