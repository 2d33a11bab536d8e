/* What the Check programs share: errors caught instead of aborting,
   golden numbers read from files, and closeness of tensors.

   A program's main is: return run_tests(argc, argv, make_suite()); */
#ifndef CHECK_SUPPORT_H
#define CHECK_SUPPORT_H

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"

#if defined __GNUC__
#define SUPPORT_UNUSED __attribute__((unused))
#else
#define SUPPORT_UNUSED
#endif

/* ---- Errors ------------------------------------------------------------- */

static struct {
    int count;      /* errors since the last catch_errors() */
    char last[640]; /* "function: message" of the last one */
} caught;

static void catch_error(const char *function, const char *message,
                        void *context) {
    (void)context;
    caught.count++;
    snprintf(caught.last, sizeof caught.last, "%s: %s", function, message);
}

/* From now on errors are counted and remembered, and calls return. */
static SUPPORT_UNUSED void catch_errors(void) {
    caught.count = 0;
    caught.last[0] = '\0';
    attn_set_error_handler(catch_error, NULL);
}

/* The call must return NULL or false and report exactly this sentence,
   "attn_add: a is NULL" for example, exactly once. */
#define ck_assert_error(call, sentence)                   \
    do {                                                  \
        catch_errors();                                   \
        ck_assert_msg(!(call), "%s did not fail", #call); \
        ck_assert_str_eq(caught.last, (sentence));        \
        ck_assert_int_eq(caught.count, 1);                \
    } while (0)

/* ---- Golden numbers ----------------------------------------------------- */

/* A file of tensors, each "tensor NAME d0 d1 ..." on a line and then its
   values in any number of lines, written exactly as hexadecimal floats
   (or inf, -inf, nan). Lines that begin with # are comments. */
typedef struct golden {
    char path[256];
    char *text;
    const char **names; /* where in the text each tensor's name stands */
    size_t count;
    attn_arena *memory;
} golden;

/* Finds the tensors of the text. */
static SUPPORT_UNUSED void golden_index(golden *file) {
    static const char mark[] = "tensor ";
    size_t room = 0;
    for (const char *line = file->text; line != NULL;
         line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, mark, sizeof mark - 1) != 0)
            continue;
        if (file->count == room) {
            room = 2 * room + 64;
            file->names = realloc(file->names, room * sizeof *file->names);
            ck_assert_ptr_nonnull(file->names);
        }
        file->names[file->count++] = line + sizeof mark - 1;
    }
}

static SUPPORT_UNUSED golden golden_read(const char *path) {
    golden file = {.memory = attn_arena_new()};
    snprintf(file.path, sizeof file.path, "%s", path);
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(fseek(stream, 0, SEEK_END), 0);
    long size = ftell(stream);
    ck_assert_int_ge(size, 0);
    rewind(stream);
    file.text = malloc((size_t)size + 2);
    ck_assert_ptr_nonnull(file.text);
    file.text[0] = '\n'; /* every line has one before it */
    ck_assert_uint_eq(fread(file.text + 1, 1, (size_t)size, stream), size);
    file.text[size + 1] = '\0';
    fclose(stream);
    golden_index(&file);
    return file;
}

static SUPPORT_UNUSED void golden_free(golden *file) {
    attn_arena_free(file->memory);
    free(file->names);
    free(file->text);
}

/* The sizes and values of the tensor, after its header's name, or NULL. */
static SUPPORT_UNUSED const char *golden_find(const golden *file,
                                              const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < file->count; i++) {
        const char *place = file->names[i];
        if (strncmp(place, name, length) == 0 &&
            (place[length] == ' ' || place[length] == '\n'))
            return place + length;
    }
    return NULL;
}

static SUPPORT_UNUSED bool golden_has(const golden *file, const char *format,
                                      ...) {
    char name[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return golden_find(file, name) != NULL;
}

/* The tensor of that name, which must exist; as a parameter, with a
   gradient of zeros. It lives until golden_free. */
static SUPPORT_UNUSED attn_tensor *golden_tensor(const golden *file,
                                                 const char *format, ...) {
    char name[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    const char *place = golden_find(file, name);
    ck_assert_msg(place != NULL, "%s has no tensor %s", file->path, name);
    size_t rank = 0, shape[ATTN_MAX_RANK];
    while (*place == ' ') {
        char *end;
        ck_assert_uint_lt(rank, ATTN_MAX_RANK);
        shape[rank++] = strtoull(place, &end, 10);
        place = end;
    }
    attn_tensor *tensor = attn_parameter_new(file->memory, rank, shape);
    ck_assert_ptr_nonnull(tensor);
    size_t size = attn_tensor_size(tensor);
    for (size_t i = 0; i < size; i++) {
        char *end;
        tensor->value[i] = strtof(place, &end);
        ck_assert_msg(end != place, "%s: %s ends after %zu values",
                      file->path, name, i);
        place = end;
    }
    return tensor;
}

/* ---- Closeness ---------------------------------------------------------- */

/* Every element of found lies within tolerance x max(1, the largest
   magnitude expected) of the one expected: float32 sums lose digits in
   proportion to their largest parts. NaN is close to nothing. */
static SUPPORT_UNUSED void check_close(const float *found,
                                       const float *expected, size_t size,
                                       double tolerance, const char *what) {
    double largest = 1.0;
    for (size_t i = 0; i < size; i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (size_t i = 0; i < size; i++) {
        double apart = fabs((double)found[i] - (double)expected[i]);
        ck_assert_msg(apart <= tolerance * largest,
                      "%s: element %zu is %.9g, not %.9g (%g apart, %g "
                      "allowed)",
                      what, i, (double)found[i], (double)expected[i], apart,
                      tolerance * largest);
    }
}

static SUPPORT_UNUSED void check_same_shape(const attn_tensor *found,
                                            const attn_tensor *expected,
                                            const char *what) {
    ck_assert_ptr_nonnull(found);
    ck_assert_msg(found->rank == expected->rank, "%s: rank %zu, not %zu",
                  what, found->rank, expected->rank);
    for (size_t i = 0; i < found->rank; i++)
        ck_assert_msg(found->shape[i] == expected->shape[i],
                      "%s: size %zu is %zu, not %zu", what, i,
                      found->shape[i], expected->shape[i]);
}

/* Same shape, and values close as above. */
static SUPPORT_UNUSED void check_values(const attn_tensor *found,
                                        const attn_tensor *expected,
                                        double tolerance, const char *what) {
    check_same_shape(found, expected, what);
    check_close(found->value, expected->value, attn_tensor_size(expected),
                tolerance, what);
}

/* Same shape, and the gradient found close to the values expected. */
static SUPPORT_UNUSED void check_gradient(const attn_tensor *found,
                                          const attn_tensor *expected,
                                          double tolerance,
                                          const char *what) {
    check_same_shape(found, expected, what);
    ck_assert_msg(found->gradient != NULL, "%s: no gradient", what);
    check_close(found->gradient, expected->value,
                attn_tensor_size(expected), tolerance, what);
}

/* ---- Running ------------------------------------------------------------ */

/* Runs the suite; a case named on the command line runs alone. */
static SUPPORT_UNUSED int run_tests(int argc, char *argv[], Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run(runner, NULL, argc > 1 ? argv[1] : NULL, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
