/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc,--wrap=free */
/* Tensors: what they hold, and shapes that cannot be. */
#include <limits.h>
#include <stdint.h>

#include "allocation.h"
#include "check_support.h"
#include "internal.h"

static attn_arena *arena;

static void set_up(void) {
    arena = attn_arena_new();
    /* Memory as a training step leaves it. */
    memset(attn_arena_allocate(arena, 60000), 0xff, 60000);
    attn_arena_reset(arena);
}

static void tear_down(void) {
    attn_arena_free(arena);
}

static void check_zeros(const float *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        ck_assert(values[i] == 0.0f);
}

START_TEST(new_tensors_are_zero) {
    attn_tensor *tensor = attn_tensor_new(arena, ATTN_SHAPE(2, 3, 5, 7));
    ck_assert_uint_eq(tensor->rank, 4);
    ck_assert_uint_eq(tensor->shape[0], 2);
    ck_assert_uint_eq(tensor->shape[3], 7);
    ck_assert_uint_eq(attn_tensor_size(tensor), 210);
    ck_assert_ptr_null(tensor->gradient);
    check_zeros(tensor->value, 210);
    ck_assert_uint_eq((uintptr_t)tensor->value % 64, 0);
}
END_TEST

START_TEST(parameters_have_a_gradient_of_zeros) {
    for (size_t size = 1; size < 40; size++) {
        attn_tensor *tensor = attn_parameter_new(arena, ATTN_SHAPE(size));
        check_zeros(tensor->value, size);
        check_zeros(tensor->gradient, size);
        ck_assert(tensor->gradient >= tensor->value + size);
        ck_assert_uint_eq((uintptr_t)tensor->gradient % 64, 0);
    }
}
END_TEST

START_TEST(from_copies_the_values) {
    float values[6] = {1, 2, 3, 4, 5, 6};
    attn_tensor *tensor =
        attn_tensor_from(arena, values, ATTN_SHAPE(2, 3));
    values[0] = 7;
    for (size_t i = 0; i < 6; i++)
        ck_assert(tensor->value[i] == (float)(i + 1));
    ck_assert_ptr_null(tensor->gradient);
}
END_TEST

START_TEST(a_single_number_has_no_dimensions) {
    attn_tensor *tensor = attn_parameter_new(arena, 0, NULL);
    ck_assert_ptr_nonnull(tensor);
    ck_assert_uint_eq(tensor->rank, 0);
    ck_assert_uint_eq(attn_tensor_size(tensor), 1);
    check_zeros(tensor->value, 1);
    check_zeros(tensor->gradient, 1);
}
END_TEST

/* What all three makers say about a shape. */
static void check_refused(size_t rank, const size_t shape[],
                          const char *message) {
    char sentence[300];
    float value = 0;
    snprintf(sentence, sizeof sentence, "attn_tensor_new: %s", message);
    ck_assert_error(attn_tensor_new(arena, rank, shape), sentence);
    snprintf(sentence, sizeof sentence, "attn_parameter_new: %s",
             message);
    ck_assert_error(attn_parameter_new(arena, rank, shape), sentence);
    snprintf(sentence, sizeof sentence, "attn_tensor_from: %s", message);
    ck_assert_error(attn_tensor_from(arena, &value, rank, shape),
                    sentence);
}

START_TEST(impossible_shapes_are_refused) {
    const size_t minus_one = (size_t)-1;
    size_t peak = attn_arena_peak(arena);
    check_refused(ATTN_SHAPE(1, 1, 1, 1, 1), "5 dimensions are more than 4");
    check_refused(2, NULL, "shape is NULL");
    check_refused(ATTN_SHAPE(0), "a size is 0: (0)");
    check_refused(ATTN_SHAPE(3, 0), "a size is 0: (3, 0)");
    check_refused(ATTN_SHAPE(minus_one, 5),
                  "the shape is too large: (18446744073709551615, 5)");
    check_refused(ATTN_SHAPE((size_t)INT_MAX + 1),
                  "the shape is too large: (2147483648)");
    /* 2^31 (2^31)^2 elements would wrap around to few. */
    check_refused(ATTN_SHAPE(INT_MAX, INT_MAX, INT_MAX),
                  "the shape is too large: "
                  "(2147483647, 2147483647, 2147483647)");
    /* 2^16 in each dimension wraps around to exactly 0. */
    check_refused(ATTN_SHAPE(1 << 16, 1 << 16, 1 << 16, 1 << 16),
                  "the shape is too large: (65536, 65536, 65536, 65536)");
    ck_assert_uint_eq(attn_arena_peak(arena), peak);
}
END_TEST

START_TEST(no_memory_for_a_possible_shape) {
    allocation.largest = 1 << 20;
    WATCH(check_refused(ATTN_SHAPE(1 << 30, 1 << 28),
                        "no memory for a tensor of "
                        "(1073741824, 268435456)"));
    allocation.largest = SIZE_MAX;
    ck_assert_ptr_nonnull(attn_tensor_new(arena, ATTN_SHAPE(4)));
}
END_TEST

START_TEST(null_arguments) {
    float value = 0;
    ck_assert_error(attn_tensor_new(NULL, ATTN_SHAPE(1)),
                    "attn_tensor_new: arena is NULL");
    ck_assert_error(attn_parameter_new(NULL, ATTN_SHAPE(1)),
                    "attn_parameter_new: arena is NULL");
    ck_assert_error(attn_tensor_from(NULL, &value, ATTN_SHAPE(1)),
                    "attn_tensor_from: arena is NULL");
    ck_assert_error(attn_tensor_from(arena, NULL, ATTN_SHAPE(1)),
                    "attn_tensor_from: values is NULL");
    ck_assert_error(attn_tensor_size(NULL),
                    "attn_tensor_size: tensor is NULL");
}
END_TEST

START_TEST(same_shapes) {
    attn_tensor *a = attn_tensor_new(arena, ATTN_SHAPE(2, 3));
    attn_tensor *b = attn_tensor_new(arena, ATTN_SHAPE(2, 3));
    attn_tensor *c = attn_tensor_new(arena, ATTN_SHAPE(3, 2));
    attn_tensor *d = attn_tensor_new(arena, ATTN_SHAPE(1, 2, 3));
    attn_tensor *e = attn_tensor_new(arena, 0, NULL);
    attn_tensor *f = attn_tensor_new(arena, ATTN_SHAPE(1));
    ck_assert(attn_same_shape(a, b));
    ck_assert(!attn_same_shape(a, c));
    ck_assert(!attn_same_shape(a, d));
    ck_assert(attn_same_shape(e, e));
    ck_assert(!attn_same_shape(e, f));
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("tensors");
    TCase *test = tcase_create("tensor");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_test(test, new_tensors_are_zero);
    tcase_add_test(test, parameters_have_a_gradient_of_zeros);
    tcase_add_test(test, from_copies_the_values);
    tcase_add_test(test, a_single_number_has_no_dimensions);
    tcase_add_test(test, impossible_shapes_are_refused);
    tcase_add_test(test, no_memory_for_a_possible_shape);
    tcase_add_test(test, null_arguments);
    tcase_add_test(test, same_shapes);
    suite_add_tcase(suite, test);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
