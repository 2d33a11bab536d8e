/* The tape and its operations: values and gradients beside PyTorch's, what
   the tape does with them, and every error. */
#include "check_support.h"

/* Sums of at most 40 products of float32: their rounding, relative to the
   largest element, stays below this. */
#define TOLERANCE 1e-6

static attn_tape *tape;

static void set_up(void) {
    tape = attn_tape_new();
    catch_errors();
}

static void tear_down(void) {
    ck_assert_int_eq(caught.count, 0);
    attn_tape_free(tape);
}

static attn_tensor *filled(size_t rank, const size_t shape[]) {
    attn_tensor *tensor =
        attn_parameter_new(attn_tape_arena(tape), rank, shape);
    for (size_t i = 0; i < attn_tensor_size(tensor); i++)
        tensor->value[i] = (float)i - 2.5f;
    return tensor;
}

/* ---- Golden numbers ----------------------------------------------------- */

typedef attn_tensor *operation(const golden *file, const char *name,
                               attn_tensor *const x[]);

static attn_tensor *run_add(const golden *file, const char *name,
                            attn_tensor *const x[]) {
    (void)file, (void)name;
    return attn_add(tape, x[0], x[1]);
}

static attn_tensor *run_scale(const golden *file, const char *name,
                              attn_tensor *const x[]) {
    return attn_scale(tape, x[0],
                      golden_tensor(file, "%s.factor", name)->value[0]);
}

static attn_tensor *run_matmul(const golden *file, const char *name,
                               attn_tensor *const x[]) {
    (void)file, (void)name;
    return attn_matmul(tape, x[0], x[1]);
}

static attn_tensor *run_transposed(const golden *file, const char *name,
                                   attn_tensor *const x[]) {
    (void)file, (void)name;
    return attn_matmul_transposed(tape, x[0], x[1]);
}

static attn_tensor *run_gram(const golden *file, const char *name,
                             attn_tensor *const x[]) {
    (void)file, (void)name;
    return attn_matmul_transposed(tape, x[0], x[0]);
}

static attn_tensor *run_linear(const golden *file, const char *name,
                               attn_tensor *const x[]) {
    (void)file, (void)name;
    return attn_linear(tape, x[0], x[1], x[2]);
}

/* The indices, in memory that is overwritten once they have been used. */
static size_t indices[64];

static attn_tensor *read_indices(const golden *file, const char *name,
                                 const char *which) {
    attn_tensor *tensor = golden_tensor(file, "%s.%s", name, which);
    for (size_t i = 0; i < attn_tensor_size(tensor); i++)
        indices[i] = (size_t)tensor->value[i];
    return tensor;
}

static attn_tensor *run_embedding(const golden *file, const char *name,
                                  attn_tensor *const x[]) {
    attn_tensor *index = read_indices(file, name, "index");
    attn_tensor *y = attn_embedding(tape, x[0], indices, index->rank,
                                    index->shape);
    memset(indices, 0xff, sizeof indices);
    return y;
}

static attn_tensor *run_rows(const golden *file, const char *name,
                             attn_tensor *const x[]) {
    attn_tensor *order = read_indices(file, name, "order");
    attn_tensor *y = attn_rows(tape, x[0], indices, order->shape[0]);
    memset(indices, 0xff, sizeof indices);
    return y;
}

static attn_tensor *run_mean(const golden *file, const char *name,
                             attn_tensor *const x[]) {
    (void)file, (void)name;
    return attn_mean_positions(tape, x[0]);
}

static attn_tensor *run_reshape(const golden *file, const char *name,
                                attn_tensor *const x[]) {
    const attn_tensor *y = golden_tensor(file, "%s.y", name);
    return attn_add(tape, attn_reshape(tape, x[0], y->rank, y->shape),
                    x[1]);
}

