/* The layers around attention: outputs, gradients and first values against
   PyTorch's, and what attention.h promises about mistakes. */
/* link: -Wl,--wrap=aligned_alloc */
#include <float.h>

#include "check_support.h"
#define ONLY_ARENAS_RUN_OUT
#include "scarcity.h"
#include "internal.h"

static golden numbers;

static void open_numbers(void) {
    numbers = golden_read("tests/golden/layers.golden");
}

static void close_numbers(void) {
    golden_free(&numbers);
}

static attn_tensor *number(const char *name, const char *key) {
    return golden_tensor(&numbers, "%s/%s", name, key);
}

/* A number of the facts about a case, which are all small. */
static size_t fact(const char *name, size_t index) {
    return (size_t)number(name, "facts")->value[index];
}

static size_t count_of(const char *name) {
    return (size_t)number(name, "count")->value[0];
}

/* The output against the golden one, then back from the gradient wanted. */
static void check_output(attn_tape *tape, const char *name,
                         attn_tensor *output, double tolerance) {
    check_values(output, number(name, "output"), tolerance, name);
    ck_assert(attn_backward(tape, output, number(name, "wanted")));
}

static void check_input(const char *name, const char *key,
                        const attn_tensor *input, double tolerance) {
    char what[160];
    snprintf(what, sizeof what, "%s: gradient of %s", name, key);
    check_gradient(input, golden_tensor(&numbers, "%s/%s/gradient", name, key),
                   tolerance, what);
}

static size_t *indices(const attn_tensor *tensor) {
    const size_t size = attn_tensor_size(tensor);
    size_t *index =
        attn_arena_allocate(numbers.memory, size * sizeof *index);
    for (size_t i = 0; i < size; i++)
        index[i] = (size_t)tensor->value[i];
    return index;
}

/* ---- Functions ----------------------------------------------------------- */

/* Number by number, relative to the number, and near 0 to the smallest
   float of full precision. */
static void check_relative(const float *found, const float *expected,
                           size_t size, double tolerance, double floor,
                           const char *what) {
    for (size_t i = 0; i < size; i++) {
        const double apart = fabs((double)found[i] - (double)expected[i]);
        const double allowed =
            tolerance * fabs((double)expected[i]) + floor;
        ck_assert_msg(found[i] == expected[i] || apart <= allowed,
                      "%s: element %zu is %.9g, not %.9g", what, i,
                      (double)found[i], (double)expected[i]);
    }
}

/* Both we and PyTorch are within 2 units of 2^-24 .. 2^-23 of the truth,
   tanh and sigmoid relative to it. GELU computes 1 + erf, which for
   negative numbers cancels: what is left is wrong by a unit of 1, times x.
   (1 - y)(1 + y) cancels likewise in gradients near saturation. */
static void check_function(const char *name, attn_activation *function,
                           double tolerance, double floor) {
    char full[64];
    snprintf(full, sizeof full, "function/%s", name);
    attn_tape *tape = attn_tape_new();
    attn_tensor *x = number(full, "x");
    attn_tensor *y = function(tape, x);
    ck_assert_ptr_nonnull(y);
    const attn_tensor *expected = number(full, "output");
    const size_t size = attn_tensor_size(expected);
    check_relative(y->value, expected->value, size, tolerance, floor, full);
    const attn_tensor *wanted = number(full, "wanted");
    ck_assert(attn_backward(tape, y, wanted));
    expected = number(full, "x/gradient");
    for (size_t i = 0; i < size; i++) {
        const double apart =
            fabs((double)x->gradient[i] - (double)expected->value[i]);
        const double allowed = 8 * (double)FLT_EPSILON *
                               fabs((double)wanted->value[i]) *
                               fmax(1, fmin(fabs((double)x->value[i]), 6));
        ck_assert_msg(apart <= allowed, "%s: gradient at %g is %g, not %g",
                      full, (double)x->value[i], (double)x->gradient[i],
                      (double)expected->value[i]);
    }
    attn_tape_free(tape);
}

START_TEST(functions_agree_with_pytorch) {
    check_function("tanh", attn_tanh, 3 * (double)FLT_EPSILON, 0);
    check_function("sigmoid", attn_sigmoid, 3 * (double)FLT_EPSILON,
                   (double)FLT_MIN);
    check_function("relu", attn_relu, 0, 0);
    check_function("gelu", attn_gelu, 3 * (double)FLT_EPSILON,
                   6 * (double)FLT_EPSILON);
}
END_TEST

/* Units in the last place between found and the double expected. */
static double units_apart(float found, double expected) {
    if ((double)found == expected)
        return 0;
    const float rounded = fabsf((float)expected);
    const double unit =
        fmax((double)(nextafterf(rounded, INFINITY) - rounded),
             (double)(rounded - nextafterf(rounded, 0)));
    return fabs((double)found - expected) / unit;
}

/* Every 3001st float of both signs, and every one near the seams. */
START_TEST(functions_are_near_the_truth) {
    double tanh_worst = 0, logistic_worst = 0, error_worst = 0;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 3001)
        for (uint32_t sign = 0; sign < 2; sign++) {
            union {
                uint32_t bits;
                float number;
            } x = {bits | (sign * (1u << 31))};
            const double exact = (double)x.number;
            tanh_worst = fmax(tanh_worst,
                              units_apart(attn_hyperbolic_tangent(x.number),
                                          tanh(exact)));
            error_worst =
                fmax(error_worst,
                     units_apart(attn_error_function(x.number), erf(exact)));
            if (exact > -87)
                logistic_worst =
                    fmax(logistic_worst, units_apart(attn_logistic(x.number),
                                                     1 / (1 + exp(-exact))));
        }
    ck_assert_msg(tanh_worst <= 3, "tanh: %g units", tanh_worst);
    ck_assert_msg(logistic_worst <= 3, "logistic: %g units",
                  logistic_worst);
    ck_assert_msg(error_worst <= 3, "erf: %g units", error_worst);
}
END_TEST

