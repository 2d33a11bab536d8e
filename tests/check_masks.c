/* Masks: what each kind shows, what two show together, how sizes line up,
   what is refused, and what the rest of the library relies on.
   link: -Wl,--wrap=aligned_alloc */
#include "check_support.h"
#include "internal.h"

#include <limits.h>

/* ---- Memory that runs out ---- */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool memory_is_out;

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return memory_is_out ? NULL : __real_aligned_alloc(alignment, size);
}

/* ---- What a mask says, asked in every way ---- */

/* What a mask should show, worked out another way than the library does. */
typedef bool rule(size_t batch, size_t query, size_t key);

/* attn_mask_sees, attn_mask_row and attn_mask_reach must agree with the
   rule for every query of every sequence, and the mask must fit these
   sizes. */
static void check_mask(const attn_mask *mask, size_t batch, size_t queries,
                       size_t keys, rule *expected) {
    unsigned char sees[64];
    ck_assert_ptr_nonnull(mask);
    ck_assert_uint_lt(keys, sizeof sees);
    ck_assert(attn_mask_fits(mask, batch, queries, keys));
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < queries; i++) {
            size_t reach = 0;
            memset(sees, 7, sizeof sees);
            attn_mask_row(mask, b, i, sees);
            for (size_t j = 0; j < keys; j++) {
                bool should = expected(b, i, j);
                ck_assert_msg(sees[j] == should,
                              "row (%zu, %zu): key %zu is %d, not %d", b, i,
                              j, sees[j], should);
                ck_assert_msg(attn_mask_sees(mask, b, i, j) == should,
                              "(%zu, %zu, %zu) should be %d", b, i, j,
                              should);
                reach = should ? j + 1 : reach;
            }
            ck_assert_uint_eq(sees[keys], 7);
            ck_assert_uint_eq(attn_mask_reach(mask, b, i), reach);
        }
}

/* The sizes that the rules below speak of. */
enum { BATCH = 3, QUERIES = 4, KEYS = 6, PADDING = 0 };

static const size_t tokens[BATCH * KEYS] = {
    5, 3, 9, 1, 0, 0, /* filled at the end */
    0, 0, 0, 4, 2, 8, /* in front */
    0, 0, 0, 0, 0, 0, /* nothing but padding */
};

static bool everything(size_t b, size_t i, size_t j) {
    (void)b, (void)i, (void)j;
    return true;
}

static bool past(size_t b, size_t i, size_t j) {
    (void)b;
    return (long)j <= (long)i + KEYS - QUERIES;
}

static bool real_tokens(size_t b, size_t i, size_t j) {
    (void)i;
    return tokens[b * KEYS + j] != PADDING;
}

/* Some pattern without any order in it; different for every sequence. */
static bool scattered(size_t b, size_t i, size_t j) {
    return (b * 31 + i * 17 + j * 7 + i * j) % 5 < 3;
}

/* The same pattern for every sequence. */
static bool shared(size_t b, size_t i, size_t j) {
    (void)b;
    return (i * 13 + j * 5 + i * j) % 4 != 1;
}

static void fill(bool *array, size_t batch, rule *from, bool negated) {
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < QUERIES; i++)
            for (size_t j = 0; j < KEYS; j++)
                *array++ = from(b, i, j) != negated;
}

/* One mask of every kind, with the rule it should follow. */
enum { CAUSAL, PADDED, KEPT, BLOCKED, BROADCAST, KINDS };
static rule *const kind_rule[KINDS] = {past, real_tokens, scattered,
                                       scattered, shared};

static attn_mask *make_kind(attn_arena *arena, int kind) {
    bool array[BATCH * QUERIES * KEYS];
    switch (kind) {
    case CAUSAL:
        return attn_mask_causal(arena, QUERIES, KEYS);
    case PADDED:
        return attn_mask_padding(arena, tokens, BATCH, KEYS, PADDING);
    case KEPT:
        fill(array, BATCH, scattered, false);
        return attn_mask_from_keep(arena, array, BATCH, QUERIES, KEYS);
    case BLOCKED:
        fill(array, BATCH, scattered, true);
        return attn_mask_from_blocked(arena, array, BATCH, QUERIES, KEYS);
    default:
        fill(array, 1, shared, false);
        return attn_mask_from_keep(arena, array, 1, QUERIES, KEYS);
    }
}