/* One case: forward, backward, and which gradients are wanted. */
static void check_case(const golden *file, operation *run,
                       const char *name, unsigned wanted) {
    char what[64];
    attn_tensor *x[3] = {NULL};
    for (size_t i = 0; i < 3 && golden_has(file, "%s.x%zu", name, i); i++) {
        x[i] = golden_tensor(file, "%s.x%zu", name, i);
        if (!(wanted & (1u << i)))
            x[i]->gradient = NULL;
    }
    attn_tensor *y = run(file, name, x);
    snprintf(what, sizeof what, "%s.y", name);
    check_values(y, golden_tensor(file, "%s.y", name), TOLERANCE, what);
    ck_assert_int_eq(y->gradient != NULL, wanted != 0);
    if (wanted == 0)
        return;
    ck_assert(attn_backward(tape, y, golden_tensor(file, "%s.d", name)));
    for (size_t i = 0; i < 3 && x[i] != NULL; i++) {
        snprintf(what, sizeof what, "%s.g%zu", name, i);
        if (x[i]->gradient != NULL)
            check_gradient(x[i],
                           golden_tensor(file, "%s.g%zu", name, i),
                           TOLERANCE, what);
    }
}

/* Every case of the operation, with every choice of inputs that want a
   gradient. */
static void check_cases(operation *run, const char *operation_name,
                        size_t least) {
    golden file = golden_read("tests/golden/operations.golden");
    size_t count = 0;
    for (;; count++) {
        char name[48];
        snprintf(name, sizeof name, "%s.%zu", operation_name, count);
        if (!golden_has(&file, "%s.x0", name))
            break;
        size_t inputs = 1;
        while (golden_has(&file, "%s.x%zu", name, inputs))
            inputs++;
        for (unsigned wanted = 0; wanted < 1u << inputs; wanted++) {
            check_case(&file, run, name, wanted);
            attn_tape_reset(tape);
        }
    }
    ck_assert_uint_ge(count, least);
    golden_free(&file);
}

START_TEST(add_as_in_pytorch) {
    check_cases(run_add, "add", 13);
}
END_TEST

START_TEST(scale_as_in_pytorch) {
    check_cases(run_scale, "scale", 4);
}
END_TEST

START_TEST(matmul_as_in_pytorch) {
    check_cases(run_matmul, "matmul", 13);
}
END_TEST

START_TEST(matmul_transposed_as_in_pytorch) {
    check_cases(run_transposed, "transposed", 13);
}
END_TEST

START_TEST(product_with_itself_as_in_pytorch) {
    check_cases(run_gram, "gram", 3);
}
END_TEST

START_TEST(linear_as_in_pytorch) {
    check_cases(run_linear, "linear", 16);
}
END_TEST

START_TEST(embedding_as_in_pytorch) {
    check_cases(run_embedding, "embedding", 5);
}
END_TEST

START_TEST(rows_as_in_pytorch) {
    check_cases(run_rows, "rows", 4);
}
END_TEST

START_TEST(mean_positions_as_in_pytorch) {
    check_cases(run_mean, "mean", 4);
}
END_TEST

START_TEST(reshape_as_in_pytorch) {
    check_cases(run_reshape, "reshape", 4);
}
END_TEST

/* ---- The tape ----------------------------------------------------------- */

START_TEST(gradients_are_added) {
    attn_tensor *x = filled(ATTN_SHAPE(1, 1));
    x->gradient[0] = 10.0f;
    attn_tensor *y = attn_scale(tape, x, 3.0f);
    ck_assert(attn_backward(tape, y, NULL));
    ck_assert(x->gradient[0] == 13.0f);
    y = attn_scale(tape, x, 4.0f);
    ck_assert(attn_backward(tape, y, NULL));
    ck_assert(x->gradient[0] == 17.0f);
}
END_TEST

START_TEST(a_tensor_used_twice_receives_both_parts) {
    attn_tensor *x = filled(ATTN_SHAPE(1));
    attn_tensor *y = attn_add(tape, attn_scale(tape, x, 2.0f), x);
    y = attn_add(tape, y, y);
    ck_assert(attn_backward(tape, y, NULL));
    ck_assert(x->gradient[0] == 6.0f);
}
END_TEST