START_TEST(functions_pass_on_what_is_no_number) {
    attn_tape *tape = attn_tape_new();
    const float strange[] = {NAN, INFINITY, -INFINITY};
    const attn_tensor *x =
        attn_tensor_from(attn_tape_arena(tape), strange, ATTN_SHAPE(3));
    const float *y = attn_tanh(tape, x)->value;
    ck_assert(isnan(y[0]) && y[1] == 1.0f && y[2] == -1.0f);
    y = attn_sigmoid(tape, x)->value;
    ck_assert(isnan(y[0]) && y[1] == 1.0f && y[2] == 0.0f);
    y = attn_relu(tape, x)->value;
    ck_assert(isnan(y[0]) && y[1] == INFINITY && y[2] == 0.0f);
    y = attn_gelu(tape, x)->value;
    ck_assert(isnan(y[0]) && y[1] == INFINITY && isnan(y[2]));
    attn_tape_free(tape);
}
END_TEST

/* ---- Layer norm ---------------------------------------------------------- */

/* The rows have up to 33 numbers, summed in another order than PyTorch's;
   case 6 has a mean of 20 deviations, cases 0 and 7 no deviation at all,
   only rounding, which 1 / sqrt(epsilon) = 316 magnifies. */
START_TEST(layer_norm_agrees_with_pytorch) {
    for (size_t i = 0; i < count_of("norm"); i++) {
        char name[32];
        snprintf(name, sizeof name, "norm/%zu", i);
        const double tolerance = i == 0 || i >= 6 ? 1e-5 : 2e-6;
        attn_tape *tape = attn_tape_new();
        attn_tensor *x = number(name, "x"), *weight = number(name, "weight");
        attn_tensor *bias = number(name, "bias");
        check_output(tape, name,
                     attn_layer_norm(tape, x, weight, bias, 1e-5f),
                     tolerance);
        check_input(name, "x", x, tolerance);
        check_input(name, "weight", weight, tolerance);
        check_input(name, "bias", bias, tolerance);
        attn_tape_free(tape);
    }
}
END_TEST

/* ---- Dropout ------------------------------------------------------------- */

/* The same draws and the same two roundings: the same bits. */
START_TEST(dropout_draws_as_pytorch) {
    const double p[] = {0.5, 0.1, 0.9, 0.25};
    for (size_t i = 0; i < count_of("dropout"); i++) {
        char name[32];
        snprintf(name, sizeof name, "dropout/%zu", i);
        attn_tape *tape = attn_tape_new();
        attn_torch_generator generator;
        attn_torch_seed(&generator, 100 + i);
        attn_tensor *x = number(name, "x");
        attn_tensor *y = attn_dropout(tape, x, p[i], &generator);
        attn_tensor *next = attn_tensor_new(attn_tape_arena(tape),
                                            ATTN_SHAPE(1));
        attn_torch_uniform(&generator, next, 0, 1);
        ck_assert(next->value[0] == number(name, "next")->value[0]);
        check_output(tape, name, y, 0);
        check_input(name, "x", x, 0);
        attn_tape_free(tape);
    }
}
END_TEST

START_TEST(dropout_does_nothing_in_use) {
    attn_tape *tape = attn_tape_new();
    attn_torch_generator generator, before;
    attn_torch_seed(&generator, 1);
    before = generator;
    attn_tensor *x = number("dropout/1", "x");
    ck_assert_ptr_eq(attn_dropout(tape, x, 0.5, NULL)->value, x->value);
    ck_assert_ptr_eq(attn_dropout(tape, x, 0, &generator)->value, x->value);
    ck_assert_ptr_eq(attn_dropout(tape, x, 0, &generator)->gradient,
                     x->gradient);
    ck_assert(generator.used == before.used);
    attn_tape_free(tape);
}
END_TEST

/* ---- Positions ----------------------------------------------------------- */

/* Sines of the same doubles, rounded once: apart by the rounding of an
   angle that two libraries computed, at most one unit. */
START_TEST(sinusoids_agree) {
    const double base[] = {1e4, 1e4, 1e4, 100};
    for (size_t i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "sinusoidal/%zu", i);
        const attn_tensor *expected = golden_tensor(&numbers, "%s", name);
        check_values(attn_sinusoidal_positions(numbers.memory,
                                               expected->shape[0],
                                               expected->shape[1], base[i]),
                     expected, 1.2e-7, name);
    }
}
END_TEST

/* Two products and a sum. */
START_TEST(rotary_agrees_with_pytorch) {
    for (size_t i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "rotary/%zu", i);
        attn_tape *tape = attn_tape_new();
        attn_tensor *x = number(name, "x");
        check_output(tape, name,
                     attn_rotary(tape, x, fact(name, 0), fact(name, 1), 1e4),
                     4e-7);
        check_input(name, "x", x, 4e-7);
        attn_tape_free(tape);
    }
}
END_TEST

/* Looking up is exact; a gradient sums up to 49 numbers. */
START_TEST(relative_bias_agrees_with_pytorch) {
    for (size_t i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "relative/%zu", i);
        attn_tape *tape = attn_tape_new();
        attn_tensor *table = number(name, "table");
        attn_tensor *bias = attn_relative_bias(tape, table, fact(name, 0),
                                               fact(name, 1));
        check_values(bias, number(name, "output"), 0, name);
        check_output(tape, name, bias, 0);
        check_input(name, "table", table, 1e-6);
        attn_tape_free(tape);
    }
}
END_TEST