static attn_arena *arena;

static void set_up(void) {
    memory_is_out = false;
    arena = attn_arena_new();
}

static void tear_down(void) {
    memory_is_out = false;
    attn_arena_free(arena);
}

/* ---- Each kind alone ---- */

START_TEST(every_kind_follows_its_rule) {
    check_mask(make_kind(arena, _i), BATCH, QUERIES, KEYS, kind_rule[_i]);
}
END_TEST

START_TEST(causal_lines_up_the_last_with_the_last) {
    for (size_t queries = 1; queries <= 9; queries++)
        for (size_t keys = 1; keys <= 9; keys++) {
            const attn_mask *mask = attn_mask_causal(arena, queries, keys);
            for (size_t i = 0; i < queries; i++) {
                const long last = (long)i + (long)keys - (long)queries;
                const size_t reach = last < 0 ? 0 : (size_t)last + 1;
                ck_assert_uint_eq(attn_mask_reach(mask, 0, i), reach);
                for (size_t j = 0; j < keys; j++)
                    ck_assert(attn_mask_sees(mask, 0, i, j) ==
                              ((long)j <= last));
            }
            ck_assert_uint_eq(attn_mask_reach(mask, 0, queries - 1), keys);
        }
}
END_TEST

START_TEST(causal_serves_any_batch) {
    const attn_mask *mask = attn_mask_causal(arena, QUERIES, KEYS);
    check_mask(mask, 1, QUERIES, KEYS, past);
    check_mask(mask, 17, QUERIES, KEYS, past);
    ck_assert(!attn_mask_fits(mask, 1, QUERIES + 1, KEYS));
    ck_assert(!attn_mask_fits(mask, 1, QUERIES, KEYS + 1));
}
END_TEST

START_TEST(padding_serves_any_number_of_queries) {
    const attn_mask *mask = make_kind(arena, PADDED);
    check_mask(mask, BATCH, 1, KEYS, real_tokens);
    check_mask(mask, BATCH, 40, KEYS, real_tokens);
    ck_assert(!attn_mask_fits(mask, BATCH + 1, 1, KEYS));
    ck_assert(!attn_mask_fits(mask, 1, 1, KEYS));
    ck_assert(!attn_mask_fits(mask, BATCH, 1, KEYS - 1));
}
END_TEST

START_TEST(padding_of_one_sequence_serves_all) {
    const attn_mask *mask =
        attn_mask_padding(arena, tokens, 1, KEYS, PADDING);
    ck_assert(attn_mask_fits(mask, BATCH, QUERIES, KEYS));
    for (size_t b = 0; b < BATCH; b++)
        for (size_t j = 0; j < KEYS; j++)
            ck_assert(attn_mask_sees(mask, b, 0, j) ==
                      (tokens[j] != PADDING));
}
END_TEST

START_TEST(any_token_can_be_the_padding) {
    const attn_mask *mask = attn_mask_padding(arena, tokens, 1, KEYS, 9);
    for (size_t j = 0; j < KEYS; j++)
        ck_assert(attn_mask_sees(mask, 0, 0, j) == (j != 2));
}
END_TEST

START_TEST(keep_and_blocked_are_opposites) {
    bool array[BATCH * QUERIES * KEYS];
    fill(array, BATCH, scattered, false);
    const attn_mask *keep =
        attn_mask_from_keep(arena, array, BATCH, QUERIES, KEYS);
    const attn_mask *blocked =
        attn_mask_from_blocked(arena, array, BATCH, QUERIES, KEYS);
    for (size_t b = 0; b < BATCH; b++)
        for (size_t i = 0; i < QUERIES; i++)
            for (size_t j = 0; j < KEYS; j++)
                ck_assert(attn_mask_sees(keep, b, i, j) !=
                          attn_mask_sees(blocked, b, i, j));
}
END_TEST

START_TEST(an_array_may_change_after_the_mask_is_made) {
    bool array[BATCH * QUERIES * KEYS];
    fill(array, BATCH, scattered, false);
    const attn_mask *mask =
        attn_mask_from_keep(arena, array, BATCH, QUERIES, KEYS);
    memset(array, 0, sizeof array);
    check_mask(mask, BATCH, QUERIES, KEYS, scattered);
}
END_TEST