START_TEST(a_single_number_begins_with_one) {
    attn_tensor *x = filled(0, NULL);
    attn_tensor *y = attn_scale(tape, x, 2.0f);
    ck_assert_uint_eq(y->rank, 0);
    ck_assert(attn_backward(tape, y, NULL));
    ck_assert(x->gradient[0] == 2.0f);
}
END_TEST

START_TEST(nothing_is_recorded_without_a_wish) {
    attn_tensor *x = filled(ATTN_SHAPE(2, 3));
    x->gradient = NULL;
    attn_tensor *y = attn_scale(tape, x, 2.0f);
    ck_assert_ptr_null(y->gradient);
    ck_assert_error(attn_backward(tape, y, NULL),
                    "attn_backward: the result has no gradient: nothing "
                    "it was computed from wants one");
    catch_errors();
}
END_TEST

START_TEST(nothing_is_recorded_when_recording_is_off) {
    attn_tensor *x = filled(ATTN_SHAPE(2, 3));
    attn_tape_record(tape, false);
    attn_tensor *y = attn_scale(tape, x, 2.0f);
    ck_assert_ptr_null(y->gradient);
    attn_tensor *view = attn_reshape(tape, x, ATTN_SHAPE(6));
    ck_assert_ptr_null(view->gradient);
    attn_tape_record(tape, true);
    y = attn_scale(tape, x, 2.0f);
    ck_assert_ptr_nonnull(y->gradient);
}
END_TEST

START_TEST(steps_are_used_up) {
    attn_tensor *x = filled(ATTN_SHAPE(1));
    attn_tensor *y = attn_scale(tape, x, 2.0f);
    ck_assert(attn_backward(tape, y, NULL));
    ck_assert_error(attn_backward(tape, y, NULL),
                    "attn_backward: there are no steps to walk back over");
    ck_assert(x->gradient[0] == 2.0f);
    catch_errors();
}
END_TEST

START_TEST(reset_forgets_steps_and_keeps_recording) {
    attn_arena *memory = attn_arena_new();
    attn_tensor *x = attn_parameter_new(memory, ATTN_SHAPE(1));
    attn_scale(tape, x, 2.0f);
    attn_tape_reset(tape);
    attn_tensor *y = attn_scale(tape, x, 5.0f);
    ck_assert(attn_backward(tape, y, NULL));
    ck_assert(x->gradient[0] == 5.0f);
    attn_arena_free(memory);
}
END_TEST

START_TEST(a_reshaped_tensor_shares_its_memory) {
    attn_tensor *x = filled(ATTN_SHAPE(2, 6));
    attn_tensor *view = attn_reshape(tape, x, ATTN_SHAPE(3, 4));
    ck_assert_ptr_eq(view->value, x->value);
    ck_assert_ptr_eq(view->gradient, x->gradient);
    ck_assert_uint_eq(view->shape[0], 3);
    ck_assert_uint_eq(x->shape[0], 2);
}
END_TEST

START_TEST(backward_errors) {
    attn_tensor *x = filled(ATTN_SHAPE(2, 3));
    attn_tensor *y = attn_scale(tape, x, 2.0f);
    attn_tensor *other = filled(ATTN_SHAPE(3, 2));
    ck_assert_error(attn_backward(NULL, y, NULL),
                    "attn_backward: tape is NULL");
    ck_assert_error(attn_backward(tape, NULL, NULL),
                    "attn_backward: result is NULL");
    ck_assert_error(
        attn_backward(tape, y, NULL),
        "attn_backward: a result of (2, 3) needs a gradient to begin with");
    ck_assert_error(
        attn_backward(tape, y, other),
        "attn_backward: the gradient of a result of (2, 3) cannot have "
        "(3, 2)");
    for (size_t i = 0; i < 6; i++)
        ck_assert(x->gradient[i] == 0.0f && y->gradient[i] == 0.0f);
    ck_assert(attn_backward(tape, y, filled(ATTN_SHAPE(2, 3))));
    catch_errors();
}
END_TEST

