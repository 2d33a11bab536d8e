/* attn_gemm: both of its ways against sums in double, for all layouts,
   sizes on either side of every block, and any number of threads. */
#include <omp.h>
#include <stdint.h>

#include "check_support.h"
#include "internal.h"

/* The result of a product with all that belongs to it. */
struct sizes {
    size_t n, m, k;
};

static attn_arena *arena;
static attn_torch_generator generator;

static void set_up(void) {
    arena = attn_arena_new();
    attn_torch_seed(&generator, 5);
}

static void tear_down(void) {
    attn_arena_free(arena);
}

/* So many floats, random, with rows further apart than they are long. */
static attn_operand random_operand(size_t rows, size_t columns,
                                   bool transposed, size_t gap) {
    size_t stored_rows = transposed ? columns : rows;
    size_t stride = (transposed ? rows : columns) + gap;
    attn_tensor *tensor =
        attn_tensor_new(arena, ATTN_SHAPE(stored_rows * stride));
    attn_torch_normal(&generator, tensor);
    return (attn_operand){tensor->value, stride, transposed};
}

static double element(attn_operand operand, size_t row, size_t column) {
    return (double)(operand.transposed
                        ? operand.value[column * operand.stride + row]
                        : operand.value[row * operand.stride + column]);
}

/* Rounding of a sum of k products of normal numbers, generously: k steps
   of at most half an ulp of a sum of size sqrt(k), and never more than
   this many sizes of it. */
static double allowance(size_t k) {
    return 1e-6 * (1.0 + sqrt((double)k)) * 4.0;
}

static void check_product(attn_gemm_way way, struct sizes s,
                          attn_operand a, attn_operand b, float factor,
                          float keep) {
    size_t stride = s.m + 3;
    attn_tensor *c = attn_tensor_new(arena, ATTN_SHAPE(s.n * stride));
    attn_tensor *before = attn_tensor_new(arena, ATTN_SHAPE(s.n * stride));
    attn_torch_normal(&generator, before);
    memcpy(c->value, before->value, s.n * stride * sizeof(float));
    if (keep == 0.0f) /* what is not kept may be anything */
        for (size_t i = 0; i < s.n; i++)
            for (size_t j = 0; j < s.m; j++)
                c->value[i * stride + j] = NAN;
    way(s.n, s.m, s.k, factor, a, b, keep, c->value, stride);
    for (size_t i = 0; i < s.n; i++)
        for (size_t j = 0; j < stride; j++) {
            double old = (double)before->value[i * stride + j];
            double found = (double)c->value[i * stride + j], sum = 0.0;
            for (size_t p = 0; j < s.m && p < s.k; p++)
                sum += element(a, i, p) * element(b, p, j);
            double expected = j < s.m ? (double)factor * sum +
                                            (double)keep * old
                                      : old; /* between the rows */
            ck_assert_msg(fabs(found - expected) <= allowance(s.k),
                          "(%zu, %zu, %zu)%s%s: element (%zu, %zu) is "
                          "%.9g, not %.9g",
                          s.n, s.m, s.k, a.transposed ? " a'" : "",
                          b.transposed ? " b'" : "", i, j, found,
                          expected);
        }
}

/* Every layout, and the factors by turns. */
static void check_layouts(attn_gemm_way way, struct sizes s) {
    static const float factors[3][2] = {
        {1.0f, 0.0f}, {-0.5f, 1.0f}, {1.0f, 0.25f}};
    static unsigned turn;
    for (unsigned layout = 0; layout < 4; layout++) {
        attn_operand a =
            random_operand(s.n, s.k, layout & 1, layout ? 2 : 0);
        attn_operand b =
            random_operand(s.k, s.m, layout & 2, layout ? 5 : 0);
        const float *factor = factors[turn++ % 3];
        check_product(way, s, a, b, factor[0], factor[1]);
        attn_arena_reset(arena);
    }
}

START_TEST(small_sizes_by_vectors) {
    static const size_t sizes[] = {1, 2, 3, 5, 6, 7, 8, 9, 15, 17, 33};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < COUNT; j++)
            check_layouts(
                attn_gemm_by_vectors,
                (struct sizes){sizes[i], sizes[j], sizes[(i + j) % COUNT]});
}
END_TEST

START_TEST(long_sums_by_vectors) {
    check_layouts(attn_gemm_by_vectors, (struct sizes){3, 5, 511});
    check_layouts(attn_gemm_by_vectors, (struct sizes){2, 18, 512});
    check_layouts(attn_gemm_by_vectors, (struct sizes){7, 4, 513});
    check_layouts(attn_gemm_by_vectors, (struct sizes){1, 1, 1700});
}
END_TEST

START_TEST(some_sizes_through_blas) {
    check_layouts(attn_gemm_by_blas, (struct sizes){1, 1, 1});
    check_layouts(attn_gemm_by_blas, (struct sizes){5, 7, 9});
    check_layouts(attn_gemm_by_blas, (struct sizes){64, 33, 70});
    check_layouts(attn_gemm_by_blas, (struct sizes){1, 100, 300});
}
END_TEST