START_TEST(learned_positions_are_a_view) {
    attn_tape *tape = attn_tape_new();
    attn_tensor *table = number("learned", "table");
    attn_tensor *rows = attn_learned_positions(tape, table, 4);
    ck_assert_ptr_eq(rows->value, table->value);
    ck_assert_ptr_eq(rows->gradient, table->gradient);
    /* Added to something, so that there is a step to walk. */
    const attn_tensor *zeros =
        attn_tensor_new(attn_tape_arena(tape), ATTN_SHAPE(4, 3));
    check_output(tape, "learned", attn_add(tape, zeros, rows), 0);
    check_input("learned", "table", table, 0);
    attn_tape_record(tape, false);
    ck_assert_ptr_null(attn_learned_positions(tape, table, 2)->gradient);
    attn_tape_free(tape);
}
END_TEST

/* ---- Heads, positions, losses -------------------------------------------- */

START_TEST(heads_are_moved_exactly) {
    attn_tape *tape = attn_tape_new();
    attn_tensor *x = number("split", "x");
    check_output(tape, "split", attn_split_heads(tape, x, 4), 0);
    check_input("split", "x", x, 0);
    x = number("merge", "x");
    check_output(tape, "merge", attn_merge_heads(tape, x), 0);
    check_input("merge", "x", x, 0);
    x = number("last", "x");
    check_output(tape, "last", attn_last_position(tape, x), 0);
    check_input("last", "x", x, 0);
    /* Three numbers, summed in one order or another. */
    x = number("mean-heads", "x");
    check_output(tape, "mean-heads", attn_mean_heads(tape, x), 2e-7);
    check_input("mean-heads", "x", x, 2e-7);
    attn_tape_free(tape);
}
END_TEST

/* Differences of logits are exact to a unit of the largest, which
   check_close takes into account; shares are within a few units. */
START_TEST(cross_entropy_agrees_with_pytorch) {
    for (size_t i = 0; i < count_of("loss"); i++) {
        char name[32];
        snprintf(name, sizeof name, "loss/%zu", i);
        attn_tape *tape = attn_tape_new();
        attn_tensor *logits = number(name, "logits");
        size_t *labels = indices(number(name, "labels"));
        ck_assert(attn_accuracy(logits, labels) ==
                  number(name, "accuracy")->value[0]);
        attn_tensor *loss = attn_cross_entropy(tape, logits, labels);
        memset(labels, 0, sizeof *labels); /* they were copied */
        check_output(tape, name, loss, 5e-7);
        check_input(name, "logits", logits, 5e-7);
        attn_tape_free(tape);
    }
}
END_TEST

/* Sums of four products, and of six rows in the table's gradient. */
START_TEST(tied_embeddings_agree_with_pytorch) {
    attn_tape *tape = attn_tape_new();
    attn_tensor *table = number("tied", "table");
    const size_t *tokens = indices(number("tied", "tokens"));
    attn_tensor *x = attn_embedding(tape, table, tokens, ATTN_SHAPE(2, 3));
    check_output(tape, "tied",
                 attn_matmul_transposed(tape, attn_tanh(tape, x), table),
                 1e-6);
    check_input("tied", "table", table, 1e-6);
    attn_tape_free(tape);
}
END_TEST

/* ---- First values -------------------------------------------------------- */

static attn_torch_generator generator;
static attn_parameters *parameters;

/* Every number of every tensor, and the place in the stream after it. */
static void check_first(const char *name) {
    for (size_t i = 0; i < attn_parameters_length(parameters); i++) {
        char full[160];
        snprintf(full, sizeof full, "%s/%s", name,
                 attn_parameters_name(parameters, i));
        check_values(attn_parameters_at(parameters, i),
                     golden_tensor(&numbers, "%s", full), 0, full);
    }
    attn_tensor *next = attn_tensor_new(numbers.memory, ATTN_SHAPE(1));
    attn_torch_uniform(&generator, next, 0, 1);
    ck_assert_msg(next->value[0] == number(name, "next")->value[0],
                  "%s: the stream is elsewhere afterwards", name);
    attn_parameters_free(parameters);
    parameters = attn_parameters_new();
}

static void check_first_simple(void) {
    char name[32];
    for (size_t i = 0; i < 5; i++) {
        attn_linear_layer layer;
        snprintf(name, sizeof name, "first/linear/%zu", i);
        ck_assert(attn_linear_new(&layer, parameters, "", &generator,
                                  fact(name, 0), fact(name, 1),
                                  fact(name, 2) != 0));
        check_first(name);
    }
    for (size_t i = 0; i < 5; i++) {
        attn_embedding_layer layer;
        snprintf(name, sizeof name, "first/embedding/%zu", i);
        ck_assert(attn_embedding_new(&layer, parameters, "", &generator,
                                     fact(name, 0), fact(name, 1)));
        /* Normal numbers go through logarithm and sine. */
        check_values(layer.weight, number(name, "weight"), 3e-7, name);
        memcpy(layer.weight->value, number(name, "weight")->value,
               attn_tensor_size(layer.weight) * sizeof(float));
        check_first(name);
    }
    attn_layer_norm_layer norm;
    ck_assert(attn_layer_norm_new(&norm, parameters, "", 5));
    ck_assert(norm.epsilon == 1e-5f);
    check_first("first/norm");
}

