/* Reports: what the programs print, what they write for the book, and what
   they say to mistakes. Each test runs a small program of its own, report.c
   and all, in a child process. */
#define _XOPEN_SOURCE 700
#include "check_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

/* ---- Programs in a child process
 * ------------------------------------------ */

static char directory[] = P_tmpdir "/check-reports-XXXXXX"; /* all files */

static char *path_to(const char *name) {
    static char path[4][512];
    static size_t turn;
    char *result = path[turn++ % 4];
    snprintf(result, sizeof path[0], "%s/%s", directory, name);
    return result;
}

static char *content_of(const char *path) {
    static char content[4][1 << 17];
    static size_t turn;
    char *result = content[turn++ % 4];
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "%s: %s", path, strerror(errno));
    size_t length = fread(result, 1, sizeof content[0] - 1, stream);
    ck_assert(feof(stream));
    result[length] = '\0';
    fclose(stream);
    return result;
}

static bool exists(const char *path) {
    struct stat found;
    return stat(path, &found) == 0;
}

/* What came of a run: the exit status, or minus the signal. */
typedef struct result {
    int status;
    const char *out, *err;
} result;

/* What a child does before its program starts, if anything. */
static void (*preparation)(void);

#define RUN(sections, ...)                                                 \
    run(sections, sizeof(sections) / sizeof *(sections),                   \
        (char *[]){"build/bin/chapter-04", __VA_ARGS__, NULL})

static void send_to(const char *path, int descriptor) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, descriptor) < 0)
        _exit(99);
    close(file);
}

/* A child that aborts leaves no core and gives a leak checker no time to
   list what an aborting program does not free. */
#define ABORTED (-SIGKILL)

static void die_at_once(int signal_number) {
    (void)signal_number;
    raise(SIGKILL);
}

/* What the command line may set, and nothing if the count is zero. */
static size_t width = 512, setting_count;
static double warmth = 0.8;
static const char *prompt = "Attention";
static const report_setting settings[] = {
    {.name = "D",
     .summary = "the width of the model",
     .whole = &width,
     .least = 1,
     .most = 1e6},
    {.name = "--warmth",
     .summary = "how bold the text is",
     .real = &warmth,
     .least = 0,
     .most = 10},
    {.name = "--prompt", .summary = "how it begins", .text = &prompt},
    {.name = "--cause", .summary = "causal", .sections = "causal"},
    {.name = "--two",
     .summary = "causal and other",
     .sections = "causal other"},
};

static result run(const report_section *sections, size_t count,
                  char *words[]) {
    int argc = 0;
    while (words[argc] != NULL)
        argc++;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(SIGABRT, die_at_once);
        send_to(path_to("console"), STDOUT_FILENO);
        send_to(path_to("errors"), STDERR_FILENO);
        if (preparation != NULL)
            preparation();
        if (setting_count == 0)
            exit(report_main(argc, words, "Day 4: masks", sections, count));
        exit(report_main_with(argc, words, "Day 4: masks", sections, count,
                              settings, setting_count));
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return (result){
        WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
        content_of(path_to("console")), content_of(path_to("errors"))};
}

static void make_directory(void) {
    strcpy(directory + strlen(directory) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    preparation = NULL;
}

static void remove_directory(void) {
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    ck_assert_int_eq(system(command), 0);
}

static void check_contains(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part,
                  text);
}

/* ---- The console
 * ---------------------------------------------------------- */

static const char *const words[] = {"the", "dog", "barked", "loudly"};

static attn_tensor matrix_of(float *value, size_t rows, size_t columns) {
    return (attn_tensor){
        .rank = 2, .shape = {rows, columns}, .value = value};
}

static void causal(report *out) {
    float value[] = {1, 0,         0,         0.5f,     0.5f,
                     0, 0.333333f, 0.333333f, 0.333333f};
    attn_tensor weights = matrix_of(value, 3, 3);
    report_matrix(out, NULL, "The weights", "%.2f", &weights, "query", NULL,
                  NULL);
    report_claim(out, "rows-sum-to-one", true,
                 "Every row of weights sums to one, and the largest error "
                 "over all rows is %.1e, less than the last digit shown.",
                 6e-8);
    report_claim(out, "no-future", true, "No weight falls on the future.");
    report_heat_map(out, NULL, "The weights", &weights, REPORT_SEQUENTIAL,
                    NULL, NULL);
}