START_TEST(a_single_query_and_a_single_key) {
    check_mask(attn_mask_causal(arena, 1, 1), 2, 1, 1, everything);
    const bool yes = true;
    check_mask(attn_mask_from_keep(arena, &yes, 1, 1, 1), 2, 1, 1,
               everything);
}
END_TEST

/* A rule that can be said in a line must not be stored by the pair. */
START_TEST(causal_and_padding_are_small) {
    enum { LONG = 1 << 14 };
    const attn_mask *first = attn_mask_causal(arena, LONG, LONG);
    ck_assert_ptr_nonnull(first);
    ck_assert_uint_lt(attn_arena_peak(arena), 256);
    size_t *text = calloc(LONG, sizeof *text);
    const attn_mask *second =
        attn_mask_padding(arena, text, 1, LONG, PADDING);
    ck_assert_ptr_nonnull(attn_mask_both(arena, first, second));
    ck_assert_uint_lt(attn_arena_peak(arena), 3 * LONG);
    free(text);
}
END_TEST

/* ---- Two together ---- */

static int first_kind, second_kind;

static bool of_both(size_t b, size_t i, size_t j) {
    return kind_rule[first_kind](b, i, j) &&
           kind_rule[second_kind](b, i, j);
}

/* Every kind with every kind, itself included, in both orders. */
START_TEST(both_is_the_logical_and) {
    first_kind = _i / KINDS;
    second_kind = _i % KINDS;
    const attn_mask *both = attn_mask_both(
        arena, make_kind(arena, first_kind), make_kind(arena, second_kind));
    check_mask(both, BATCH, QUERIES, KEYS, of_both);
}
END_TEST

static bool of_all(size_t b, size_t i, size_t j) {
    for (size_t kind = 0; kind < KINDS; kind++)
        if (!kind_rule[kind](b, i, j))
            return false;
    return true;
}

START_TEST(both_can_be_nested) {
    const attn_mask *all = make_kind(arena, 0);
    for (int kind = 1; kind < KINDS; kind++)
        all = attn_mask_both(arena, all, make_kind(arena, kind));
    check_mask(all, BATCH, QUERIES, KEYS, of_all);
    const attn_mask *backwards = make_kind(arena, KINDS - 1);
    for (int kind = KINDS - 1; kind-- > 0;)
        backwards =
            attn_mask_both(arena, make_kind(arena, kind), backwards);
    check_mask(backwards, BATCH, QUERIES, KEYS, of_all);
}
END_TEST

START_TEST(both_outlives_the_two) {
    attn_arena *short_lived = attn_arena_new();
    first_kind = _i / KINDS;
    second_kind = _i % KINDS;
    const attn_mask *both =
        attn_mask_both(arena, make_kind(short_lived, first_kind),
                       make_kind(short_lived, second_kind));
    attn_arena_free(short_lived);
    check_mask(both, BATCH, QUERIES, KEYS, of_both);
}
END_TEST

START_TEST(both_leaves_the_two_as_they_were) {
    first_kind = _i / KINDS;
    second_kind = _i % KINDS;
    const attn_mask *first = make_kind(arena, first_kind);
    const attn_mask *second = make_kind(arena, second_kind);
    ck_assert_ptr_nonnull(attn_mask_both(arena, first, second));
    check_mask(first, BATCH, QUERIES, KEYS, kind_rule[first_kind]);
    check_mask(second, BATCH, QUERIES, KEYS, kind_rule[second_kind]);
}
END_TEST

/* Two paddings have no number of queries, nor has what they make. */
START_TEST(two_paddings_still_serve_any_number_of_queries) {
    const attn_mask *mask = make_kind(arena, PADDED);
    const attn_mask *both = attn_mask_both(arena, mask, mask);
    check_mask(both, BATCH, 1, KEYS, real_tokens);
    check_mask(both, BATCH, 9, KEYS, real_tokens);
}
END_TEST

/* ---- In use ---- */