static void check_first_recurrent(void) {
    typedef bool maker(attn_recurrent_layer *, attn_parameters *,
                       const char *, attn_torch_generator *, size_t, size_t);
    maker *const make[] = {attn_rnn_new, attn_gru_new, attn_lstm_new};
    const char *const kind[] = {"rnn", "gru", "lstm"};
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < 3; i++) {
            char name[32];
            snprintf(name, sizeof name, "first/%s/%zu", kind[k], i);
            attn_recurrent_layer layer;
            ck_assert(make[k](&layer, parameters, "", &generator,
                              fact(name, 0), fact(name, 1)));
            check_first(name);
        }
}

START_TEST(first_values_are_pytorchs) {
    parameters = attn_parameters_new();
    attn_torch_seed(&generator, 8);
    check_first_simple();
    check_first_recurrent();
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "first/attention/%zu", i);
        attn_multi_head_layer layer;
        ck_assert(attn_multi_head_new(&layer, parameters, "", &generator,
                                      fact(name, 0), fact(name, 1),
                                      fact(name, 2) != 0));
        ck_assert_uint_eq(layer.heads, fact(name, 1));
        check_first(name);
    }
    attn_feed_forward_layer layer;
    ck_assert(attn_feed_forward_new(&layer, parameters, "", &generator, 3, 8,
                                    attn_gelu));
    check_first("first/feed-forward");
    attn_parameters_free(parameters);
}
END_TEST

START_TEST(layers_are_named_as_pytorchs) {
    parameters = attn_parameters_new();
    attn_torch_seed(&generator, 1);
    attn_multi_head_layer attention;
    attn_feed_forward_layer feed_forward;
    attn_lstm_layer lstm;
    ck_assert(attn_multi_head_new(&attention, parameters, "attn", &generator,
                                  4, 2, true));
    ck_assert(attn_feed_forward_new(&feed_forward, parameters, "ff",
                                    &generator, 4, 5, attn_relu));
    ck_assert(attn_lstm_new(&lstm, parameters, "lstm", &generator, 2, 3));
    const char *const expected[] = {
        "attn.in_proj_weight", "attn.in_proj_bias",  "attn.out_proj.weight",
        "attn.out_proj.bias",  "ff.0.weight",        "ff.0.bias",
        "ff.2.weight",         "ff.2.bias",          "lstm.weight_ih_l0",
        "lstm.weight_hh_l0",   "lstm.bias_ih_l0",    "lstm.bias_hh_l0"};
    ck_assert_uint_eq(attn_parameters_length(parameters), 12);
    for (size_t i = 0; i < 12; i++)
        ck_assert_str_eq(attn_parameters_name(parameters, i), expected[i]);
    attn_parameters_free(parameters);
}
END_TEST

/* ---- Layers of layers ---------------------------------------------------- */

/* Sums of at most six products each way. */
static void check_feed_forward(const char *name, attn_activation *bend) {
    attn_tape *tape = attn_tape_new();
    const attn_feed_forward_layer layer = {
        {number(name, "w0"), number(name, "b0")},
        {number(name, "w2"), number(name, "b2")},
        bend};
    attn_tensor *x = number(name, "x");
    check_output(tape, name, attn_feed_forward_apply(tape, &layer, x), 1e-6);
    check_input(name, "x", x, 1e-6);
    check_input(name, "w0", layer.first.weight, 1e-6);
    check_input(name, "b0", layer.first.bias, 1e-6);
    check_input(name, "w2", layer.second.weight, 1e-6);
    check_input(name, "b2", layer.second.bias, 1e-6);
    attn_tape_free(tape);
}

START_TEST(feed_forward_agrees_with_pytorch) {
    check_feed_forward("feed-forward/gelu", attn_gelu);
    check_feed_forward("feed-forward/relu", attn_relu);
}
END_TEST

static attn_mask *keep_mask(const char *name) {
    if (!golden_has(&numbers, "%s/keep", name))
        return NULL;
    const attn_tensor *keep = number(name, "keep");
    const size_t size = attn_tensor_size(keep);
    bool *shown = attn_arena_allocate(numbers.memory, size);
    for (size_t i = 0; i < size; i++)
        shown[i] = keep->value[i] != 0;
    return attn_mask_from_keep(numbers.memory, shown, keep->shape[0],
                               keep->shape[1], keep->shape[2]);
}

static attn_tensor *if_there(const char *name, const char *key) {
    return golden_has(&numbers, "%s/%s", name, key) ? number(name, key)
                                                    : NULL;
}

/* Four products with sums of up to 32 (in the parameters' gradients 16)
   terms in a row, and a softmax: some ten roundings of parts that are as
   large as the largest. */
