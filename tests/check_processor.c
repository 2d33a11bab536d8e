/* OpenBLAS that took the processor for an old one: noticed, put right, and
   said in one line, before the first product. Each test is a process of
   its own, because a process has only one first product.

   OpenBLAS itself is told to make the mistake. Where another BLAS is
   linked, or the processor is as old as that, there is nothing to put
   right and nothing is said. */
#include <sys/wait.h>
#include <unistd.h>

#include "check_support.h"
#include "internal.h"

extern char *openblas_get_corename(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

/* Starts OpenBLAS again as if the processor were this one. */
static void mistake_processor_for(const char *core) {
    if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit)
        return;
    setenv("OPENBLAS_CORETYPE", core, 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv("OPENBLAS_CORETYPE");
}

/* A product through BLAS, and what it wrote to standard error. */
static void multiply(float c[4], char *text, size_t size) {
    const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    fflush(stderr);
    int error = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    attn_gemm_by_blas(2, 2, 2, 1.0f, (attn_operand){a, 2, false},
                      (attn_operand){b, 2, false}, 0.0f, c, 2);
    fflush(stderr);
    dup2(error, STDERR_FILENO);
    close(error);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static bool can_do_better(void) {
#if defined __x86_64__ || defined __i386__
    __builtin_cpu_init();
    return gotoblas_dynamic_init && gotoblas_dynamic_quit &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* What a process saw whose first product this was. */
struct account {
    float c[4];
    char text[2][500]; /* of the first product, and of a second */
    char core[2][40];  /* before and after */
    bool setting_left; /* in the environment */
};

static const char *core(void) {
    return openblas_get_corename ? openblas_get_corename() : "none";
}

static struct account make_account(bool user_chose) {
    struct account seen = {0};
    mistake_processor_for("Prescott");
    if (user_chose)
        setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    snprintf(seen.core[0], sizeof seen.core[0], "%s", core());
    multiply(seen.c, seen.text[0], sizeof seen.text[0]);
    snprintf(seen.core[1], sizeof seen.core[1], "%s", core());
    multiply(seen.c, seen.text[1], sizeof seen.text[1]);
    seen.setting_left = getenv("OPENBLAS_CORETYPE") != NULL;
    return seen;
}

/* The same in a process of its own. */
static struct account make_account_apart(bool user_chose) {
    struct account seen;
    int end[2], status;
    ck_assert_int_eq(pipe(end), 0);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        seen = make_account(user_chose);
        _exit(write(end[1], &seen, sizeof seen) != sizeof seen);
    }
    ck_assert_int_eq(read(end[0], &seen, sizeof seen), sizeof seen);
    close(end[0]);
    close(end[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return seen;
}

static void check_result(const float c[4]) {
    ck_assert(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
}

START_TEST(a_mistaken_processor_is_put_right) {
    struct account seen = make_account_apart(false);
    char expected[200] = "";
    if (can_do_better()) {
        ck_assert_str_eq(seen.core[0], "Prescott");
        ck_assert_str_ne(seen.core[1], "Prescott");
        snprintf(expected, sizeof expected,
                 "attention: OpenBLAS took this processor for a Prescott "
                 "of 2004; its %s code is used now\n",
                 seen.core[1]);
    }
    ck_assert_str_eq(seen.text[0], expected);
    ck_assert_str_eq(seen.text[1], ""); /* once is enough */
    ck_assert(!seen.setting_left);
    check_result(seen.c);
}
END_TEST

START_TEST(a_choice_of_the_user_is_respected) {
    struct account seen = make_account_apart(true);
    ck_assert_str_eq(seen.core[0], seen.core[1]);
    ck_assert_str_eq(seen.text[0], "");
    ck_assert_str_eq(seen.text[1], "");
    ck_assert(seen.setting_left);
    check_result(seen.c);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("processor");
    TCase *test = tcase_create("choice");
    tcase_add_test(test, a_choice_of_the_user_is_respected);
    tcase_add_test(test, a_mistaken_processor_is_put_right);
    suite_add_tcase(suite, test);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
