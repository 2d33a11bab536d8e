/* The random streams against PyTorch's and NumPy's own, bit for bit: every
   number that tests/golden/streams.py stored, and hashes of a million more.
   There is no tolerance anywhere. PyTorch's randn of sixteen elements and
   more uses polynomials of its own for the logarithm and the sine, which
   generators.c evaluates with the same roundings.

   link: -pthread */
#include "check_support.h"

#include <inttypes.h>
#include <pthread.h>

#define GOLDEN "tests/golden/streams.golden"
#define BLOCK 4096

static golden file;

static void open_golden(void) {
    file = golden_read(GOLDEN);
}

static void close_golden(void) {
    golden_free(&file);
}

/* ---- Numbers drawn, as words of their bits
 * -------------------------------- */

/* What was drawn, one word a number, each width bytes wide. */
typedef struct drawn {
    uint64_t *word;
    size_t count, width;
} drawn;

static drawn make_drawn(size_t count, size_t width) {
    drawn d = {calloc(count + 1, sizeof(uint64_t)), count, width};
    ck_assert_ptr_nonnull(d.word);
    return d;
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static drawn floats_of(const float *value, size_t count) {
    drawn d = make_drawn(count, sizeof(float));
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        d.word[i] = bits;
    }
    return d;
}

/* The words after "KIND NAME", with how many there should be. */
static const char *find_numbers(const char *kind, const char *name) {
    char header[200];
    int length = snprintf(header, sizeof header, "\n%s %s ", kind, name);
    const char *place = strstr(file.text, header);
    ck_assert_msg(place != NULL, "%s has no %s %s", GOLDEN, kind, name);
    return place + length;
}

static uint64_t next_number(const char **place, int base) {
    char *end;
    uint64_t number = strtoull(*place, &end, base);
    ck_assert_ptr_ne(end, *place);
    *place = end;
    return number;
}