static void check_attention(size_t index) {
    const double tolerance = 3e-6, dropout[] = {0, 0, 0, 0, 0, 0, 0,
                                                0.1, 0.5, 0, 0.3, 0};
    char name[32];
    snprintf(name, sizeof name, "attention/%zu", index);
    attn_multi_head_layer layer = {
        number(name, "in_proj_weight"),
        if_there(name, "in_proj_bias"),
        {number(name, "out_proj.weight"), if_there(name, "out_proj.bias")},
        fact(name, 0)};
    attn_tensor *query = number(name, "query");
    attn_tensor *key = if_there(name, "key");
    attn_tensor *value = if_there(name, "value");
    attn_tensor *scores = if_there(name, "scores");
    attn_tensor *weights = NULL, *mean = NULL;
    attn_torch_seed(&generator, 200 + index);
    const attn_multi_head_options options = {.mask = keep_mask(name),
                                             .bias = scores,
                                             .dropout = dropout[index],
                                             .generator = &generator,
                                             .weights = &weights,
                                             .mean_weights = &mean};
    attn_tape *tape = attn_tape_new();
    attn_tensor *y = attn_multi_head_apply(
        tape, &layer, query, key != NULL ? key : query,
        value != NULL ? value : query, &options);
    check_values(weights, number(name, "weights"), tolerance, name);
    check_values(mean, number(name, "mean-weights"), tolerance, name);
    check_output(tape, name, y, tolerance);
    check_input(name, "query", query, tolerance);
    if (key != NULL)
        check_input(name, "key", key, tolerance);
    if (value != NULL)
        check_input(name, "value", value, tolerance);
    if (scores != NULL)
        check_input(name, "scores", scores, tolerance);
    check_input(name, "in_proj_weight", layer.in_weight, tolerance);
    check_input(name, "out_proj.weight", layer.out.weight, tolerance);
    if (layer.in_bias != NULL) {
        check_input(name, "in_proj_bias", layer.in_bias, tolerance);
        check_input(name, "out_proj.bias", layer.out.bias, tolerance);
    }
    attn_tape_free(tape);
}

START_TEST(multi_head_attention_agrees_with_pytorch) {
    for (size_t i = 0; i < count_of("attention"); i++)
        check_attention(i);
}
END_TEST

/* Turning queries and keys in the layer is turning them before it, when
   the projections are the identity. */
START_TEST(multi_head_attention_turns) {
    attn_tape *tape = attn_tape_new();
    attn_torch_seed(&generator, 3);
    attn_tensor *x = attn_tensor_new(numbers.memory, ATTN_SHAPE(2, 5, 8));
    attn_torch_normal(&generator, x);
    attn_multi_head_layer layer = {
        attn_tensor_new(numbers.memory, ATTN_SHAPE(24, 8)), NULL,
        {attn_tensor_new(numbers.memory, ATTN_SHAPE(8, 8)), NULL}, 2};
    for (size_t i = 0; i < 8; i++)
        for (size_t part = 0; part < 3; part++)
            layer.in_weight->value[(part * 8 + i) * 8 + i] =
                layer.out.weight->value[i * 8 + i] = 1;
    attn_tensor *turned = attn_rotary(tape, x, 2, 0, 100);
    check_values(
        attn_multi_head_apply(
            tape, &layer, x, x, x,
            &(attn_multi_head_options){.rotary_base = 100}),
        attn_attend(tape, turned, turned, x,
                    &(attn_attend_options){.heads = 2}),
        1e-6, "turned");
    attn_tape_free(tape);
}
END_TEST

/* ---- Mistakes ------------------------------------------------------------ */

static attn_tape *tape;
static attn_arena *memory;
static attn_tensor *number_1, *row_3, *matrix_23, *batch_234, *heads_2345;

static void set_up_mistakes(void) {
    catch_errors();
    tape = attn_tape_new();
    memory = attn_arena_new();
    parameters = attn_parameters_new();
    attn_torch_seed(&generator, 1);
    number_1 = attn_parameter_new(memory, 0, NULL);
    row_3 = attn_parameter_new(memory, ATTN_SHAPE(3));
    matrix_23 = attn_parameter_new(memory, ATTN_SHAPE(2, 3));
    batch_234 = attn_parameter_new(memory, ATTN_SHAPE(2, 3, 4));
    heads_2345 = attn_parameter_new(memory, ATTN_SHAPE(2, 3, 4, 5));
}

static void tear_down_mistakes(void) {
    attn_tape_free(tape);
    attn_arena_free(memory);
    attn_parameters_free(parameters);
}

START_TEST(operations_refuse_null) {
    const size_t labels[2] = {0, 0};
    ck_assert_error(attn_tanh(NULL, row_3), "attn_tanh: tape is NULL");
    ck_assert_error(attn_tanh(tape, NULL), "attn_tanh: x is NULL");
    ck_assert_error(attn_sigmoid(tape, NULL), "attn_sigmoid: x is NULL");
    ck_assert_error(attn_relu(tape, NULL), "attn_relu: x is NULL");
    ck_assert_error(attn_gelu(tape, NULL), "attn_gelu: x is NULL");
    ck_assert_error(attn_layer_norm(tape, matrix_23, NULL, row_3, 1),
                    "attn_layer_norm: weight is NULL");
    ck_assert_error(attn_layer_norm(tape, matrix_23, row_3, NULL, 1),
                    "attn_layer_norm: bias is NULL");
    ck_assert_error(attn_dropout(tape, NULL, 0.5, NULL),
                    "attn_dropout: x is NULL");
    ck_assert_error(attn_learned_positions(tape, NULL, 1),
                    "attn_learned_positions: table is NULL");
    ck_assert_error(attn_sinusoidal_positions(NULL, 1, 1, 2),
                    "attn_sinusoidal_positions: arena is NULL");
    ck_assert_error(attn_rotary(tape, NULL, 1, 0, 2),
                    "attn_rotary: x is NULL");
    ck_assert_error(attn_relative_bias(tape, NULL, 1, 1),
                    "attn_relative_bias: table is NULL");
    ck_assert_error(attn_split_heads(tape, NULL, 1),
                    "attn_split_heads: x is NULL");
    ck_assert_error(attn_merge_heads(tape, NULL),
                    "attn_merge_heads: x is NULL");
    ck_assert_error(attn_mean_heads(tape, NULL),
                    "attn_mean_heads: weights is NULL");
    ck_assert_error(attn_last_position(tape, NULL),
                    "attn_last_position: x is NULL");
    ck_assert_error(attn_cross_entropy(tape, NULL, labels),
                    "attn_cross_entropy: logits is NULL");
    ck_assert_error(attn_cross_entropy(tape, matrix_23, NULL),
                    "attn_cross_entropy: labels is NULL");
    catch_errors();
    ck_assert(isnan(attn_accuracy(NULL, labels)));
    ck_assert_str_eq(caught.last, "attn_accuracy: logits is NULL");
}
END_TEST