/* The formula of the chapter in double, from rules instead of masks. */
START_TEST(softmax_follows_the_formula_of_the_chapter) {
    attn_tape *tape = attn_tape_new();
    attn_torch_generator generator;
    attn_torch_seed(&generator, 4);
    attn_tensor *scores =
        attn_tensor_new(arena, ATTN_SHAPE(BATCH, QUERIES, KEYS));
    attn_torch_normal(&generator, scores);
    const attn_tensor *weights =
        attn_softmax(tape, scores, make_kind(arena, _i));
    const float *s = scores->value, *found = weights->value;
    for (size_t b = 0; b < BATCH; b++)
        for (size_t i = 0; i < QUERIES; i++, s += KEYS, found += KEYS) {
            double sum = 0;
            for (size_t j = 0; j < KEYS; j++)
                sum += kind_rule[_i](b, i, j) ? exp((double)s[j]) : 0;
            for (size_t j = 0; j < KEYS; j++)
                if (kind_rule[_i](b, i, j))
                    ck_assert_double_eq_tol(found[j],
                                            exp((double)s[j]) / sum, 1e-6);
                else
                    ck_assert(found[j] == 0);
        }
    attn_tape_free(tape);
}
END_TEST

START_TEST(a_mask_of_other_sizes_is_refused_in_use) {
    attn_tape *tape = attn_tape_new();
    const attn_tensor *scores =
        attn_tensor_new(arena, ATTN_SHAPE(BATCH, QUERIES, KEYS + 1));
    catch_errors();
    ck_assert_ptr_null(
        attn_softmax(tape, scores, make_kind(arena, CAUSAL)));
    ck_assert_ptr_nonnull(strstr(caught.last, "attn_softmax: "));
    ck_assert_ptr_nonnull(strstr(caught.last, "(any, 4, 6)"));
    ck_assert_int_eq(caught.count, 1);
    attn_tape_free(tape);
}
END_TEST

/* ---- What is refused ---- */

START_TEST(null_is_refused) {
    const bool yes[1] = {true};
    const attn_mask *mask = attn_mask_causal(arena, 1, 1);
    ck_assert_error(attn_mask_causal(NULL, 1, 1),
                    "attn_mask_causal: arena is NULL");
    ck_assert_error(attn_mask_padding(NULL, tokens, 1, 1, 0),
                    "attn_mask_padding: arena is NULL");
    ck_assert_error(attn_mask_padding(arena, NULL, 1, 1, 0),
                    "attn_mask_padding: tokens is NULL");
    ck_assert_error(attn_mask_from_keep(NULL, yes, 1, 1, 1),
                    "attn_mask_from_keep: arena is NULL");
    ck_assert_error(attn_mask_from_keep(arena, NULL, 1, 1, 1),
                    "attn_mask_from_keep: keep is NULL");
    ck_assert_error(attn_mask_from_blocked(NULL, yes, 1, 1, 1),
                    "attn_mask_from_blocked: arena is NULL");
    ck_assert_error(attn_mask_from_blocked(arena, NULL, 1, 1, 1),
                    "attn_mask_from_blocked: blocked is NULL");
    ck_assert_error(attn_mask_both(NULL, mask, mask),
                    "attn_mask_both: arena is NULL");
    ck_assert_error(attn_mask_both(arena, NULL, mask),
                    "attn_mask_both: first is NULL");
    ck_assert_error(attn_mask_both(arena, mask, NULL),
                    "attn_mask_both: second is NULL");
    ck_assert_error(attn_mask_sees(NULL, 0, 0, 0),
                    "attn_mask_sees: mask is NULL");
}
END_TEST

START_TEST(sizes_of_zero_are_refused) {
    const bool yes[1] = {true};
    ck_assert_error(attn_mask_causal(arena, 0, 3),
                    "attn_mask_causal: a size is zero: (1, 0, 3)");
    ck_assert_error(attn_mask_causal(arena, 3, 0),
                    "attn_mask_causal: a size is zero: (1, 3, 0)");
    ck_assert_error(attn_mask_padding(arena, tokens, 0, 6, 0),
                    "attn_mask_padding: a size is zero: (0, 1, 6)");
    ck_assert_error(attn_mask_padding(arena, tokens, 3, 0, 0),
                    "attn_mask_padding: a size is zero: (3, 1, 0)");
    ck_assert_error(attn_mask_from_keep(arena, yes, 0, 1, 1),
                    "attn_mask_from_keep: a size is zero: (0, 1, 1)");
    ck_assert_error(attn_mask_from_keep(arena, yes, 1, 0, 1),
                    "attn_mask_from_keep: a size is zero: (1, 0, 1)");
    ck_assert_error(attn_mask_from_blocked(arena, yes, 1, 1, 0),
                    "attn_mask_from_blocked: a size is zero: (1, 1, 0)");
}
END_TEST