static void kinds(report *out) {
    report_note(out, "What √d does.");
    report_note(out, "Two lines:\n%d and 2.", 1);
    report_table *table = report_table_begin(out, "widths", NULL);
    report_column(table, "d", NULL);
    report_column(table, "std", "%.3f");
    report_column(table, "largest weight", "%.4f");
    report_column(table, "ratio", "%.3g");
    report_column(table, "who uses √d", NULL);
    report_column(table, "seen", NULL);
    report_row(table, "%d", 8);
    report_text(table, "%s", "3.579");
    report_real(table, -0.00001);
    report_real(table, 4.65e11);
    report_text(table, "%s", "GPT");
    report_integer(table, 12);
    report_row(table, "%d", 64);
    report_real(table, 27.1918);
    report_real(table, 0.77);
    report_real(table, -1.05);
    report_text(table, "%s", "√");
    report_integer(table, -3);
    report_row(table, "%d", 1024);
    report_integer(table, 5);
    report_blank(table);
    report_real(table, NAN);
    report_text(table, "%s", "nobody");
    report_text(table, "%s", "-");
    report_table_end(table);
}

static const report_section sections[] = {
    {"causal", "each position sees itself and what came before", causal},
    {"kinds", "what a table can hold", kinds},
};

#define TITLE "Day 4: masks\n============\n"

static const char causal_console[] =
    "\n"
    "causal: each position sees itself and what came before\n"
    "------------------------------------------------------\n"
    "\n"
    "  The weights\n"
    "\n"
    "  query     0     1     2\n"
    "  -----------------------\n"
    "      0  1.00  0.00  0.00\n"
    "      1  0.50  0.50  0.00\n"
    "      2  0.33  0.33  0.33\n"
    "\n"
    "  [true]  Every row of weights sums to one, and the largest error "
    "over "
    "all\n"
    "          rows is 6.0e-08, less than the last digit shown.\n"
    "  [true]  No weight falls on the future.\n";

static const char kinds_console[] =
    "\n"
    "kinds: what a table can hold\n"
    "----------------------------\n"
    "\n"
    "  What √d does.\n"
    "  Two lines:\n"
    "  1 and 2.\n"
    "\n"
    "     d     std  largest weight      ratio  who uses √d  seen\n"
    "  ----------------------------------------------------------\n"
    "     8   3.579          0.0000   4.65e+11  GPT            12\n"
    "    64  27.192          0.7700  -1.05      √              -3\n"
    "  1024   5                            nan  nobody          -\n";

static char *joined(const char *one, const char *two, const char *three) {
    static char text[1 << 16];
    snprintf(text, sizeof text, "%s%s%s", one, two, three);
    return text;
}

START_TEST(everything_is_printed) {
    result all = RUN(sections, NULL);
    ck_assert_int_eq(all.status, 0);
    ck_assert_str_eq(all.err, "");
    ck_assert_str_eq(all.out, joined(TITLE, causal_console, kinds_console));
}
END_TEST

START_TEST(sections_come_in_the_order_asked) {
    result two = RUN(sections, "kinds", "causal", "kinds");
    ck_assert_int_eq(two.status, 0);
    ck_assert_str_eq(two.out, joined(TITLE, kinds_console, causal_console));
    result one = RUN(sections, "kinds");
    ck_assert_str_eq(one.out, joined(TITLE, kinds_console, ""));
}
END_TEST

START_TEST(no_line_ends_in_blanks) {
    result all = RUN(sections, NULL);
    ck_assert_ptr_null(strstr(all.out, " \n"));
}
END_TEST

START_TEST(list_and_help) {
    static const char list[] =
        "  causal  each position sees itself and what came before\n"
        "  kinds   what a table can hold\n";
    result listed = RUN(sections, "--list");
    ck_assert_int_eq(listed.status, 0);
    ck_assert_str_eq(listed.out, list);
    result help = RUN(sections, "--help");
    ck_assert_int_eq(help.status, 0);
    check_contains(help.out, list);
    check_contains(help.out, "Usage: chapter-04 [--out DIRECTORY]");
    check_contains(help.out, "Day 4: masks\n");
    check_contains(help.out, "--list");
}
END_TEST

/* ---- Numbers
 * -------------------------------------------------------------- */

static void numbers(report *out) {
    report_table *table = report_table_begin(out, NULL, NULL);
    report_column(table, "case", NULL);
    report_column(table, "signed", "%+.2f");
    report_column(table, "plain", "%.1f");
    static const double number[] = {-0.0,      -0.001,   0.001, NAN,
                                    -INFINITY, INFINITY, -1.5,  1e15};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        report_row(table, "row %zu", i);
        report_real(table, number[i]);
        report_real(table, number[i]);
    }
    report_row(table, "negative nan");
    report_real(table, copysign(NAN, -1));
    report_real(table, copysign(NAN, -1));
    report_table_end(table);
}