START_TEST(operations_refuse_wrong_shapes) {
    ck_assert_error(attn_layer_norm(tape, batch_234, row_3, row_3, 1),
                    "attn_layer_norm: weight (3) and bias (3) do not fit "
                    "rows of (2, 3, 4)");
    ck_assert_error(attn_layer_norm(tape, number_1, row_3, row_3, 1),
                    "attn_layer_norm: weight (3) and bias (3) do not fit "
                    "rows of ()");
    ck_assert_error(attn_learned_positions(tape, matrix_23, 3),
                    "attn_learned_positions: 3 positions from a table of "
                    "(2, 3)");
    ck_assert_error(attn_learned_positions(tape, matrix_23, 0),
                    "attn_learned_positions: 0 positions from a table of "
                    "(2, 3)");
    ck_assert_error(attn_sinusoidal_positions(memory, 0, 4, 2),
                    "attn_sinusoidal_positions: a size is 0: (0, 4)");
    ck_assert_error(attn_rotary(tape, row_3, 1, 0, 2),
                    "attn_rotary: (3) is not (T, E) or (B, T, E)");
    ck_assert_error(attn_rotary(tape, matrix_23, 1, 0, 2),
                    "attn_rotary: the columns of (2, 3) are not 1 heads of "
                    "even width");
    ck_assert_error(attn_rotary(tape, batch_234, 0, 0, 2),
                    "attn_rotary: the columns of (2, 3, 4) are not 0 heads "
                    "of even width");
    ck_assert_error(attn_relative_bias(tape, batch_234, 1, 1),
                    "attn_relative_bias: (2, 3, 4) is not (heads, 2 reach + "
                    "1)");
    ck_assert_error(attn_relative_bias(tape, matrix_23, 0, 1),
                    "attn_relative_bias: a size is 0: (2, 0, 1)");
    ck_assert_error(attn_split_heads(tape, batch_234, 3),
                    "attn_split_heads: (2, 3, 4) is not (B, T, E) with E "
                    "for 3 heads");
    ck_assert_error(attn_merge_heads(tape, batch_234),
                    "attn_merge_heads: (2, 3, 4) is not (B, heads, T, d)");
    ck_assert_error(attn_mean_heads(tape, batch_234),
                    "attn_mean_heads: (2, 3, 4) is not (B, heads, T, T')");
    ck_assert_error(attn_last_position(tape, matrix_23),
                    "attn_last_position: (2, 3) is not (batch, positions, "
                    "width)");
}
END_TEST

START_TEST(operations_refuse_wrong_numbers) {
    const size_t labels[2] = {2, 3};
    ck_assert_error(attn_cross_entropy(tape, matrix_23, labels),
                    "attn_cross_entropy: label 3 of row 1 is not below 3, "
                    "the classes");
    ck_assert_error(attn_cross_entropy(tape, number_1, labels),
                    "attn_cross_entropy: a single number is no row of "
                    "logits");
    catch_errors();
    ck_assert(isnan(attn_accuracy(matrix_23, labels)));
    ck_assert_int_eq(caught.count, 1);
    ck_assert_error(attn_layer_norm(tape, matrix_23, row_3, row_3, 0),
                    "attn_layer_norm: epsilon is 0, not above 0");
    ck_assert_error(attn_layer_norm(tape, matrix_23, row_3, row_3, NAN),
                    "attn_layer_norm: epsilon is nan, not above 0");
    ck_assert_error(attn_dropout(tape, row_3, 1, &generator),
                    "attn_dropout: the probability 1 is not in [0, 1)");
    ck_assert_error(attn_dropout(tape, row_3, -0.5, NULL),
                    "attn_dropout: the probability -0.5 is not in [0, 1)");
    ck_assert_error(attn_dropout(tape, row_3, (double)NAN, NULL),
                    "attn_dropout: the probability nan is not in [0, 1)");
    ck_assert_error(attn_sinusoidal_positions(memory, 2, 4, 0),
                    "attn_sinusoidal_positions: the base 0 is not above 0");
    ck_assert_error(attn_rotary(tape, batch_234, 1, 0, -1),
                    "attn_rotary: the base -1 is not above 0");
}
END_TEST

/* Whatever fails, the parameters and the generator stay as they were. */
static void check_nothing_new(size_t length, size_t count) {
    attn_torch_generator fresh;
    attn_torch_seed(&fresh, 1);
    ck_assert_uint_eq(attn_parameters_length(parameters), length);
    ck_assert_uint_eq(attn_parameters_count(parameters), count);
    ck_assert_uint_eq(generator.used, fresh.used);
    ck_assert_int_eq(
        memcmp(generator.state, fresh.state, sizeof fresh.state), 0);
}