/* A negative number passed as a size turns into a huge one. */
START_TEST(huge_sizes_are_refused) {
    const bool yes[1] = {true};
    char sentence[128];
    snprintf(sentence, sizeof sentence,
             "attn_mask_causal: a size is too large: (1, %zu, 3)",
             (size_t)-1);
    ck_assert_error(attn_mask_causal(arena, (size_t)-1, 3), sentence);
    snprintf(sentence, sizeof sentence,
             "attn_mask_padding: a size is too large: (1, 1, %zu)",
             (size_t)INT_MAX + 1);
    ck_assert_error(
        attn_mask_padding(arena, tokens, 1, (size_t)INT_MAX + 1, 0),
        sentence);
    ck_assert_error(
        attn_mask_from_keep(arena, yes, INT_MAX, INT_MAX, INT_MAX),
        "attn_mask_from_keep: no memory for a mask of (2147483647, "
        "2147483647, 2147483647)");
}
END_TEST

START_TEST(an_index_out_of_range_is_refused) {
    const attn_mask *causal = make_kind(arena, CAUSAL);
    ck_assert_error(attn_mask_sees(causal, 0, QUERIES, 0),
                    "attn_mask_sees: (0, 4, 0) is outside a mask of (any, "
                    "4, 6)");
    ck_assert_error(attn_mask_sees(causal, 0, 0, KEYS),
                    "attn_mask_sees: (0, 0, 6) is outside a mask of (any, "
                    "4, 6)");
    const attn_mask *padded = make_kind(arena, PADDED);
    ck_assert_error(attn_mask_sees(padded, BATCH, 0, 0),
                    "attn_mask_sees: (3, 0, 0) is outside a mask of (3, "
                    "any, 6)");
    ck_assert_error(attn_mask_sees(padded, 0, 0, (size_t)-1),
                    "attn_mask_sees: (0, 0, 18446744073709551615) is "
                    "outside a mask of (3, any, 6)");
    catch_errors();
    ck_assert(attn_mask_sees(padded, 0, 1000000, 0));
    ck_assert(attn_mask_sees(causal, 1000000, 0, 0));
    ck_assert_int_eq(caught.count, 0);
}
END_TEST

START_TEST(masks_that_do_not_match_are_refused) {
    const bool many[2 * QUERIES * (KEYS + 1)] = {false};
    const attn_mask *causal = make_kind(arena, CAUSAL);
    const attn_mask *padded = make_kind(arena, PADDED);
    const attn_mask *kept = make_kind(arena, KEPT);
    ck_assert_error(
        attn_mask_both(arena, causal, attn_mask_causal(arena, 5, KEYS)),
        "attn_mask_both: the sizes do not match: (any, 4, 6) and (any, 5, "
        "6)");
    ck_assert_error(
        attn_mask_both(arena, padded,
                       attn_mask_causal(arena, QUERIES, KEYS + 1)),
        "attn_mask_both: the sizes do not match: (3, any, 6) and (any, 4, "
        "7)");
    ck_assert_error(
        attn_mask_both(arena, kept,
                       attn_mask_from_keep(arena, many, 2, QUERIES, KEYS)),
        "attn_mask_both: the sizes do not match: (3, 4, 6) and (2, 4, 6)");
    ck_assert_error(
        attn_mask_both(arena,
                       attn_mask_padding(arena, tokens, 2, KEYS, PADDING),
                       padded),
        "attn_mask_both: the sizes do not match: (2, any, 6) and (3, any, "
        "6)");
}
END_TEST

/* ---- No memory ---- */

START_TEST(no_memory_for_the_mask_itself) {
    const bool yes[1] = {true};
    attn_arena *fresh = attn_arena_new();
    const attn_mask *mask = make_kind(arena, PADDED);
    memory_is_out = true;
    ck_assert_error(attn_mask_causal(fresh, 4, 4),
                    "attn_mask_causal: no memory for a mask");
    ck_assert_error(attn_mask_padding(fresh, tokens, 1, 1, 0),
                    "attn_mask_padding: no memory for a mask");
    ck_assert_error(attn_mask_from_keep(fresh, yes, 1, 1, 1),
                    "attn_mask_from_keep: no memory for a mask");
    ck_assert_error(attn_mask_from_blocked(fresh, yes, 1, 1, 1),
                    "attn_mask_from_blocked: no memory for a mask");
    ck_assert_error(attn_mask_both(fresh, mask, mask),
                    "attn_mask_both: no memory for a mask");
    memory_is_out = false;
    check_mask(mask, BATCH, QUERIES, KEYS, real_tokens);
    check_mask(attn_mask_causal(fresh, 1, 1), 1, 1, 1, everything);
    attn_arena_free(fresh);
}
END_TEST