START_TEST(sizes_on_both_sides_of_the_choice) {
    check_layouts(attn_gemm, (struct sizes){8, 8, 8});
    check_layouts(attn_gemm, (struct sizes){255, 20, 30});
    check_layouts(attn_gemm, (struct sizes){256, 10, 11});
    check_layouts(attn_gemm, (struct sizes){257, 40, 12});
    check_layouts(attn_gemm, (struct sizes){600, 17, 64});
    check_layouts(attn_gemm, (struct sizes){130, 140, 150});
}
END_TEST

START_TEST(a_large_product) {
    struct sizes s = {520, 130, 140}; /* in groups, through BLAS */
    attn_operand a = random_operand(s.n, s.k, false, 0);
    attn_operand b = random_operand(s.k, s.m, true, 0);
    check_product(attn_gemm, s, a, b, 1.0f, 0.0f);
}
END_TEST

START_TEST(a_row_alone_has_the_same_digits) {
    struct sizes s = {23, 37, 50};
    attn_operand a = random_operand(s.n, s.k, false, 0);
    attn_operand b = random_operand(s.k, s.m, true, 0);
    float all[23 * 37], row[37];
    attn_gemm_by_vectors(s.n, s.m, s.k, 0.3f, a, b, 0.0f, all, s.m);
    for (size_t i = 0; i < s.n; i++) {
        attn_operand one = {a.value + i * a.stride, a.stride, false};
        attn_gemm_by_vectors(1, s.m, s.k, 0.3f, one, b, 0.0f, row, s.m);
        ck_assert_mem_eq(row, all + i * s.m, sizeof row);
    }
}
END_TEST

/* The product on so many threads. */
static const float *on_threads(int threads, struct sizes s, attn_operand a,
                               attn_operand b) {
    float *c = attn_arena_allocate(arena, s.n * s.m * sizeof *c);
    omp_set_num_threads(threads);
    attn_gemm(s.n, s.m, s.k, 1.0f, a, b, 0.0f, c, s.m);
    return c;
}

START_TEST(digits_do_not_depend_on_threads) {
    const struct sizes sizes[] = {
        {1100, 60, 70}, {700, 200, 190}, {257, 300, 150}, {64, 64, 64}};
    int threads = omp_get_max_threads();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sizes s = sizes[i];
        attn_operand a = random_operand(s.n, s.k, i % 2, 0);
        attn_operand b = random_operand(s.k, s.m, i / 2 % 2, 0);
        const float *one = on_threads(1, s, a, b);
        for (int count = 2; count <= 5; count++)
            ck_assert_mem_eq(one, on_threads(count, s, a, b),
                             s.n * s.m * sizeof(float));
        attn_arena_reset(arena);
    }
    omp_set_num_threads(threads);
}
END_TEST

/* Gradients of a batch of products on so many threads. */
static attn_tensor *gradients_on_threads(int threads, attn_tensor *a,
                                         attn_tensor *b) {
    omp_set_num_threads(threads);
    attn_tape *tape = attn_tape_new();
    attn_tensor *c = attn_matmul_transposed(tape, a, b);
    memset(a->gradient, 0, attn_tensor_size(a) * sizeof(float));
    memset(b->gradient, 0, attn_tensor_size(b) * sizeof(float));
    attn_backward(tape, c, c);
    size_t half = attn_tensor_size(a);
    attn_tensor *both = attn_tensor_new(arena, ATTN_SHAPE(2 * half));
    memcpy(both->value, a->gradient, half * sizeof(float));
    memcpy(both->value + half, b->gradient, half * sizeof(float));
    attn_tape_free(tape);
    return both;
}

START_TEST(batches_do_not_depend_on_threads) {
    int threads = omp_get_max_threads();
    attn_tensor *a = attn_parameter_new(arena, ATTN_SHAPE(12, 60, 50));
    attn_tensor *b = attn_parameter_new(arena, ATTN_SHAPE(12, 60, 50));
    attn_torch_normal(&generator, a);
    attn_torch_normal(&generator, b);
    attn_tensor *one = gradients_on_threads(1, a, b);
    for (int count = 2; count <= 5; count++)
        ck_assert_mem_eq(one->value, gradients_on_threads(count, a, b)->value,
                         attn_tensor_size(one) * sizeof(float));
    omp_set_num_threads(threads);
}
END_TEST

START_TEST(infinities_and_nans_stay_where_they_belong) {
    float a[6] = {1, 2, 3, NAN, 5, 6}, b[3] = {1, INFINITY, 1}, c[2];
    attn_gemm(2, 1, 3, 1.0f, (attn_operand){a, 3, false},
              (attn_operand){b, 1, false}, 0.0f, c, 1);
    ck_assert(isinf(c[0]) && c[0] > 0);
    ck_assert(isnan(c[1]));
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("products");
    TCase *test = tcase_create("gemm");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, small_sizes_by_vectors);
    tcase_add_test(test, long_sums_by_vectors);
    tcase_add_test(test, some_sizes_through_blas);
    tcase_add_test(test, sizes_on_both_sides_of_the_choice);
    tcase_add_test(test, a_large_product);
    tcase_add_test(test, a_row_alone_has_the_same_digits);
    tcase_add_test(test, digits_do_not_depend_on_threads);
    tcase_add_test(test, batches_do_not_depend_on_threads);
    tcase_add_test(test, infinities_and_nans_stay_where_they_belong);
    suite_add_tcase(suite, test);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