START_TEST(layers_refuse_null) {
    attn_linear_layer linear;
    attn_embedding_layer embedding;
    attn_layer_norm_layer norm;
    attn_feed_forward_layer forward;
    attn_multi_head_layer heads;
    ck_assert_error(
        attn_linear_new(NULL, parameters, "a", &generator, 1, 1, true),
        "attn_linear_new: layer is NULL");
    ck_assert_error(
        attn_linear_new(&linear, NULL, "a", &generator, 1, 1, true),
        "attn_linear_new: parameters is NULL");
    ck_assert_error(
        attn_linear_new(&linear, parameters, NULL, &generator, 1, 1, true),
        "attn_linear_new: name is NULL");
    ck_assert_error(
        attn_linear_new(&linear, parameters, "a", NULL, 1, 1, true),
        "attn_linear_new: generator is NULL");
    ck_assert_error(attn_embedding_new(&embedding, NULL, "a", &generator, 1,
                                       1),
                    "attn_embedding_new: parameters is NULL");
    ck_assert_error(attn_layer_norm_new(&norm, parameters, NULL, 1),
                    "attn_layer_norm_new: name is NULL");
    ck_assert_error(attn_feed_forward_new(&forward, parameters, "a",
                                          &generator, 1, 1, NULL),
                    "attn_feed_forward_new: activation is NULL");
    ck_assert_error(attn_multi_head_new(&heads, parameters, "a", NULL, 1, 1,
                                        true),
                    "attn_multi_head_new: generator is NULL");
    ck_assert_error(attn_linear_apply(tape, NULL, row_3),
                    "attn_linear_apply: layer is NULL");
    ck_assert_error(attn_embedding_apply(tape, NULL, NULL, 0, NULL),
                    "attn_embedding_apply: layer is NULL");
    ck_assert_error(attn_layer_norm_apply(tape, NULL, row_3),
                    "attn_layer_norm_apply: layer is NULL");
    ck_assert_error(attn_feed_forward_apply(tape, NULL, row_3),
                    "attn_feed_forward_apply: layer is NULL");
    ck_assert_error(attn_multi_head_apply(tape, NULL, row_3, row_3, row_3,
                                          NULL),
                    "attn_multi_head_apply: layer is NULL");
    check_nothing_new(0, 0);
}
END_TEST

START_TEST(layers_are_made_whole_or_not_at_all) {
    attn_linear_layer linear = {NULL, NULL};
    attn_feed_forward_layer forward;
    attn_multi_head_layer heads;
    ck_assert_ptr_nonnull(
        attn_parameters_add(parameters, "a.bias", ATTN_SHAPE(7)));
    ck_assert_error(
        attn_linear_new(&linear, parameters, "a", &generator, 2, 3, true),
        "attn_parameters_add: the name \"a.bias\" is taken");
    ck_assert_ptr_null(linear.weight);
    check_nothing_new(1, 7);
    ck_assert_ptr_nonnull(
        attn_parameters_add(parameters, "f.2.weight", ATTN_SHAPE(1)));
    ck_assert_error(attn_feed_forward_new(&forward, parameters, "f",
                                          &generator, 2, 3, attn_relu),
                    "attn_parameters_add: the name \"f.2.weight\" is taken");
    check_nothing_new(2, 8);
    ck_assert_error(
        attn_linear_new(&linear, parameters, "b", &generator, 0, 3, true),
        "attn_parameters_add: a size is 0: (3, 0)");
    ck_assert_error(attn_multi_head_new(&heads, parameters, "m", &generator,
                                        6, 4, true),
                    "attn_multi_head_new: 4 heads do not divide a width of "
                    "6");
    ck_assert_error(attn_multi_head_new(&heads, parameters, "m", &generator,
                                        6, 0, true),
                    "attn_multi_head_new: 0 heads do not divide a width of "
                    "6");
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_error(
        attn_linear_new(&linear, parameters, name, &generator, 1, 1, true),
        "attn_linear_new: a name of 306 bytes is too long");
    ck_assert_error(attn_feed_forward_new(&forward, parameters, name,
                                          &generator, 1, 1, attn_relu),
                    "attn_feed_forward_new: a name of 301 bytes is too "
                    "long");
    check_nothing_new(2, 8);
}
END_TEST

START_TEST(multi_head_attention_refuses) {
    attn_multi_head_layer layer;
    ck_assert(attn_multi_head_new(&layer, parameters, "m", &generator, 4, 2,
                                  true));
    const attn_tensor *x = batch_234;
    ck_assert_error(
        attn_multi_head_apply(tape, &layer, matrix_23, x, x, NULL),
        "attn_multi_head_apply: (2, 3) is not (B, T, E)");
    const attn_tensor *wide = attn_tensor_new(memory, ATTN_SHAPE(2, 3, 5));
    ck_assert_error(attn_multi_head_apply(tape, &layer, x, wide, x, NULL),
                    "attn_linear: a weight of (4, 4) does not fit an x of (2, 3, "
                    "5)");
    const attn_multi_head_options with_bias = {.bias = row_3};
    ck_assert_ptr_nonnull(
        attn_multi_head_apply(tape, &layer, x, x, x, &with_bias));
    const attn_multi_head_options bad_bias = {.bias = matrix_23};
    ck_assert_error(
        attn_multi_head_apply(tape, &layer, x, x, x, &bad_bias),
        "attn_add: the shapes do not match: (2, 2, 3, 3) + (2, 3)");
    const attn_multi_head_options sure = {.dropout = 1,
                                          .generator = &generator};
    ck_assert_error(attn_multi_head_apply(tape, &layer, x, x, x, &sure),
                    "attn_dropout: the probability 1 is not in [0, 1)");
    const attn_multi_head_options bad_mask = {
        .mask = attn_mask_causal(memory, 2, 3)};
    catch_errors();
    ck_assert_ptr_null(
        attn_multi_head_apply(tape, &layer, x, x, x, &bad_mask));
    ck_assert_int_eq(caught.count, 1);
}
END_TEST

/* ---- Memory that runs out ------------------------------------------------ */