/* The mask fits into the arena's first block, its bytes do not. */
START_TEST(no_memory_for_its_bytes) {
    enum { LONG = 1 << 18 };
    size_t *text = calloc(LONG, sizeof *text);
    bool *array = calloc(LONG, sizeof *array);
    const attn_mask *small = attn_mask_causal(arena, 1, LONG);
    attn_arena *other = attn_arena_new();
    const attn_mask *large =
        attn_mask_padding(other, text, 1, LONG, PADDING);
    memory_is_out = true;
    ck_assert_error(attn_mask_padding(arena, text, 1, LONG, PADDING),
                    "attn_mask_padding: no memory for a mask of (1, 1, "
                    "262144)");
    ck_assert_error(attn_mask_from_keep(arena, array, 1, 2, LONG / 2),
                    "attn_mask_from_keep: no memory for a mask of (1, 2, "
                    "131072)");
    ck_assert_error(attn_mask_from_blocked(arena, array, 2, 1, LONG / 2),
                    "attn_mask_from_blocked: no memory for a mask of (2, "
                    "1, 131072)");
    ck_assert_error(attn_mask_both(arena, small, large),
                    "attn_mask_both: no memory for a mask of (1, 1, "
                    "262144)");
    memory_is_out = false;
    catch_errors();
    const attn_mask *both = attn_mask_both(arena, small, large);
    ck_assert_uint_eq(attn_mask_reach(both, 0, 0), 0);
    ck_assert_int_eq(caught.count, 0);
    attn_arena_free(other);
    free(array);
    free(text);
}
END_TEST

/* ---- The suite ---- */

static TCase *add_case(Suite *suite, const char *name) {
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    suite_add_tcase(suite, tests);
    return tests;
}

static Suite *make_suite(void) {
    Suite *suite = suite_create("masks");
    TCase *alone = add_case(suite, "each kind alone");
    tcase_add_loop_test(alone, every_kind_follows_its_rule, 0, KINDS);
    tcase_add_test(alone, causal_lines_up_the_last_with_the_last);
    tcase_add_test(alone, causal_serves_any_batch);
    tcase_add_test(alone, padding_serves_any_number_of_queries);
    tcase_add_test(alone, padding_of_one_sequence_serves_all);
    tcase_add_test(alone, any_token_can_be_the_padding);
    tcase_add_test(alone, keep_and_blocked_are_opposites);
    tcase_add_test(alone, an_array_may_change_after_the_mask_is_made);
    tcase_add_test(alone, a_single_query_and_a_single_key);
    tcase_add_test(alone, causal_and_padding_are_small);
    TCase *together = add_case(suite, "two together");
    tcase_add_loop_test(together, both_is_the_logical_and, 0,
                        KINDS * KINDS);
    tcase_add_test(together, both_can_be_nested);
    tcase_add_loop_test(together, both_outlives_the_two, 0, KINDS * KINDS);
    tcase_add_loop_test(together, both_leaves_the_two_as_they_were, 0,
                        KINDS * KINDS);
    tcase_add_test(together,
                   two_paddings_still_serve_any_number_of_queries);
    TCase *used = add_case(suite, "in use");
    tcase_add_loop_test(used, softmax_follows_the_formula_of_the_chapter, 0,
                        KINDS);
    tcase_add_test(used, a_mask_of_other_sizes_is_refused_in_use);
    TCase *refused = add_case(suite, "what is refused");
    tcase_add_test(refused, null_is_refused);
    tcase_add_test(refused, sizes_of_zero_are_refused);
    tcase_add_test(refused, huge_sizes_are_refused);
    tcase_add_test(refused, an_index_out_of_range_is_refused);
    tcase_add_test(refused, masks_that_do_not_match_are_refused);
    TCase *memory = add_case(suite, "no memory");
    tcase_add_test(memory, no_memory_for_the_mask_itself);
    tcase_add_test(memory, no_memory_for_its_bytes);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