START_TEST(tape_errors) {
    ck_assert_error(attn_tape_arena(NULL), "attn_tape_arena: tape is NULL");
    ck_assert_error((attn_tape_reset(NULL), false),
                    "attn_tape_reset: tape is NULL");
    ck_assert_error((attn_tape_record(NULL, true), false),
                    "attn_tape_record: tape is NULL");
    catch_errors();
    attn_tape_free(NULL);
    ck_assert_int_eq(caught.count, 0);
}
END_TEST

/* ---- Errors of operations ----------------------------------------------- */

START_TEST(add_errors) {
    attn_tensor *a = filled(ATTN_SHAPE(2, 3)), *b = filled(ATTN_SHAPE(2));
    attn_tensor *longer = filled(ATTN_SHAPE(1, 2, 3));
    ck_assert_error(attn_add(NULL, a, b), "attn_add: tape is NULL");
    ck_assert_error(attn_add(tape, NULL, b), "attn_add: a is NULL");
    ck_assert_error(attn_add(tape, a, NULL), "attn_add: b is NULL");
    ck_assert_error(attn_add(tape, a, b),
                    "attn_add: the shapes do not match: (2, 3) + (2)");
    ck_assert_error(
        attn_add(tape, a, longer),
        "attn_add: the shapes do not match: (2, 3) + (1, 2, 3)");
    catch_errors();
}
END_TEST

START_TEST(scale_errors) {
    attn_tensor *a = filled(ATTN_SHAPE(2, 3));
    ck_assert_error(attn_scale(NULL, a, 1), "attn_scale: tape is NULL");
    ck_assert_error(attn_scale(tape, NULL, 1), "attn_scale: a is NULL");
    catch_errors();
}
END_TEST

START_TEST(matmul_errors) {
    attn_tensor *a = filled(ATTN_SHAPE(2, 3)), *b = filled(ATTN_SHAPE(4, 5));
    attn_tensor *row = filled(ATTN_SHAPE(3));
    attn_tensor *batch = filled(ATTN_SHAPE(3, 4, 5));
    attn_tensor *other = filled(ATTN_SHAPE(2, 5, 4));
    attn_tensor *deep = filled(ATTN_SHAPE(1, 3, 5, 4));
    ck_assert_error(attn_matmul(NULL, a, b), "attn_matmul: tape is NULL");
    ck_assert_error(attn_matmul(tape, NULL, b), "attn_matmul: a is NULL");
    ck_assert_error(attn_matmul(tape, a, NULL), "attn_matmul: b is NULL");
    ck_assert_error(attn_matmul(tape, a, b),
                    "attn_matmul: inner sizes differ: (2, 3) x (4, 5)");
    ck_assert_error(attn_matmul(tape, row, a),
                    "attn_matmul: a matrix has at least two dimensions: "
                    "(3) x (2, 3)");
    ck_assert_error(attn_matmul(tape, a, row),
                    "attn_matmul: a matrix has at least two dimensions: "
                    "(2, 3) x (3)");
    ck_assert_error(
        attn_matmul(tape, batch, other),
        "attn_matmul: leading sizes differ: (3, 4, 5) x (2, 5, 4)");
    ck_assert_error(
        attn_matmul(tape, batch, deep),
        "attn_matmul: leading sizes differ: (3, 4, 5) x (1, 3, 5, 4)");
    ck_assert_error(
        attn_matmul(tape, b, other),
        "attn_matmul: leading sizes differ: (4, 5) x (2, 5, 4)");
    catch_errors();
}
END_TEST

START_TEST(matmul_transposed_errors) {
    attn_tensor *a = filled(ATTN_SHAPE(2, 3)), *b = filled(ATTN_SHAPE(3, 5));
    ck_assert_error(attn_matmul_transposed(NULL, a, b),
                    "attn_matmul_transposed: tape is NULL");
    ck_assert_error(attn_matmul_transposed(tape, NULL, b),
                    "attn_matmul_transposed: a is NULL");
    ck_assert_error(attn_matmul_transposed(tape, a, NULL),
                    "attn_matmul_transposed: b is NULL");
    ck_assert_error(attn_matmul_transposed(tape, a, b),
                    "attn_matmul_transposed: inner sizes differ: (2, 3) x "
                    "(3, 5) transposed");
    catch_errors();
}
END_TEST