/* A number of floats that leaves a block of the arena all but full, so
   that each piece of memory needs a block of its own. */
enum { WIDE = 20000 };

static const size_t some_labels[2] = {0, 1};

static attn_tensor *operation(size_t index, attn_tape *t,
                              const attn_tensor *x, const attn_tensor *w) {
    switch (index) {
    case 0:
        return attn_tanh(t, x);
    case 1:
        return attn_layer_norm(t, x, w, w, 1);
    case 2:
        return attn_dropout(t, x, 0.5, &generator);
    case 3:
        return attn_rotary(t, x, 1, 0, 2);
    case 4:
        return attn_cross_entropy(t, x, some_labels);
    case 5:
        return attn_sinusoidal_positions(attn_tape_arena(t), 2, WIDE, 2);
    default:
        return NULL;
    }
}

/* With no, one, two ... blocks: NULL and one error until there is enough,
   and it is the same tape that goes on. */
START_TEST(operations_survive_without_memory) {
    const attn_tensor *x = attn_parameter_new(memory, ATTN_SHAPE(2, WIDE));
    const attn_tensor *w = attn_parameter_new(memory, ATTN_SHAPE(WIDE));
    for (size_t i = 0; i < 6; i++) {
        attn_tape *fresh = attn_tape_new();
        long blocks = 0;
        for (bool done = false; !done; blocks++) {
            ck_assert_int_lt(blocks, 12);
            catch_errors();
            allocations_left = blocks;
            done = operation(i, fresh, x, w) != NULL;
            allocations_left = -1;
            ck_assert_int_eq(caught.count, done ? 0 : 1);
        }
        ck_assert_int_gt(blocks, 1);
        attn_tape_free(fresh);
    }
}
END_TEST

START_TEST(layers_survive_without_memory) {
    attn_linear_layer linear;
    attn_feed_forward_layer forward;
    attn_multi_head_layer heads;
    attn_lstm_layer lstm;
    long blocks = 0;
    for (size_t done = 0; done < 4; blocks++) {
        ck_assert_int_lt(blocks, 40);
        catch_errors();
        const size_t length = attn_parameters_length(parameters);
        const attn_torch_generator before = generator;
        allocations_left = blocks % 8;
        bool made = false;
        if (done == 0)
            made = attn_linear_new(&linear, parameters, "l", &generator,
                                   WIDE, 2, true);
        else if (done == 1)
            made = attn_feed_forward_new(&forward, parameters, "f",
                                         &generator, 2, WIDE, attn_relu);
        else if (done == 2)
            made = attn_multi_head_new(&heads, parameters, "m", &generator,
                                       200, 2, true);
        else
            made = attn_lstm_new(&lstm, parameters, "r", &generator, WIDE,
                                 2);
        allocations_left = -1;
        ck_assert_int_eq(caught.count, made ? 0 : 1);
        if (!made) {
            ck_assert_uint_eq(attn_parameters_length(parameters), length);
            ck_assert_int_eq(memcmp(&before, &generator, sizeof before), 0);
        } else {
            done++;
            blocks = -1;
        }
    }
}
END_TEST

/* ---- The suite ----------------------------------------------------------- */

static Suite *make_suite(void) {
    Suite *suite = suite_create("layers");
    TCase *golden_case = tcase_create("golden");
    tcase_add_checked_fixture(golden_case, open_numbers, close_numbers);
    tcase_add_test(golden_case, functions_agree_with_pytorch);
    tcase_add_test(golden_case, layer_norm_agrees_with_pytorch);
    tcase_add_test(golden_case, dropout_draws_as_pytorch);
    tcase_add_test(golden_case, dropout_does_nothing_in_use);
    tcase_add_test(golden_case, sinusoids_agree);
    tcase_add_test(golden_case, rotary_agrees_with_pytorch);
    tcase_add_test(golden_case, relative_bias_agrees_with_pytorch);
    tcase_add_test(golden_case, learned_positions_are_a_view);
    tcase_add_test(golden_case, heads_are_moved_exactly);
    tcase_add_test(golden_case, cross_entropy_agrees_with_pytorch);
    tcase_add_test(golden_case, tied_embeddings_agree_with_pytorch);
    tcase_add_test(golden_case, first_values_are_pytorchs);
    tcase_add_test(golden_case, layers_are_named_as_pytorchs);
    tcase_add_test(golden_case, feed_forward_agrees_with_pytorch);
    tcase_add_test(golden_case, multi_head_attention_agrees_with_pytorch);
    tcase_add_test(golden_case, multi_head_attention_turns);
    suite_add_tcase(suite, golden_case);
    TCase *truth = tcase_create("truth");
    tcase_add_test(truth, functions_are_near_the_truth);
    tcase_add_test(truth, functions_pass_on_what_is_no_number);
    tcase_set_timeout(truth, 60);
    suite_add_tcase(suite, truth);
    TCase *mistakes = tcase_create("mistakes");
    tcase_add_checked_fixture(mistakes, set_up_mistakes, tear_down_mistakes);
    tcase_add_test(mistakes, operations_refuse_null);
    tcase_add_test(mistakes, operations_refuse_wrong_shapes);
    tcase_add_test(mistakes, operations_refuse_wrong_numbers);
    tcase_add_test(mistakes, layers_refuse_null);
    tcase_add_test(mistakes, layers_are_made_whole_or_not_at_all);
    tcase_add_test(mistakes, multi_head_attention_refuses);
    tcase_add_test(mistakes, operations_survive_without_memory);
    tcase_add_test(mistakes, layers_survive_without_memory);
    suite_add_tcase(suite, mistakes);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
