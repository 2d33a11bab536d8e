/* The error handler: the default, a program's own, and the messages. */
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_support.h"
#include "internal.h"

/* Runs the function in a child and returns how that ended; what it wrote
   to standard error is in text. */
static int run_apart(void function(void), char *text, size_t size) {
    int end[2];
    ck_assert_int_eq(pipe(end), 0);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(end[1], STDERR_FILENO);
        close(end[0]);
        signal(SIGABRT, SIG_DFL);
        function();
        _exit(0);
    }
    close(end[1]);
    size_t used = 0;
    ssize_t count;
    while ((count = read(end[0], text + used, size - 1 - used)) > 0)
        used += (size_t)count;
    text[used] = '\0';
    close(end[0]);
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static void fail_by_default(void) {
    attn_tensor_size(NULL);
}

static void fail_after_restoring(void) {
    catch_errors();
    attn_set_error_handler(NULL, NULL);
    attn_tensor_size(NULL);
}

START_TEST(default_prints_and_aborts) {
    char text[4096];
    int status = run_apart(fail_by_default, text, sizeof text);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
    ck_assert_ptr_nonnull(
        strstr(text, "attn_tensor_size: tensor is NULL\n"));
}
END_TEST

START_TEST(null_brings_the_default_back) {
    char text[4096];
    int status = run_apart(fail_after_restoring, text, sizeof text);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
}
END_TEST

static struct {
    int calls;
    char function[64];
    char message[600];
} heard;

static void remember(const char *function, const char *message,
                     void *context) {
    ++*(int *)context;
    snprintf(heard.function, sizeof heard.function, "%s", function);
    snprintf(heard.message, sizeof heard.message, "%s", message);
}

START_TEST(handler_gets_function_message_and_context) {
    int calls = 0;
    attn_set_error_handler(remember, &calls);
    ck_assert_uint_eq(attn_tensor_size(NULL), 0);
    ck_assert_int_eq(calls, 1);
    ck_assert_str_eq(heard.function, "attn_tensor_size");
    ck_assert_str_eq(heard.message, "tensor is NULL");
    attn_error("somebody", "%d of %s", 3, "four");
    ck_assert_int_eq(calls, 2);
    ck_assert_str_eq(heard.function, "somebody");
    ck_assert_str_eq(heard.message, "3 of four");
}
END_TEST

static jmp_buf start;

static void leave(const char *function, const char *message,
                  void *context) {
    (void)function, (void)message, (void)context;
    longjmp(start, 1);
}

START_TEST(handler_may_leave_by_longjmp) {
    attn_set_error_handler(leave, NULL);
    attn_tape *volatile tape = attn_tape_new();
    if (setjmp(start) == 0) {
        attn_tensor *x =
            attn_tensor_new(attn_tape_arena(tape), ATTN_SHAPE(2, 3));
        attn_matmul(tape, x, x);
        ck_abort_msg("a wrong product returned");
    }
    attn_tape_free(tape); /* and the leak checkers find nothing */
}
END_TEST

START_TEST(long_messages_are_cut) {
    int calls = 0;
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    attn_set_error_handler(remember, &calls);
    attn_error("somebody", "%s", text);
    ck_assert_int_eq(calls, 1);
    ck_assert_uint_eq(strlen(heard.message), 511);
}
END_TEST

START_TEST(shapes_as_text) {
    const size_t most = SIZE_MAX;
    ck_assert_str_eq(attn_shape_text(0, NULL).text, "()");
    ck_assert_str_eq(attn_shape_text(ATTN_SHAPE(5)).text, "(5)");
    ck_assert_str_eq(attn_shape_text(ATTN_SHAPE(2, 3)).text, "(2, 3)");
    ck_assert_str_eq(
        attn_shape_text(ATTN_SHAPE(most, most, most, most)).text,
        "(18446744073709551615, 18446744073709551615, "
        "18446744073709551615, 18446744073709551615)");
    /* Two in one expression, as messages have them. */
    char both[200];
    snprintf(both, sizeof both, "%s x %s",
             attn_shape_text(ATTN_SHAPE(1, 2)).text,
             attn_shape_text(ATTN_SHAPE(3)).text);
    ck_assert_str_eq(both, "(1, 2) x (3)");
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("errors");
    TCase *test = tcase_create("handler");
    tcase_add_test(test, default_prints_and_aborts);
    tcase_add_test(test, null_brings_the_default_back);
    tcase_add_test(test, handler_gets_function_message_and_context);
    tcase_add_test(test, handler_may_leave_by_longjmp);
    tcase_add_test(test, long_messages_are_cut);
    tcase_add_test(test, shapes_as_text);
    suite_add_tcase(suite, test);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