static void check_words(drawn d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void check_words(drawn d, const char *format, ...) {
    char name[100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    const char *place = find_numbers("words", name);
    ck_assert_uint_eq(next_number(&place, 10), d.count);
    for (size_t i = 0; i < d.count; i++) {
        uint64_t expected = next_number(&place, 16);
        ck_assert_msg(d.word[i] == expected,
                      "%s: number %zu of %zu is %" PRIx64 ", not %" PRIx64,
                      name, i, d.count, d.word[i], expected);
    }
    free(d.word);
}

static uint64_t hash_of(const uint64_t *word, size_t count, size_t width) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        for (size_t byte = 0; byte < width; byte++) {
            hash ^= (word[i] >> (8 * byte)) & 0xff;
            hash *= UINT64_C(0x100000001b3);
        }
    return hash;
}

static void check_hashes(drawn d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void check_hashes(drawn d, const char *format, ...) {
    char name[100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    const char *place = find_numbers("hashes", name);
    ck_assert_uint_eq(next_number(&place, 10), d.width);
    ck_assert_uint_eq(next_number(&place, 10), d.count);
    for (size_t i = 0; i < d.count; i += BLOCK) {
        size_t size = d.count - i < BLOCK ? d.count - i : BLOCK;
        uint64_t found = hash_of(d.word + i, size, d.width);
        ck_assert_msg(found == next_number(&place, 16),
                      "%s: one of numbers %zu to %zu differs", name, i,
                      i + size - 1);
    }
    free(d.word);
}

/* ---- Drawing
 * -------------------------------------------------------------- */

static attn_torch_generator torch_of(uint64_t seed) {
    attn_torch_generator generator;
    attn_torch_seed(&generator, seed);
    return generator;
}

static attn_numpy_generator numpy_of(uint64_t seed) {
    attn_numpy_generator generator;
    attn_numpy_seed(&generator, seed);
    return generator;
}

static drawn torch_words(attn_torch_generator *generator, size_t count) {
    drawn d = make_drawn(count, 8);
    for (size_t i = 0; i < count; i++)
        d.word[i] = attn_torch_u64(generator);
    return d;
}

static drawn torch_doubles(attn_torch_generator *generator, size_t count) {
    drawn d = make_drawn(count, 8);
    for (size_t i = 0; i < count; i++)
        d.word[i] = bits_of(attn_torch_uniform_double(generator));
    return d;
}

static drawn torch_integers(attn_torch_generator *generator, size_t count,
                            int64_t low, int64_t high) {
    drawn d = make_drawn(count, 8);
    for (size_t i = 0; i < count; i++)
        d.word[i] = (uint64_t)attn_torch_integer(generator, low, high);
    return d;
}

static drawn torch_permutation(attn_torch_generator *generator,
                               size_t count) {
    size_t *order = calloc(count + 1, sizeof *order);
    ck_assert_ptr_nonnull(order);
    ck_assert(attn_torch_permutation(generator, count, order));
    drawn d = make_drawn(count, 8);
    for (size_t i = 0; i < count; i++)
        d.word[i] = order[i];
    free(order);
    return d;
}

/* The tensor is built by hand, as it may have no elements at all. */
static drawn torch_uniform(attn_torch_generator *generator, size_t count,
                           float low, float high) {
    float *value = calloc(count + 1, sizeof *value);
    ck_assert_ptr_nonnull(value);
    attn_tensor tensor = {.rank = 1, .shape = {count}, .value = value};
    ck_assert(attn_torch_uniform(generator, &tensor, low, high));
    drawn d = floats_of(value, count);
    free(value);
    return d;
}

static drawn torch_normal(attn_torch_generator *generator, size_t count) {
    float *value = calloc(count + 1, sizeof *value);
    ck_assert_ptr_nonnull(value);
    attn_tensor tensor = {.rank = 1, .shape = {count}, .value = value};
    ck_assert(attn_torch_normal(generator, &tensor));
    drawn d = floats_of(value, count);
    free(value);
    return d;
}

static drawn numpy_words(attn_numpy_generator *generator, size_t count) {
    drawn d = make_drawn(count, 8);
    for (size_t i = 0; i < count; i++)
        d.word[i] = attn_numpy_u64(generator);
    return d;
}

static drawn numpy_doubles(attn_numpy_generator *generator, size_t count) {
    drawn d = make_drawn(count, 8);
    for (size_t i = 0; i < count; i++)
        d.word[i] = bits_of(attn_numpy_uniform_double(generator));
    return d;
}

static drawn numpy_normals(attn_numpy_generator *generator, size_t count) {
    drawn d = make_drawn(count, 8);
    for (size_t i = 0; i < count; i++)
        d.word[i] = bits_of(attn_numpy_normal_double(generator));
    return d;
}

static drawn numpy_floats(attn_numpy_generator *generator, size_t rank,
                          const size_t shape[]) {
    attn_arena *memory = attn_arena_new();
    attn_tensor *tensor = attn_tensor_new(memory, rank, shape);
    ck_assert(attn_numpy_normal(generator, tensor));
    drawn d = floats_of(tensor->value, attn_tensor_size(tensor));
    attn_arena_free(memory);
    return d;
}

/* ---- PyTorch
 * -------------------------------------------------------------- */

static const uint64_t torch_seeds[] = {0,
                                       1,
                                       42,
                                       UINT64_C(1) << 31,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       (UINT64_C(1) << 40) + 5,
                                       INT64_MAX};
#define TORCH_SEEDS ((int)(sizeof torch_seeds / sizeof *torch_seeds))

START_TEST(torch_words_and_doubles) {
    uint64_t seed = torch_seeds[_i];
    attn_torch_generator generator = torch_of(seed);
    check_words(torch_words(&generator, 40), "torch-u64-%" PRIu64, seed);
    check_hashes(torch_words(&generator, 2000), "torch-u64-%" PRIu64, seed);
    drawn halves = make_drawn(9, 8);
    for (size_t i = 0; i < 9; i++)
        halves.word[i] = attn_torch_u32(&generator) & 0x7fffffffu;
    check_words(halves, "torch-u31-%" PRIu64, seed);
    check_words(torch_doubles(&generator, 20), "torch-double-%" PRIu64,
                seed);
}
END_TEST

START_TEST(torch_word_is_half_a_long_one) {
    attn_torch_generator one = torch_of(7);
    attn_torch_generator two = torch_of(7);
    for (size_t i = 0; i < 2000; i++) {
        uint64_t high = attn_torch_u32(&one);
        uint64_t low = attn_torch_u32(&one);
        ck_assert_uint_eq(attn_torch_u64(&two), (high << 32) | low);
    }
}
END_TEST

START_TEST(torch_uniform_floats) {
    static const float interval[][2] = {
        {0, 1},  {-0.25f, 0.25f}, {-0.1767767f, 0.1767767f},
        {-3, 5}, {2, 2},          {1e30f, 2e30f}};
    float low = interval[_i][0];
    float high = interval[_i][1];
    attn_torch_generator generator = torch_of((uint64_t)_i);
    static const size_t sizes[] = {1, 15, 16, 17, 100};
    for (size_t i = 0; i < 5; i++)
        check_words(torch_uniform(&generator, sizes[i], low, high),
                    "torch-uniform-%d-%zu", _i, sizes[i]);
    check_hashes(torch_uniform(&generator, 20000, low, high),
                 "torch-uniform-%d", _i);
}
END_TEST

START_TEST(torch_normals_of_every_size) {
    static const uint64_t seeds[] = {0, 1, (UINT64_C(1) << 40) + 5};
    static const size_t larger[] = {47, 48, 49, 63, 64, 65, 127, 128, 129};
    for (size_t i = 0; i < 36 + sizeof larger / sizeof *larger; i++) {
        size_t size = i < 36 ? i : larger[i - 36];
        attn_torch_generator generator = torch_of(seeds[_i]);
        check_words(torch_normal(&generator, size),
                    "torch-normal-%" PRIu64 "-%zu", seeds[_i], size);
    }
}
END_TEST

START_TEST(torch_normals_by_the_hundred_thousand) {
    static const size_t sizes[] = {1 << 18, 100003, 100016, 4097};
    attn_torch_generator generator = torch_of((uint64_t)_i);
    check_hashes(torch_normal(&generator, sizes[_i]), "torch-normal-%d",
                 _i);
}
END_TEST

START_TEST(torch_normals_one_by_one) {
    static const size_t sizes[] = {1, 2, 3, 5, 8, 13, 15};
    attn_torch_generator generator = torch_of(4);
    drawn all = make_drawn((size_t)700 * 47, sizeof(float));
    size_t filled = 0;
    for (size_t i = 0; i < (size_t)700 * 7; i++) {
        drawn some = torch_normal(&generator, sizes[i % 7]);
        for (size_t j = 0; j < some.count; j++)
            all.word[filled++] = some.word[j];
        free(some.word);
    }
    ck_assert_uint_eq(filled, all.count);
    check_hashes(all, "torch-normal-single");
}
END_TEST

static const int64_t ranges[][2] = {
    {0, 1},
    {0, 10},
    {1, 10},
    {-5, 5},
    {0, (INT64_C(1) << 31) - 1},
    {0, INT64_C(1) << 31},
    {0, (INT64_C(1) << 32) - 1},
    {0, INT64_C(1) << 32},
    {0, (INT64_C(1) << 32) + 1},
    {-7, INT64_C(1) << 40},
    {-(INT64_C(1) << 62), INT64_C(1) << 62},
    {INT64_MIN, INT64_MAX},
};
#define RANGES ((int)(sizeof ranges / sizeof *ranges))

START_TEST(torch_integers_of_every_range) {
    attn_torch_generator generator = torch_of((uint64_t)_i);
    check_words(
        torch_integers(&generator, 40, ranges[_i][0], ranges[_i][1]),
        "torch-integer-%d", _i);
}
END_TEST

START_TEST(torch_permutations) {
    static const size_t sizes[] = {0, 1, 2, 3, 10, 60, 64, 1000};
    attn_torch_generator generator = torch_of(0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_words(torch_permutation(&generator, sizes[i]),
                    "torch-permutation-%zu", sizes[i]);
    check_hashes(torch_permutation(&generator, 8000),
                 "torch-permutation-8000");
    ck_assert(attn_torch_permutation(&generator, 0, NULL));
}
END_TEST

START_TEST(torch_mixed_calls) {
    attn_torch_generator generator = torch_of(3);
    attn_torch_generator *g = &generator;
    check_words(torch_normal(g, 5), "torch-story-0");
    check_words(torch_integers(g, 3, 0, 10), "torch-story-1");
    check_words(torch_normal(g, 20), "torch-story-2");
    check_words(torch_doubles(g, 2), "torch-story-3");
    check_words(torch_permutation(g, 10), "torch-story-4");
    check_words(torch_uniform(g, 4, -1, 1), "torch-story-5");
    check_words(torch_normal(g, 2), "torch-story-6");
    check_words(torch_normal(g, 15), "torch-story-7");
    check_words(torch_normal(g, 16), "torch-story-8");
    check_words(torch_normal(g, 1), "torch-story-9");
    check_words(torch_normal(g, 0), "torch-story-10");
    check_words(torch_normal(g, 33), "torch-story-11");
}
END_TEST

START_TEST(torch_new_seed_drops_the_kept_normal) {
    attn_torch_generator generator = torch_of(3);
    free(torch_normal(&generator, 3).word);
    attn_torch_seed(&generator, 3);
    check_words(torch_normal(&generator, 3), "torch-story-again");
}
END_TEST

START_TEST(torch_copy_continues_the_stream) {
    attn_torch_generator original = torch_of(11);
    free(torch_normal(&original, 7).word);
    attn_torch_generator copy = original;
    for (size_t i = 0; i < 1000; i++) {
        drawn one = torch_normal(&original, 1);
        drawn two = torch_normal(&copy, 1);
        ck_assert_uint_eq(one.word[0], two.word[0]);
        free(one.word);
        free(two.word);
    }
}
END_TEST

/* ---- NumPy
 * ---------------------------------------------------------------- */

static const uint64_t numpy_seeds[] = {0,
                                       1,
                                       2,
                                       12345,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       (UINT64_C(1) << 40) + 5,
                                       UINT64_C(1) << 63,
                                       UINT64_MAX};
#define NUMPY_SEEDS ((int)(sizeof numpy_seeds / sizeof *numpy_seeds))

START_TEST(numpy_every_seed) {
    uint64_t seed = numpy_seeds[_i];
    attn_numpy_generator generator = numpy_of(seed);
    check_words(numpy_words(&generator, 24), "numpy-u64-%" PRIu64, seed);
    generator = numpy_of(seed);
    check_hashes(numpy_words(&generator, 5000), "numpy-u64-%" PRIu64, seed);
    generator = numpy_of(seed);
    check_words(numpy_doubles(&generator, 16), "numpy-double-%" PRIu64,
                seed);
    generator = numpy_of(seed);
    check_words(numpy_normals(&generator, 16), "numpy-normal-%" PRIu64,
                seed);
    generator = numpy_of(seed);
    check_hashes(numpy_normals(&generator, seed < 2 ? 1 << 20 : 20000),
                 "numpy-normal-%" PRIu64, seed);
}
END_TEST

START_TEST(numpy_mixed_calls) {
    attn_numpy_generator generator = numpy_of(5);
    check_words(numpy_floats(&generator, ATTN_SHAPE(3, 7)),
                "numpy-story-0");
    check_words(numpy_doubles(&generator, 5), "numpy-story-1");
    check_words(numpy_normals(&generator, 10), "numpy-story-2");
    check_words(numpy_words(&generator, 3), "numpy-story-3");
    check_hashes(numpy_floats(&generator, ATTN_SHAPE(100, 60, 1)),
                 "numpy-story-4");
}
END_TEST

/* Several threads draw their first normal number at the same time; the
   table behind it must be whole for each. */
static void *draw_sum(void *sum) {
    attn_numpy_generator generator = numpy_of(9);
    for (size_t i = 0; i < 20000; i++)
        *(double *)sum += attn_numpy_normal_double(&generator);
    return NULL;
}

START_TEST(numpy_first_use_by_many_threads) {
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    double sum[THREADS] = {0};
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, draw_sum, &sum[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    for (size_t i = 1; i < THREADS; i++)
        ck_assert_uint_eq(bits_of(sum[i]), bits_of(sum[0]));
}
END_TEST

/* ---- Mistakes
 * ------------------------------------------------------------- */

START_TEST(torch_mistakes) {
    float value[4] = {7, 7, 7, 7};
    attn_tensor tensor = {.rank = 1, .shape = {4}, .value = value};
    attn_torch_generator g = torch_of(0);
    size_t order[3];
    ck_assert_error(attn_torch_u32(NULL),
                    "attn_torch_u32: generator is NULL");
    ck_assert_error(attn_torch_u64(NULL),
                    "attn_torch_u64: generator is NULL");
    ck_assert_error(attn_torch_uniform_double(NULL) > 0,
                    "attn_torch_uniform_double: generator is NULL");
    ck_assert_error(attn_torch_uniform(NULL, &tensor, 0, 1),
                    "attn_torch_uniform: generator is NULL");
    ck_assert_error(attn_torch_uniform(&g, NULL, 0, 1),
                    "attn_torch_uniform: tensor is NULL");
    ck_assert_error(attn_torch_uniform(&g, &tensor, 1, 0),
                    "attn_torch_uniform: no interval from 1 to 0");
    ck_assert_error(attn_torch_uniform(&g, &tensor, 0, NAN),
                    "attn_torch_uniform: no interval from 0 to nan");
    ck_assert_error(attn_torch_uniform(&g, &tensor, 0, INFINITY),
                    "attn_torch_uniform: no interval from 0 to inf");
    ck_assert_error(attn_torch_normal(NULL, &tensor),
                    "attn_torch_normal: generator is NULL");
    ck_assert_error(attn_torch_normal(&g, NULL),
                    "attn_torch_normal: tensor is NULL");
    ck_assert_error(attn_torch_integer(NULL, 1, 2),
                    "attn_torch_integer: generator is NULL");
    ck_assert_error(attn_torch_integer(&g, 5, 5) != 5,
                    "attn_torch_integer: no integer from 5 to below 5");
    ck_assert_error(attn_torch_integer(&g, 5, -2) != 5,
                    "attn_torch_integer: no integer from 5 to below -2");
    ck_assert_error(attn_torch_permutation(NULL, 3, order),
                    "attn_torch_permutation: generator is NULL");
    ck_assert_error(attn_torch_permutation(&g, 3, NULL),
                    "attn_torch_permutation: order is NULL");
    attn_torch_generator fresh = torch_of(0);
    ck_assert_uint_eq(attn_torch_u64(&g), attn_torch_u64(&fresh));
    for (size_t i = 0; i < 4; i++)
        ck_assert_float_eq(value[i], 7);
    catch_errors();
    attn_torch_seed(NULL, 0);
    ck_assert_str_eq(caught.last, "attn_torch_seed: generator is NULL");
}
END_TEST

START_TEST(numpy_mistakes) {
    float value[4];
    attn_tensor tensor = {.rank = 1, .shape = {4}, .value = value};
    attn_numpy_generator g = numpy_of(0);
    ck_assert_error(attn_numpy_u64(NULL),
                    "attn_numpy_u64: generator is NULL");
    ck_assert_error(attn_numpy_uniform_double(NULL) > 0,
                    "attn_numpy_uniform_double: generator is NULL");
    ck_assert_error(attn_numpy_normal_double(NULL) > 0,
                    "attn_numpy_normal_double: generator is NULL");
    ck_assert_error(attn_numpy_normal(NULL, &tensor),
                    "attn_numpy_normal: generator is NULL");
    ck_assert_error(attn_numpy_normal(&g, NULL),
                    "attn_numpy_normal: tensor is NULL");
    attn_numpy_generator fresh = numpy_of(0);
    ck_assert_uint_eq(attn_numpy_u64(&g), attn_numpy_u64(&fresh));
    catch_errors();
    attn_numpy_seed(NULL, 0);
    ck_assert_str_eq(caught.last, "attn_numpy_seed: generator is NULL");
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("streams");
    TCase *torch = tcase_create("torch");
    tcase_set_timeout(torch, 60);
    tcase_add_checked_fixture(torch, open_golden, close_golden);
    tcase_add_loop_test(torch, torch_words_and_doubles, 0, TORCH_SEEDS);
    tcase_add_test(torch, torch_word_is_half_a_long_one);
    tcase_add_loop_test(torch, torch_uniform_floats, 0, 6);
    tcase_add_loop_test(torch, torch_normals_of_every_size, 0, 3);
    tcase_add_loop_test(torch, torch_normals_by_the_hundred_thousand, 0, 4);
    tcase_add_test(torch, torch_normals_one_by_one);
    tcase_add_loop_test(torch, torch_integers_of_every_range, 0, RANGES);
    tcase_add_test(torch, torch_permutations);
    tcase_add_test(torch, torch_mixed_calls);
    tcase_add_test(torch, torch_new_seed_drops_the_kept_normal);
    tcase_add_test(torch, torch_copy_continues_the_stream);
    tcase_add_test(torch, torch_mistakes);
    suite_add_tcase(suite, torch);
    TCase *numpy = tcase_create("numpy");
    tcase_set_timeout(numpy, 60);
    tcase_add_checked_fixture(numpy, open_golden, close_golden);
    tcase_add_test(numpy, numpy_first_use_by_many_threads);
    tcase_add_loop_test(numpy, numpy_every_seed, 0, NUMPY_SEEDS);
    tcase_add_test(numpy, numpy_mixed_calls);
    tcase_add_test(numpy, numpy_mistakes);
    suite_add_tcase(suite, numpy);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