START_TEST(linear_errors) {
    attn_tensor *x = filled(ATTN_SHAPE(2, 3));
    attn_tensor *weight = filled(ATTN_SHAPE(4, 3));
    attn_tensor *bias = filled(ATTN_SHAPE(4)), *three = filled(ATTN_SHAPE(3));
    attn_tensor *row = filled(ATTN_SHAPE(1, 4)), *one = filled(0, NULL);
    ck_assert_error(attn_linear(NULL, x, weight, bias),
                    "attn_linear: tape is NULL");
    ck_assert_error(attn_linear(tape, NULL, weight, bias),
                    "attn_linear: x is NULL");
    ck_assert_error(attn_linear(tape, x, NULL, bias),
                    "attn_linear: weight is NULL");
    ck_assert_error(
        attn_linear(tape, bias, weight, bias),
        "attn_linear: a weight of (4, 3) does not fit an x of (4)");
    ck_assert_error(
        attn_linear(tape, one, weight, bias),
        "attn_linear: a weight of (4, 3) does not fit an x of ()");
    ck_assert_error(
        attn_linear(tape, x, three, bias),
        "attn_linear: a weight of (3) does not fit an x of (2, 3)");
    ck_assert_error(
        attn_linear(tape, x, weight, three),
        "attn_linear: a bias of (3) does not fit a weight of (4, 3)");
    ck_assert_error(
        attn_linear(tape, x, weight, row),
        "attn_linear: a bias of (1, 4) does not fit a weight of (4, 3)");
    catch_errors();
}
END_TEST

START_TEST(embedding_errors) {
    attn_tensor *table = filled(ATTN_SHAPE(5, 2)), *row = filled(ATTN_SHAPE(5));
    const size_t index[6] = {0, 4, 1, 5, 0, 0};
    ck_assert_error(attn_embedding(NULL, table, index, ATTN_SHAPE(6)),
                    "attn_embedding: tape is NULL");
    ck_assert_error(attn_embedding(tape, NULL, index, ATTN_SHAPE(6)),
                    "attn_embedding: table is NULL");
    ck_assert_error(attn_embedding(tape, table, NULL, ATTN_SHAPE(6)),
                    "attn_embedding: index is NULL");
    ck_assert_error(attn_embedding(tape, table, index, 1, NULL),
                    "attn_embedding: shape is NULL");
    ck_assert_error(
        attn_embedding(tape, table, index, ATTN_SHAPE(2, 3)),
        "attn_embedding: index 5 at place 3 is outside 5 rows");
    ck_assert_error(
        attn_embedding(tape, row, index, ATTN_SHAPE(2)),
        "attn_embedding: a table of (5) cannot be read by 1 dimensions");
    ck_assert_error(
        attn_embedding(tape, table, index, ATTN_SHAPE(1, 1, 1, 1)),
        "attn_embedding: a table of (5, 2) cannot be read by 4 dimensions");
    ck_assert_error(attn_embedding(tape, table, index, ATTN_SHAPE(0)),
                    "attn_embedding: a size is 0: (0, 2)");
    ck_assert_error(
        attn_embedding(tape, table, index, ATTN_SHAPE((size_t)-3)),
        "attn_embedding: the shape is too large: (18446744073709551613, 2)");
    catch_errors();
}
END_TEST

START_TEST(rows_errors) {
    attn_tensor *x = filled(ATTN_SHAPE(3, 2)), *one = filled(0, NULL);
    const size_t order[3] = {0, 1, 3};
    ck_assert_error(attn_rows(NULL, x, order, 3), "attn_rows: tape is NULL");
    ck_assert_error(attn_rows(tape, NULL, order, 3), "attn_rows: x is NULL");
    ck_assert_error(attn_rows(tape, x, NULL, 3), "attn_rows: order is NULL");
    ck_assert_error(attn_rows(tape, x, order, 3),
                    "attn_rows: index 3 at place 2 is outside 3 rows");
    ck_assert_error(attn_rows(tape, x, order, 0),
                    "attn_rows: a size is 0: (0, 2)");
    ck_assert_error(attn_rows(tape, one, order, 1),
                    "attn_rows: a single number has no rows");
    catch_errors();
}
END_TEST