START_TEST(zeros_and_nans_have_no_sign) {
    static const report_section one[] = {
        {"numbers", "as printed", numbers}};
    result all = RUN(one, NULL);
    ck_assert_int_eq(all.status, 0);
    ck_assert_str_eq(
        strstr(all.out, "  case"),
        "  case                        signed               plain\n"
        "  ------------------------------------------------------\n"
        "  row 0                        +0.00                 0.0\n"
        "  row 1                        +0.00                 0.0\n"
        "  row 2                        +0.00                 0.0\n"
        "  row 3                          nan                 nan\n"
        "  row 4                         -inf                -inf\n"
        "  row 5                         +inf                 inf\n"
        "  row 6                        -1.50                -1.5\n"
        "  row 7         +1000000000000000.00  1000000000000000.0\n"
        "  negative nan                   nan                 nan\n");
}
END_TEST

/* ---- Files
 * ---------------------------------------------------------------- */

/* Names of the files in a directory, sorted, a blank after each. */
static const char *files_in(const char *path) {
    static char list[2000];
    struct dirent **entry;
    int count = scandir(path, &entry, NULL, alphasort);
    ck_assert_int_ge(count, 0);
    list[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (entry[i]->d_name[0] != '.') {
            strcat(list, entry[i]->d_name);
            strcat(list, " ");
        }
        free(entry[i]);
    }
    free(entry);
    return list;
}

START_TEST(files_hold_what_was_printed) {
    char *out = path_to("out");
    result all = RUN(sections, "--out", out);
    ck_assert_int_eq(all.status, 0);
    ck_assert_str_eq(all.err, "");
    ck_assert_str_eq(all.out, joined(TITLE, causal_console, kinds_console));
    ck_assert_str_eq(files_in(out),
                     "causal.claims.tsv causal.gp causal.tsv "
                     "kinds.widths.tsv ");
    ck_assert_str_eq(content_of(path_to("out/causal.tsv")),
                     "query\t0\t1\t2\n0\t1.00\t0.00\t0.00\n"
                     "1\t0.50\t0.50\t0.00\n2\t0.33\t0.33\t0.33\n");
    ck_assert_str_eq(
        content_of(path_to("out/causal.claims.tsv")),
        "rows-sum-to-one\ttrue\tEvery row of weights sums to one, and the "
        "largest error over all rows is 6.0e-08, less than the last digit "
        "shown.\nno-future\ttrue\tNo weight falls on the future.\n");
    ck_assert_str_eq(content_of(path_to("out/kinds.widths.tsv")),
                     "d\tstd\tlargest weight\tratio\twho uses √d\tseen\n"
                     "8\t3.579\t0.0000\t4.65e+11\tGPT\t12\n"
                     "64\t27.192\t0.7700\t-1.05\t√\t-3\n"
                     "1024\t5\t\tnan\tnobody\t-\n");
}
END_TEST

START_TEST(out_takes_an_existing_directory) {
    ck_assert_int_eq(mkdir(path_to("there"), 0777), 0);
    char option[600];
    snprintf(option, sizeof option, "--out=%s", path_to("there"));
    result all = RUN(sections, "kinds", option);
    ck_assert_int_eq(all.status, 0);
    ck_assert_str_eq(files_in(path_to("there")), "kinds.widths.tsv ");
}
END_TEST