START_TEST(mean_positions_errors) {
    attn_tensor *x = filled(ATTN_SHAPE(3, 2));
    ck_assert_error(attn_mean_positions(NULL, x),
                    "attn_mean_positions: tape is NULL");
    ck_assert_error(attn_mean_positions(tape, NULL),
                    "attn_mean_positions: x is NULL");
    ck_assert_error(
        attn_mean_positions(tape, x),
        "attn_mean_positions: (3, 2) is not (batch, positions, width)");
    catch_errors();
}
END_TEST

START_TEST(reshape_errors) {
    attn_tensor *x = filled(ATTN_SHAPE(3, 2));
    ck_assert_error(attn_reshape(NULL, x, ATTN_SHAPE(6)),
                    "attn_reshape: tape is NULL");
    ck_assert_error(attn_reshape(tape, NULL, ATTN_SHAPE(6)),
                    "attn_reshape: x is NULL");
    ck_assert_error(attn_reshape(tape, x, 1, NULL),
                    "attn_reshape: shape is NULL");
    ck_assert_error(attn_reshape(tape, x, ATTN_SHAPE(4)),
                    "attn_reshape: the sizes differ: (3, 2) to (4)");
    ck_assert_error(attn_reshape(tape, x, ATTN_SHAPE(6, 0)),
                    "attn_reshape: a size is 0: (6, 0)");
    ck_assert_error(attn_reshape(tape, x, ATTN_SHAPE(1, 1, 1, 1, 6)),
                    "attn_reshape: 5 dimensions are more than 4");
    catch_errors();
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("gradients");
    TCase *beside = tcase_create("golden");
    tcase_add_checked_fixture(beside, set_up, tear_down);
    tcase_add_test(beside, add_as_in_pytorch);
    tcase_add_test(beside, scale_as_in_pytorch);
    tcase_add_test(beside, matmul_as_in_pytorch);
    tcase_add_test(beside, matmul_transposed_as_in_pytorch);
    tcase_add_test(beside, product_with_itself_as_in_pytorch);
    tcase_add_test(beside, linear_as_in_pytorch);
    tcase_add_test(beside, embedding_as_in_pytorch);
    tcase_add_test(beside, rows_as_in_pytorch);
    tcase_add_test(beside, mean_positions_as_in_pytorch);
    tcase_add_test(beside, reshape_as_in_pytorch);
    suite_add_tcase(suite, beside);
    TCase *walk = tcase_create("tape");
    tcase_add_checked_fixture(walk, set_up, tear_down);
    tcase_add_test(walk, gradients_are_added);
    tcase_add_test(walk, a_tensor_used_twice_receives_both_parts);
    tcase_add_test(walk, a_single_number_begins_with_one);
    tcase_add_test(walk, nothing_is_recorded_without_a_wish);
    tcase_add_test(walk, nothing_is_recorded_when_recording_is_off);
    tcase_add_test(walk, steps_are_used_up);
    tcase_add_test(walk, reset_forgets_steps_and_keeps_recording);
    tcase_add_test(walk, a_reshaped_tensor_shares_its_memory);
    tcase_add_test(walk, backward_errors);
    tcase_add_test(walk, tape_errors);
    suite_add_tcase(suite, walk);
    TCase *errors = tcase_create("errors");
    tcase_add_checked_fixture(errors, set_up, tear_down);
    tcase_add_test(errors, add_errors);
    tcase_add_test(errors, scale_errors);
    tcase_add_test(errors, matmul_errors);
    tcase_add_test(errors, matmul_transposed_errors);
    tcase_add_test(errors, linear_errors);
    tcase_add_test(errors, embedding_errors);
    tcase_add_test(errors, rows_errors);
    tcase_add_test(errors, mean_positions_errors);
    tcase_add_test(errors, reshape_errors);
    suite_add_tcase(suite, errors);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