static void check_refusal(result r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void check_refusal(result r, const char *format, ...) {
    char expected[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    ck_assert_str_eq(r.err, expected);
    ck_assert_int_eq(r.status, 3);
}

START_TEST(out_that_cannot_be_made) {
    char *out = path_to("missing/out");
    result all = RUN(sections, "--out", out);
    check_refusal(all, "chapter-04: cannot make %s: %s\n", out,
                  strerror(ENOENT));
    ck_assert_str_eq(all.out, "");
}
END_TEST

START_TEST(out_that_is_a_file) {
    char *out = path_to("file");
    fclose(fopen(out, "w"));
    check_refusal(RUN(sections, "--out", out),
                  "chapter-04: cannot write into %s: %s\n", out,
                  strerror(ENOTDIR));
}
END_TEST

START_TEST(out_that_is_not_ours) {
    char *out = path_to("closed");
    ck_assert_int_eq(mkdir(out, 0555), 0);
    if (access(out, W_OK) == 0)
        return; /* the superuser may write anywhere */
    check_refusal(RUN(sections, "--out", out),
                  "chapter-04: cannot write into %s: %s\n", out,
                  strerror(EACCES));
}
END_TEST

/* The name of the first table is taken by a directory. */
START_TEST(a_file_that_cannot_get_its_name) {
    ck_assert_int_eq(mkdir(path_to("out"), 0777), 0);
    ck_assert_int_eq(mkdir(path_to("out/causal.tsv"), 0777), 0);
    result all = RUN(sections, "--out", path_to("out"));
    check_refusal(all, "chapter-04: cannot write %s: %s\n",
                  path_to("out/causal.tsv"), strerror(EISDIR));
    ck_assert_str_eq(files_in(path_to("out")), "causal.tsv ");
    ck_assert_ptr_null(strstr(all.out, "kinds"));
}
END_TEST

/* A limit on the size of files stands in for a full disk. */
static void allow_forty_bytes(void) {
    send_to("/dev/null", STDOUT_FILENO);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {40, 40};
    setrlimit(RLIMIT_FSIZE, &limit);
    if (dup2(open(path_to("pipe"), O_RDWR), STDERR_FILENO) < 0)
        _exit(98);
}

START_TEST(a_full_disk_leaves_no_partial_file) {
    ck_assert_int_eq(mkfifo(path_to("pipe"), 0600), 0);
    int pipe_end = open(path_to("pipe"), O_RDWR);
    preparation = allow_forty_bytes;
    result all = RUN(sections, "--out", path_to("out"));
    char said[600] = "";
    ck_assert_int_gt(read(pipe_end, said, sizeof said - 1), 0);
    close(pipe_end);
    ck_assert_int_eq(all.status, 3);
    char expected[600];
    snprintf(expected, sizeof expected, "chapter-04: cannot write %s: %s\n",
             path_to("out/causal.tsv"), strerror(EFBIG));
    ck_assert_str_eq(said, expected);
    ck_assert_str_eq(files_in(path_to("out")), "");
}
END_TEST

static void fill_the_console(void) {
    send_to("/dev/full", STDOUT_FILENO);
}

START_TEST(a_full_console_is_noticed) {
    if (!exists("/dev/full"))
        return;
    preparation = fill_the_console;
    static char *const asked[] = {"causal", "--list", "--help"};
    check_refusal(RUN(sections, asked[_i]),
                  "chapter-04: cannot write standard output: %s\n",
                  strerror(ENOSPC));
}
END_TEST

/* ---- The command line
 * ----------------------------------------------------- */

static void check_complaint(result r, const char *complaint) {
    ck_assert_str_eq(r.err, complaint);
    ck_assert_str_eq(r.out, "");
    ck_assert_int_eq(r.status, 2);
}

START_TEST(a_nan_is_the_worst) {
    ck_assert(report_worst(1, 2) == 2 && report_worst(2, 1) == 2);
    ck_assert(isnan(report_worst(1, NAN)) && isnan(report_worst(NAN, 1)));
}
END_TEST

START_TEST(slips_of_the_keyboard) {
    check_complaint(RUN(sections, "casual"),
                    "chapter-04: no section \"casual\"; did you mean "
                    "causal?\n");
    check_complaint(RUN(sections, "kinds", "kind"),
                    "chapter-04: no section \"kind\"; did you mean "
                    "kinds?\n");
    check_complaint(RUN(sections, "kinds", "dropout"),
                    "chapter-04: no section \"dropout\"; --list shows them "
                    "all\n");
    check_complaint(RUN(sections, ""),
                    "chapter-04: no section \"\"; --list shows them all\n");
    check_complaint(RUN(sections, "--lsit"),
                    "chapter-04: no option \"--lsit\"; --help shows them "
                    "all\n");
    check_complaint(RUN(sections, "-l"),
                    "chapter-04: no option \"-l\"; --help shows them "
                    "all\n");
    check_complaint(RUN(sections, "kinds", "--out"),
                    "chapter-04: --out needs a directory\n");
}
END_TEST

/* ---- Settings ----------------------------------------------------------- */

static void tell(report *out) {
    report_note(out, "%zu, %g, %s", width, warmth, prompt);
}

static const report_section told[] = {{"causal", "with settings", tell},
                                      {"other", "without", tell}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void check_told(result r, const char *line) {
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(r.status, 0);
    check_contains(r.out, line);
}

START_TEST(settings_are_set) {
    setting_count = SETTINGS;
    check_told(RUN(told, "other"), "512, 0.8, Attention\n");
    check_told(RUN(told, "other", "D=7"), "7, 0.8, Attention\n");
    check_told(RUN(told, "D=7", "other", "--warmth", "1.5"),
               "7, 1.5, Attention\n");
    check_told(RUN(told, "--warmth=0", "--prompt=", "D=1000000"),
               "1000000, 0, \n");
    check_told(RUN(told, "--prompt", "--warmth"), "512, 0.8, --warmth\n");
    check_told(RUN(told, "--prompt=a=b"), "512, 0.8, a=b\n");
    check_told(RUN(told, "D=1", "D=2"), "2, 0.8, Attention\n");
    result two = RUN(told, "causal", "--two");
    check_told(two, "causal: with settings");
    check_contains(two.out, "other: without");
    result one = RUN(told, "--cause", "--cause", "causal");
    check_told(one, "causal: with settings");
    ck_assert_ptr_null(strstr(one.out, "other"));
    ck_assert_ptr_eq(strstr(one.out, "512"),
                     strrchr(one.out, ',') - strlen("512, 0.8"));
}
END_TEST

START_TEST(settings_that_make_no_sense) {
    setting_count = SETTINGS;
    static const char *const wrong[] = {"D=", "D=0", "D=1000001", "D=-1",
                                        "D=4.5", "D=0x10", "D=7 "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char word[20], expected[120];
        strcpy(word, wrong[i]);
        snprintf(expected, sizeof expected,
                 "chapter-04: D is a whole number from 1 to 1000000, not "
                 "\"%s\"\n",
                 wrong[i] + 2);
        check_complaint(RUN(told, word), expected);
    }
    check_complaint(RUN(told, "--warmth", "cold"),
                    "chapter-04: --warmth is a number from 0 to 10, not "
                    "\"cold\"\n");
    check_complaint(RUN(told, "--warmth=nan"),
                    "chapter-04: --warmth is a number from 0 to 10, not "
                    "\"nan\"\n");
    check_complaint(RUN(told, "--warmth"),
                    "chapter-04: --warmth needs a value\n");
    check_complaint(RUN(told, "--cause=1"),
                    "chapter-04: --cause takes no value\n");
    check_complaint(RUN(told, "E=1"),
                    "chapter-04: no option \"E=1\"; --help shows them "
                    "all\n");
    check_complaint(RUN(told, "--war=1"),
                    "chapter-04: no option \"--war=1\"; --help shows them "
                    "all\n");
    check_complaint(RUN(told, "D"),
                    "chapter-04: no section \"D\"; --list shows them "
                    "all\n");
    setting_count = 0;
    check_complaint(RUN(told, "D=1"),
                    "chapter-04: no option \"D=1\"; --help shows them "
                    "all\n");
}
END_TEST

START_TEST(help_shows_settings) {
    setting_count = SETTINGS;
    result help = RUN(told, "--help");
    check_contains(help.out, "[--out DIRECTORY] [SETTING ...] [SECTION");
    check_contains(help.out,
                   "  D=512                 the width of the model\n"
                   "  --warmth 0.8          how bold the text is\n"
                   "  --prompt \"Attention\"  how it begins\n"
                   "  --cause               causal\n"
                   "  --two                 causal and other\n");
}
END_TEST

/* ---- Claims
 * --------------------------------------------------------------- */

static void doubtful(report *out) {
    report_claim(out, "small", 2 + 2 == 5, "Two and two is %d, not %d.", 4,
                 5);
    report_claim(out, "true", true, "Two and two is %d.", 4);
}

START_TEST(a_false_claim_is_loud) {
    static const report_section two[] = {
        {"doubtful", "a false claim", doubtful},
        {"kinds", "what a table can hold", kinds},
    };
    result all = RUN(two, "--out", path_to("out"));
    ck_assert_int_eq(all.status, 1);
    ck_assert_str_eq(
        all.err, "chapter-04: the claim doubtful/small is false: Two and "
                 "two is 4, not 5.\n");
    check_contains(all.out, "\n  [FALSE] Two and two is 4, not 5.\n"
                            "  [true]  Two and two is 4.\n");
    check_contains(all.out, kinds_console);
    ck_assert_str_eq(content_of(path_to("out/doubtful.claims.tsv")),
                     "small\tfalse\tTwo and two is 4, not 5.\n"
                     "true\ttrue\tTwo and two is 4.\n");
}
END_TEST

/* ---- An author's mistakes
 * -------------------------------------------------- */

static report_table *table_of_two(report *out) {
    report_table *table = report_table_begin(out, "two", NULL);
    report_column(table, "row", NULL);
    report_column(table, "number", "%g");
    return table;
}

static void too_many_cells(report *out) {
    report_table *table = table_of_two(out);
    report_row(table, "first");
    report_real(table, 1);
    report_real(table, 2);
}

static void too_few_cells(report *out) {
    report_table *table = table_of_two(out);
    report_row(table, "first");
    report_row(table, "second");
}

static void too_few_at_the_end(report *out) {
    report_table *table = table_of_two(out);
    report_row(table, "last");
    report_table_end(table);
}

static void cell_before_row(report *out) {
    report_integer(table_of_two(out), 1);
}

static void column_after_row(report *out) {
    report_table *table = table_of_two(out);
    report_row(table, "first");
    report_column(table, "late", NULL);
}

static void no_columns(report *out) {
    report_row(report_table_begin(out, NULL, NULL), "first");
}

static void no_rows(report *out) {
    report_table_end(table_of_two(out));
}

static void same_table_twice(report *out) {
    kinds(out);
    kinds(out);
}

static void same_claim_twice(report *out) {
    report_claim(out, "one", true, "One.");
    report_claim(out, "one", true, "One again.");
}

static void open_table(report *out) {
    table_of_two(out);
}

static void table_in_table(report *out) {
    table_of_two(out);
    report_table_begin(out, NULL, NULL);
}

static void tab_in_cell(report *out) {
    report_table *table = table_of_two(out);
    report_row(table, "first");
    report_text(table, "%s", "a\tb");
}

static void newline_in_label(report *out) {
    report_row(table_of_two(out), "a\nb");
}

static void newline_in_header(report *out) {
    report_column(table_of_two(out), "a\r\n", NULL);
}

static void newline_in_claim(report *out) {
    report_claim(out, "lines", true, "a\nb");
}

static void unusable_name(report *out) {
    report_table_begin(out, "../etc", NULL);
}

static void reserved_name(report *out) {
    report_table_begin(out, "claims", NULL);
}

static void unusable_claim(report *out) {
    report_claim(out, "Rows", true, "One.");
}

static void no_matrix(report *out) {
    float value[8] = {0};
    attn_tensor cube = {.rank = 3, .shape = {2, 2, 2}, .value = value};
    report_matrix(out, NULL, NULL, "%g", &cube, "", NULL, NULL);
}

static void no_map(report *out) {
    float value[8] = {0};
    attn_tensor line = {.rank = 1, .shape = {8}, .value = value};
    report_heat_map(out, NULL, "line", &line, 0, NULL, NULL);
}

static void point_without_series(report *out) {
    report_point(report_plot_begin(out, NULL, "plot", "x", "y", 0), 1, 1);
}

static void plot_without_series(report *out) {
    report_plot_end(report_plot_begin(out, NULL, "plot", "x", "y", 0));
}

static void plot_without_points(report *out) {
    report_plot *plot =
        report_plot_begin(out, NULL, "plot", "x", "y", REPORT_LOG_Y);
    report_series(plot, "empty");
    report_point(plot, 1, -1);
    report_plot_end(plot);
}

static void bars_of_two_kinds(report *out) {
    report_plot *plot =
        report_plot_begin(out, NULL, "plot", "x", "y", REPORT_BARS);
    report_series(plot, "one");
    report_series(plot, "two");
}

static const struct {
    void (*commit)(report *out);
    const char *complaint;
} mistakes[] = {
    {too_many_cells,
     "mistake.two.tsv: row \"first\" has more than 2 cells"},
    {too_few_cells, "mistake.two.tsv: row \"first\" has 1 of 2 cells"},
    {too_few_at_the_end, "mistake.two.tsv: row \"last\" has 1 of 2 cells"},
    {cell_before_row, "mistake.two.tsv: a cell before the first row"},
    {column_after_row,
     "mistake.two.tsv: column \"late\" comes after the first row"},
    {no_columns, "mistake.tsv: no columns are declared"},
    {no_rows, "mistake.two.tsv: the table has no rows"},
    {same_table_twice, "there are two of mistake.widths.tsv"},
    {same_claim_twice, "there are two of claim one"},
    {open_table, "mistake.two.tsv: it is begun but not ended"},
    {table_in_table, "mistake.tsv: mistake.two.tsv is not ended"},
    {tab_in_cell,
     "mistake.two.tsv: a tab or the end of a line in \"a\tb\""},
    {newline_in_label,
     "mistake.two.tsv: a tab or the end of a line in \"a\nb\""},
    {newline_in_header,
     "mistake.two.tsv: a tab or the end of a line in \"a\r\n\""},
    {newline_in_claim, "lines: a tab or the end of a line in \"a\nb\""},
    {unusable_name, "nothing can be named \"../etc\""},
    {reserved_name, "nothing can be named \"claims\""},
    {unusable_claim, "no claim can be named \"Rows\""},
    {no_matrix, "mistake.tsv: a tensor of rank 3 is no matrix"},
    {no_map, "mistake.gp: a heat map needs a matrix"},
    {point_without_series, "mistake.gp: a point before any series"},
    {plot_without_series, "mistake.gp: the plot has no series"},
    {plot_without_points, "mistake.gp: there is no point to draw"},
    {bars_of_two_kinds, "mistake.gp: bars have a single series"},
};
#define MISTAKES ((int)(sizeof mistakes / sizeof *mistakes))

START_TEST(mistakes_stop_the_program) {
    const report_section one[] = {
        {"mistake", "an author's mistake", mistakes[_i].commit}};
    result r = RUN(one, "--out", path_to("out"));
    ck_assert_int_eq(r.status, ABORTED);
    char expected[300];
    snprintf(expected, sizeof expected, "chapter-04: section mistake: %s\n",
             mistakes[_i].complaint);
    ck_assert_str_eq(r.err, expected);
}
END_TEST

START_TEST(sections_that_share_a_name) {
    static const report_section two[] = {{"causal", "one", causal},
                                         {"causal", "two", causal}};
    result r = RUN(two, NULL);
    ck_assert_int_eq(r.status, ABORTED);
    ck_assert_str_eq(r.err,
                     "chapter-04: section causal: there are two of that "
                     "name\n");
}
END_TEST

/* ---- Figures
 * -------------------------------------------------------------- */

static const char *const odd_names[] = {
    "'", "%", "\\", "_",   "^", "{x}", "$",  "@a",
    "`", "#", "\"", "<&>", " ", "é",   "%d", "\\n\n"};

static void heat_maps(report *out) {
    float value[400];
    for (size_t i = 0; i < 400; i++)
        value[i] = (float)i / 400 - 0.3f;
    value[5] = NAN;
    value[7] = INFINITY;
    attn_tensor odd = matrix_of(value, 16, 16);
    report_heat_map(out, "odd", "It's {odd} \"_^\" `x` \\ %d", &odd,
                    REPORT_DIVERGING, odd_names, odd_names);
    attn_tensor small = matrix_of(value, 4, 4);
    report_heat_map(out, "values", "Values", &small,
                    REPORT_SEQUENTIAL | REPORT_VALUES, words, words);
    attn_tensor heads = {.rank = 3, .shape = {6, 4, 4}, .value = value};
    report_heat_map(out, "heads", "Heads", &heads, REPORT_SEQUENTIAL, words,
                    words);
    report_panels(out, "panels", "Panels", &heads,
                  REPORT_SEQUENTIAL | REPORT_VALUES, odd_names, words,
                  NULL);
    attn_tensor wide = matrix_of(value, 2, 200);
    report_heat_map(out, "wide", "Wide", &wide, REPORT_DIVERGING, NULL,
                    NULL);
    float zero[4] = {0};
    attn_tensor flat = {.rank = 4, .shape = {1, 1, 2, 2}, .value = zero};
    report_heat_map(out, "flat", "Zeros", &flat, REPORT_SEQUENTIAL, NULL,
                    NULL);
    report_heat_map(out, "nought", "Zeros", &flat, REPORT_DIVERGING, NULL,
                    NULL);
    attn_tensor one = matrix_of(value + 100, 1, 1);
    report_heat_map(out, NULL, "One", &one, REPORT_SEQUENTIAL, NULL, NULL);
}

static void draw(report *out, const char *name, unsigned scales,
                 size_t series, size_t points) {
    report_plot *plot =
        report_plot_begin(out, name, "It's 100% \"odd\"", "d {x}_2 \\",
                          "`y`, 100% | $1 '", scales);
    for (size_t i = 0; i < series; i++) {
        report_series(plot, odd_names[i]);
        for (size_t j = 0; j < points; j++)
            report_point(plot, pow(2, (double)j),
                         pow(10, (double)(i * j) / 3));
    }
    report_plot_end(plot);
}

static void plots(report *out) {
    draw(out, "linear", REPORT_LINEAR, 1, 5);
    draw(out, "log-x", REPORT_LOG_X, 3, 7);
    draw(out, "log-y", REPORT_LOG_Y, 6, 10);
    draw(out, "log-log", REPORT_LOG_X | REPORT_LOG_Y, 2, 20);
    draw(out, "point", REPORT_LINEAR, 1, 1);
    draw(out, "point-log", REPORT_LOG_X | REPORT_LOG_Y, 1, 1);
    draw(out, "level", REPORT_LINEAR, 1, 5);
    draw(out, "bars", REPORT_BARS, 1, 5);
    draw(out, "bar", REPORT_BARS, 1, 1);
    report_plot *plot =
        report_plot_begin(out, NULL, "Gaps", "x", "y", REPORT_LOG_Y);
    report_series(plot, "with gaps");
    report_point(plot, 1, 1);
    report_point(plot, 2, NAN);
    report_point(plot, 3, 10);
    report_point(plot, 4, -1);
    report_point(plot, INFINITY, 5);
    report_point(plot, 5, 20);
    report_series(plot, "nothing at all");
    report_plot_end(plot);
}

/* gnuplot draws it for pages and print and has nothing to remark. */
static void check_drawn(const char *name, const char *kind) {
    char command[2000];
    snprintf(command, sizeof command,
             "LC_ALL=C.UTF-8 gnuplot -e \"figure='%s'; output='%s/drawn'\" "
             "weave/figure.gp '%s/out/%s' >'%s/said' 2>&1",
             kind, directory, directory, name, directory);
    int status = system(command);
    const char *said = content_of(path_to("said"));
    ck_assert_msg(status == 0 && *said == '\0', "%s, %s: %s", name, kind,
                  said);
    FILE *drawn = fopen(path_to("drawn"), "rb");
    ck_assert_ptr_nonnull(drawn);
    ck_assert_int_ne(fgetc(drawn), EOF);
    fclose(drawn);
}

static const report_section figures[] = {
    {"maps", "heat maps", heat_maps},
    {"plots", "curves and bars", plots},
};

START_TEST(gnuplot_draws_every_figure) {
    result all = RUN(figures, "--out", path_to("out"));
    ck_assert_int_eq(all.status, 0);
    char names[2000];
    strcpy(names, files_in(path_to("out")));
    size_t count = 0;
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
        check_drawn(name, "svg");
        check_drawn(name, "pdf");
        count++;
    }
    ck_assert_uint_eq(count, 18);
}
END_TEST

START_TEST(gnuplot_leaves_the_labels_alone) {
    static const char *const shown[] = {
        ">'<",   ">%<", ">\\<",         ">_<",  ">^<",
        ">{x}<", ">$<", ">@a<",         ">`<",  ">#<",
        ">\"<",  ">é<", ">&lt;&amp;><", ">%d<", ">\\n<"};
    RUN(figures, "--out", path_to("out"));
    check_drawn("maps.odd.gp", "svg");
    const char *svg = content_of(path_to("drawn"));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        check_contains(svg, shown[i]);
    check_drawn("maps.panels.gp", "svg");
    svg = content_of(path_to("drawn"));
    for (size_t i = 0; i < 6; i++)
        check_contains(svg, shown[i]);
    check_drawn("maps.heads.gp", "svg");
    svg = content_of(path_to("drawn"));
    check_contains(svg, ">head 0<");
    check_contains(svg, ">head 5<");
    check_drawn("plots.log-y.gp", "svg");
    svg = content_of(path_to("drawn"));
    check_contains(svg, ">d {x}_2 \\<");
    check_contains(svg, ">`y`, 100% | $1 '<");
    for (size_t i = 0; i < 6; i++)
        check_contains(svg, shown[i]);
}
END_TEST

/* ---- Progress
 * ------------------------------------------------------------- */

static void training(report *out) {
    report_progress(out, "step %d of 2", 1);
    report_progress(out, "step %d of 2", 2);
    report_note(out, "trained");
    report_progress(out, "testing");
}

static const report_section trainings[] = {
    {"training", "a long computation", training}};

START_TEST(progress_is_silent_in_a_file) {
    result r = RUN(trainings, NULL);
    ck_assert_int_eq(r.status, 0);
    ck_assert_str_eq(r.err, "");
}
END_TEST

static int terminal;

static void speak_to_the_terminal(void) {
    int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    if (end < 0 || dup2(end, STDERR_FILENO) < 0)
        _exit(99);
}

START_TEST(progress_is_one_line_of_a_terminal) {
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        return; /* a system without terminals */
    preparation = speak_to_the_terminal;
    int kept = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    ck_assert_int_eq(RUN(trainings, NULL).status, 0);
    static const char expected[] = "\rstep 1 of 2\033[K"
                                   "\rstep 2 of 2\033[K\r\033[K"
                                   "\rtesting\033[K\r\033[K";
    char seen[300] = "";
    for (size_t length = 0; length < strlen(expected);) {
        struct pollfd ready = {.fd = terminal, .events = POLLIN};
        ck_assert_msg(poll(&ready, 1, 10000) > 0, "only \"%s\"", seen);
        ssize_t some =
            read(terminal, seen + length, sizeof seen - 1 - length);
        ck_assert_int_gt(some, 0);
        length += (size_t)some;
    }
    ck_assert_str_eq(seen, expected);
    close(kept);
    close(terminal);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("reports");
    TCase *all = tcase_create("reports");
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, make_directory, remove_directory);
    tcase_add_test(all, everything_is_printed);
    tcase_add_test(all, sections_come_in_the_order_asked);
    tcase_add_test(all, no_line_ends_in_blanks);
    tcase_add_test(all, list_and_help);
    tcase_add_test(all, zeros_and_nans_have_no_sign);
    tcase_add_test(all, files_hold_what_was_printed);
    tcase_add_test(all, out_takes_an_existing_directory);
    tcase_add_test(all, out_that_cannot_be_made);
    tcase_add_test(all, out_that_is_a_file);
    tcase_add_test(all, out_that_is_not_ours);
    tcase_add_test(all, a_file_that_cannot_get_its_name);
    tcase_add_test(all, a_full_disk_leaves_no_partial_file);
    tcase_add_loop_test(all, a_full_console_is_noticed, 0, 3);
    tcase_add_test(all, a_nan_is_the_worst);
    tcase_add_test(all, slips_of_the_keyboard);
    tcase_add_test(all, settings_are_set);
    tcase_add_test(all, settings_that_make_no_sense);
    tcase_add_test(all, help_shows_settings);
    tcase_add_test(all, a_false_claim_is_loud);
    tcase_add_loop_test(all, mistakes_stop_the_program, 0, MISTAKES);
    tcase_add_test(all, sections_that_share_a_name);
    tcase_add_test(all, gnuplot_draws_every_figure);
    tcase_add_test(all, gnuplot_leaves_the_labels_alone);
    tcase_add_test(all, progress_is_silent_in_a_file);
    tcase_add_test(all, progress_is_one_line_of_a_terminal);
    suite_add_tcase(suite, all);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
