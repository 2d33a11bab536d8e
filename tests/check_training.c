/* Training: parameters, optimisers, clipping, schedules, loaders and the
   flushing of denormals, against PyTorch's numbers where it has them. */
/* link: -Wl,--wrap=malloc,--wrap=calloc */
/* link: -Wl,--wrap=realloc,--wrap=aligned_alloc */
#include "check_support.h"
#include "scarcity.h"

#include <float.h>
#include <stdint.h>

#if defined __FMA__ || defined __aarch64__
/* The same operations in the same order: the same bits. */
#define OPTIMISER_TOLERANCE 0.0
#else
/* PyTorch rounds once where this processor must round twice; a step is
   small beside the number it changes, so its last bits vanish there. */
#define OPTIMISER_TOLERANCE 2e-6
#endif

static golden numbers;

static void open_numbers(void) {
    numbers = golden_read("tests/golden/training.golden");
}

static void close_numbers(void) {
    golden_free(&numbers);
}

static void fill(float *to, const attn_tensor *from) {
    memcpy(to, from->value, attn_tensor_size(from) * sizeof(float));
}

static bool under_valgrind(void) {
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

/* ---- Parameters ---- */

START_TEST(parameters_are_kept_in_order) {
    attn_parameters *p = attn_parameters_new();
    ck_assert_uint_eq(attn_parameters_length(p), 0);
    ck_assert_uint_eq(attn_parameters_count(p), 0);
    attn_tensor *tensors[100];
    char name[16];
    for (size_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "layer%zu.bias", i);
        tensors[i] = attn_parameters_add(p, name, ATTN_SHAPE(i + 1, 2));
        ck_assert_ptr_nonnull(tensors[i]);
        for (size_t j = 0; j < 2 * (i + 1); j++) {
            ck_assert(tensors[i]->value[j] == 0.0f);
            ck_assert(tensors[i]->gradient[j] == 0.0f);
            tensors[i]->gradient[j] = 1.0f;
        }
    }
    memset(name, 'x', sizeof name); /* names are copied */
    ck_assert_uint_eq(attn_parameters_length(p), 100);
    ck_assert_uint_eq(attn_parameters_count(p), 100 * 101);
    attn_parameters_clear_gradients(p);
    for (size_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "layer%zu.bias", i);
        ck_assert_ptr_eq(attn_parameters_at(p, i), tensors[i]);
        ck_assert_ptr_eq(attn_parameters_find(p, name), tensors[i]);
        ck_assert_str_eq(attn_parameters_name(p, i), name);
        for (size_t j = 0; j < 2 * (i + 1); j++)
            ck_assert(tensors[i]->gradient[j] == 0.0f);
    }
    ck_assert_ptr_null(attn_parameters_find(p, "layer100.bias"));
    attn_parameters_free(p);
    attn_parameters_free(NULL);
}
END_TEST

START_TEST(parameters_refuse_what_is_wrong) {
    attn_parameters *p = attn_parameters_new();
    attn_parameters_add(p, "weight", ATTN_SHAPE(2, 3));
    ck_assert_error(attn_parameters_add(NULL, "a", ATTN_SHAPE(1)),
                    "attn_parameters_add: parameters is NULL");
    ck_assert_error(attn_parameters_add(p, NULL, ATTN_SHAPE(1)),
                    "attn_parameters_add: name is NULL");
    ck_assert_error(attn_parameters_add(p, "", ATTN_SHAPE(1)),
                    "attn_parameters_add: a parameter needs a name");
    ck_assert_error(attn_parameters_add(p, "weight", ATTN_SHAPE(1)),
                    "attn_parameters_add: the name \"weight\" is taken");
    ck_assert_error(
        attn_parameters_add(p, "__metadata__", ATTN_SHAPE(1)),
        "attn_parameters_add: the name \"__metadata__\" is reserved");
    catch_errors();
    ck_assert_ptr_null(attn_parameters_add(p, "b", ATTN_SHAPE(3, 0)));
    ck_assert_int_eq(caught.count, 1);
    ck_assert_error(attn_parameters_at(p, 1),
                    "attn_parameters_at: there is no parameter 1: there "
                    "are 1");
    ck_assert_error(attn_parameters_name(p, 7),
                    "attn_parameters_name: there is no parameter 7: there "
                    "are 1");
    ck_assert_error(attn_parameters_at(NULL, 0),
                    "attn_parameters_at: parameters is NULL");
    ck_assert_error(attn_parameters_name(NULL, 0),
                    "attn_parameters_name: parameters is NULL");
    ck_assert_error(attn_parameters_find(p, NULL),
                    "attn_parameters_find: name is NULL");
    ck_assert_error(attn_parameters_length(NULL),
                    "attn_parameters_length: parameters is NULL");
    ck_assert_error(attn_parameters_count(NULL),
                    "attn_parameters_count: parameters is NULL");
    /* Nothing of all this is left behind. */
    ck_assert_uint_eq(attn_parameters_length(p), 1);
    ck_assert_uint_eq(attn_parameters_count(p), 6);
    attn_parameters_free(p);
}
END_TEST

/* ---- Optimisers ---- */

typedef attn_optimizer *make_optimizer(attn_parameters *,
                                       const attn_adam_options *);

static void check_optimizer(const char *name, make_optimizer *make,
                            const attn_adam_options *options) {
    attn_parameters *p = attn_parameters_new();
    attn_tensor *tensors[2];
    for (size_t i = 0; i < 2; i++) {
        const attn_tensor *start =
            golden_tensor(&numbers, "optimiser/start/%zu", i);
        tensors[i] = attn_parameters_add(p, i == 0 ? "a" : "b", start->rank,
                                         start->shape);
        fill(tensors[i]->value, start);
    }
    attn_optimizer *optimizer = make(p, options);
    ck_assert_ptr_nonnull(optimizer);
    for (size_t t = 0; t < 12; t++) {
        for (size_t i = 0; i < 2; i++)
            fill(tensors[i]->gradient,
                 golden_tensor(&numbers, "optimiser/gradient/%zu/%zu", t,
                               i));
        ck_assert(attn_optimizer_step(optimizer, attn_warm_up(t, 5, 0.01)));
        for (size_t i = 0; i < 2; i++)
            check_values(
                tensors[i],
                golden_tensor(&numbers, "optimiser/%s/%zu/%zu", name, t, i),
                OPTIMISER_TOLERANCE, name);
    }
    attn_optimizer_free(optimizer);
    attn_parameters_free(p);
}

START_TEST(optimisers_step_as_pytorch) {
    check_optimizer("adam", attn_adam_new, NULL);
    check_optimizer(
        "adam-decay", attn_adam_new,
        &(attn_adam_options){ATTN_ADAM_DEFAULTS, .weight_decay = 0.1});
    check_optimizer("adamw", attn_adamw_new, NULL);
    check_optimizer("adamw-own", attn_adamw_new,
                    &(attn_adam_options){0.8, 0.95, 1e-4, 0.3});
    check_optimizer("adam-zeros", attn_adam_new,
                    &(attn_adam_options){.epsilon = 1e-3});
}
END_TEST

/* The formula's one case that can be worked out in the head: the first
   step moves every number by the rate, whatever its gradient is. */
START_TEST(the_first_step_is_the_rate) {
    attn_parameters *p = attn_parameters_new();
    attn_tensor *x = attn_parameters_add(p, "x", ATTN_SHAPE(3));
    x->gradient[0] = 1e-3f;
    x->gradient[1] = -1e3f;
    attn_optimizer *optimizer = attn_adam_new(p, NULL);
    ck_assert(attn_optimizer_step(optimizer, 0.5));
    ck_assert_float_eq_tol(x->value[0], -0.5f, 1e-5f);
    ck_assert_float_eq_tol(x->value[1], 0.5f, 1e-5f);
    ck_assert(x->value[2] == 0.0f);
    attn_optimizer_free(optimizer);
    attn_parameters_free(p);
}
END_TEST

START_TEST(an_optimizer_keeps_to_what_it_was_made_for) {
    attn_parameters *p = attn_parameters_new();
    attn_tensor *x = attn_parameters_add(p, "x", ATTN_SHAPE(2));
    attn_optimizer *optimizer = attn_adam_new(p, NULL);
    attn_tensor *late = attn_parameters_add(p, "late", ATTN_SHAPE(2));
    x->gradient[0] = late->gradient[0] = 1.0f;
    ck_assert(attn_optimizer_step(optimizer, 0.1));
    ck_assert(x->value[0] < 0.0f);
    ck_assert(late->value[0] == 0.0f);
    attn_optimizer_free(optimizer);
    attn_optimizer_free(NULL);
    attn_parameters_free(p);
}
END_TEST

START_TEST(optimisers_refuse_what_is_wrong) {
    attn_parameters *p = attn_parameters_new();
    attn_tensor *x = attn_parameters_add(p, "x", ATTN_SHAPE(1));
    x->gradient[0] = 1.0f;
    ck_assert_error(attn_adam_new(NULL, NULL),
                    "attn_adam_new: parameters is NULL");
    ck_assert_error(attn_adamw_new(NULL, NULL),
                    "attn_adamw_new: parameters is NULL");
    ck_assert_error(attn_adam_new(p, &(attn_adam_options){.beta1 = 1}),
                    "attn_adam_new: beta1 is 1, not in [0, 1)");
    ck_assert_error(attn_adamw_new(p, &(attn_adam_options){.beta2 = -1}),
                    "attn_adamw_new: beta2 is -1, not in [0, 1)");
    ck_assert_error(attn_adam_new(p, &(attn_adam_options){.epsilon = NAN}),
                    "attn_adam_new: epsilon is nan, not at least 0");
    ck_assert_error(
        attn_adamw_new(p, &(attn_adam_options){.weight_decay = -0.5}),
        "attn_adamw_new: weight_decay is -0.5, not at least 0");
    attn_optimizer *optimizer = attn_adam_new(p, NULL);
    ck_assert_error(attn_optimizer_step(NULL, 0.1),
                    "attn_optimizer_step: optimizer is NULL");
    ck_assert_error(attn_optimizer_step(optimizer, -1.0),
                    "attn_optimizer_step: learning_rate is -1, not at "
                    "least 0 and finite");
    ck_assert_error(attn_optimizer_step(optimizer, (double)NAN),
                    "attn_optimizer_step: learning_rate is nan, not at "
                    "least 0 and finite");
    ck_assert_error(attn_optimizer_step(optimizer, (double)INFINITY),
                    "attn_optimizer_step: learning_rate is inf, not at "
                    "least 0 and finite");
    ck_assert(x->value[0] == 0.0f);
    /* The refused steps did not count: this is still the first. */
    ck_assert(attn_optimizer_step(optimizer, 0.5));
    ck_assert_float_eq_tol(x->value[0], -0.5f, 1e-6f);
    attn_optimizer_free(optimizer);
    attn_parameters_free(p);
}
END_TEST

/* ---- Clipping and warm-up ---- */

START_TEST(clipping_is_pytorchs) {
    static const char *const names[] = {"short", "long", "longer", "zero"};
    for (size_t n = 0; n < 4; n++) {
        attn_parameters *p = attn_parameters_new();
        for (size_t i = 0; i < 3; i++) {
            const attn_tensor *before =
                golden_tensor(&numbers, "clip/%s/before/%zu", names[n], i);
            attn_tensor *x =
                attn_parameters_add(p,
                                    i == 0   ? "a"
                                    : i == 1 ? "b"
                                             : "c",
                                    before->rank, before->shape);
            fill(x->gradient, before);
        }
        float norm = attn_clip_gradients(p, 1.0f);
        float expected =
            golden_tensor(&numbers, "clip/%s/norm", names[n])->value[0];
        /* PyTorch sums squares in float32: some 1e-7 of the sum. */
        ck_assert_float_le(fabsf(norm - expected), 2e-7f * expected);
        for (size_t i = 0; i < 3; i++)
            check_gradient(
                attn_parameters_at(p, i),
                golden_tensor(&numbers, "clip/%s/after/%zu", names[n], i),
                2e-7, names[n]);
        attn_parameters_free(p);
    }
}
END_TEST

START_TEST(clipping_keeps_short_gradients_and_spreads_nan) {
    attn_parameters *p = attn_parameters_new();
    attn_tensor *x = attn_parameters_add(p, "x", ATTN_SHAPE(2));
    x->gradient[0] = 0.3f;
    x->gradient[1] = -0.4f;
    ck_assert_float_eq_tol(attn_clip_gradients(p, 0.51f), 0.5f, 1e-6f);
    ck_assert(x->gradient[0] == 0.3f && x->gradient[1] == -0.4f);
    ck_assert_float_eq_tol(attn_clip_gradients(p, 0.0f), 0.5f, 1e-6f);
    ck_assert(x->gradient[0] == 0.0f);
    x->gradient[0] = FLT_MAX; /* squares beyond float, not beyond double */
    x->gradient[1] = 0.0f;
    ck_assert(attn_clip_gradients(p, 2.0f) == FLT_MAX);
    ck_assert_float_eq_tol(x->gradient[0], 2.0f, 1e-6f);
    x->gradient[0] = INFINITY;
    ck_assert(isinf(attn_clip_gradients(p, 1.0f)));
    ck_assert(isnan(x->gradient[0]));
    ck_assert(isnan(attn_clip_gradients(p, 1.0f)));
    ck_assert(isnan(x->gradient[1]));
    catch_errors();
    ck_assert(isnan(attn_clip_gradients(p, -1.0f)));
    ck_assert_str_eq(caught.last, "attn_clip_gradients: max_norm is -1, "
                                  "not at least 0");
    ck_assert(isnan(attn_clip_gradients(NULL, 1.0f)));
    ck_assert_str_eq(caught.last,
                     "attn_clip_gradients: parameters is NULL");
    attn_parameters_free(p);
}
END_TEST

START_TEST(the_warm_up_climbs_and_stays) {
    ck_assert(attn_warm_up(0, 0, 0.3) == 0.3);
    ck_assert(attn_warm_up(0, 1, 0.3) == 0.3);
    ck_assert(attn_warm_up(0, 4, 0.4) == 0.1);
    ck_assert(attn_warm_up(1, 4, 0.4) == 0.2);
    ck_assert(attn_warm_up(3, 4, 0.4) == 0.4);
    ck_assert(attn_warm_up(4, 4, 0.4) == 0.4);
    ck_assert(attn_warm_up(1000000, 4, 0.4) == 0.4);
}
END_TEST

/* ---- Loaders ---- */

/* Three epochs in the order expected, in batches of that size. Draws a
   dropout mask between two batches if masks are given. */
static void check_loader(attn_loader *loader, size_t batch_size,
                         const attn_tensor *order,
                         attn_torch_generator *generator,
                         const attn_tensor *masks) {
    size_t count = attn_tensor_size(order) / 3, place = 0, drawn = 0;
    for (size_t epoch = 0; epoch < 3; epoch++) {
        const size_t *batch;
        size_t size;
        while ((batch = attn_loader_next(loader, &size)) != NULL) {
            size_t left = (epoch + 1) * count - place;
            ck_assert_uint_eq(size, left < batch_size ? left : batch_size);
            for (size_t i = 0; i < size; i++)
                ck_assert_uint_eq(batch[i], (size_t)order->value[place++]);
            /* Dropout keeps where a uniform double is below 1 - p. */
            for (size_t i = 0; masks != NULL && i < masks->shape[1]; i++)
                ck_assert_int_eq(attn_torch_uniform_double(generator) <
                                     0.75,
                                 masks->value[drawn++] != 0.0f);
        }
        ck_assert_uint_eq(size, 0);
        ck_assert_uint_eq(place, (epoch + 1) * count);
    }
}

START_TEST(loaders_shuffle_as_pytorch) {
    static const struct {
        const char *name;
        size_t count;
    } cases[] = {{"plain", 37}, {"even", 24}, {"dropout", 37}};
    for (size_t i = 0; i < 3; i++) {
        attn_torch_generator generator;
        attn_torch_seed(&generator, 3);
        attn_loader *loader =
            attn_loader_new(cases[i].count, 8, &generator);
        const attn_tensor *masks =
            i == 2 ? golden_tensor(&numbers, "loader/dropout/masks") : NULL;
        check_loader(loader, 8,
                     golden_tensor(&numbers, "loader/%s", cases[i].name),
                     &generator, masks);
        attn_loader_free(loader);
    }
    for (uint64_t seed = 0; seed <= 5; seed += 5) {
        attn_loader *loader = attn_loader_seeded(2000, 64, seed);
        check_loader(loader, 64,
                     golden_tensor(&numbers, "loader/seeded/%d", (int)seed),
                     NULL, NULL);
        attn_loader_free(loader);
    }
}
END_TEST

START_TEST(a_loader_draws_when_it_is_asked) {
    attn_torch_generator used, untouched;
    attn_torch_seed(&used, 9);
    attn_torch_seed(&untouched, 9);
    attn_loader *loader = attn_loader_new(3, 2, &used);
    ck_assert_uint_eq(attn_torch_u32(&used), attn_torch_u32(&untouched));
    size_t size;
    attn_loader_next(loader, &size);
    attn_torch_u64(&untouched);
    attn_torch_u64(&untouched);
    ck_assert_uint_eq(attn_torch_u32(&used), attn_torch_u32(&untouched));
    attn_loader_free(loader);
}
END_TEST

START_TEST(a_batch_may_be_larger_than_all_there_is) {
    attn_loader *loader = attn_loader_seeded(1, 64, 0);
    size_t size;
    for (size_t epoch = 0; epoch < 2; epoch++) {
        const size_t *batch = attn_loader_next(loader, &size);
        ck_assert_uint_eq(size, 1);
        ck_assert_uint_eq(batch[0], 0);
        ck_assert_ptr_null(attn_loader_next(loader, &size));
    }
    attn_loader_free(loader);
}
END_TEST

START_TEST(loaders_refuse_what_is_wrong) {
    attn_torch_generator generator;
    attn_torch_seed(&generator, 0);
    ck_assert_error(attn_loader_new(3, 2, NULL),
                    "attn_loader_new: shared is NULL");
    ck_assert_error(attn_loader_new(0, 2, &generator),
                    "attn_loader_new: 0 examples in batches of 2");
    ck_assert_error(attn_loader_seeded(3, 0, 0),
                    "attn_loader_seeded: 3 examples in batches of 0");
    ck_assert_error(attn_loader_seeded(SIZE_MAX, 1, 0),
                    "attn_loader_seeded: no memory for the order of "
                    "18446744073709551615 examples");
    size_t size;
    ck_assert_error(attn_loader_next(NULL, &size),
                    "attn_loader_next: loader is NULL");
    attn_loader *loader = attn_loader_seeded(1, 1, 0);
    ck_assert_error(attn_loader_next(loader, NULL),
                    "attn_loader_next: size is NULL");
    attn_loader_free(loader);
    attn_loader_free(NULL);
}
END_TEST

/* ---- Denormals ---- */

/* Products that only flushing makes zero: one that is denormal, and one
   of a denormal. volatile: the compiler must not multiply them itself. */
static bool gives_zero(float a, float b) {
    volatile float left = a, right = b;
    volatile float product = left * right;
    return product == 0.0f;
}

static int threads_that_flush(void) {
    int flushing = 0, threads = 0;
#pragma omp parallel reduction(+ : flushing, threads)
    {
        threads += 1;
        flushing +=
            gives_zero(FLT_MIN, 0.25f) && gives_zero(FLT_MIN / 4, 0x1p100f);
    }
    if (flushing == threads)
        return 1;
    return flushing == 0 ? 0 : -1;
}

START_TEST(denormals_are_flushed_in_every_thread) {
    ck_assert(!attn_flush_denormals(false));
    ck_assert_int_eq(threads_that_flush(), 0);
    ck_assert(!attn_flush_denormals(true));
    /* valgrind's processor has no such switch. */
    if (!under_valgrind()) {
        ck_assert_int_eq(threads_that_flush(), 1);
        ck_assert(attn_flush_denormals(true));
        ck_assert(attn_flush_denormals(false));
    }
    ck_assert_int_eq(threads_that_flush(), 0);
    ck_assert(!attn_flush_denormals(false));
    /* The smallest ordinary number is left alone. */
    attn_flush_denormals(true);
    ck_assert(!gives_zero(FLT_MIN * 2, 0.5f));
    attn_flush_denormals(false);
}
END_TEST

/* ---- Memory that runs out ---- */

/* A list of many parameters; false if one of them could not be added,
   and then the list is as it was before that one. */
static bool add_many(attn_parameters *p) {
    char name[16];
    for (size_t i = 0; i < 40; i++) {
        size_t length = attn_parameters_length(p);
        size_t count = attn_parameters_count(p);
        snprintf(name, sizeof name, "tensor %d", (int)i);
        if (attn_parameters_add(p, name, ATTN_SHAPE(100, i + 1)) != NULL)
            continue;
        allocations_left = -1; /* Check allocates too */
        ck_assert_uint_eq(attn_parameters_length(p), length);
        ck_assert_uint_eq(attn_parameters_count(p), count);
        ck_assert_ptr_null(attn_parameters_find(p, name));
        return false;
    }
    return true;
}

/* Makes one of everything; true if there was memory for all. */
static bool make_everything(void) {
    attn_torch_generator generator;
    attn_torch_seed(&generator, 0);
    attn_parameters *p = attn_parameters_new();
    bool made = p != NULL && add_many(p);
    attn_optimizer *optimizer = made ? attn_adamw_new(p, NULL) : NULL;
    made = made && optimizer != NULL;
    attn_loader *shared = made ? attn_loader_new(9, 2, &generator) : NULL;
    made = made && shared != NULL;
    attn_loader *seeded = made ? attn_loader_seeded(9, 2, 1) : NULL;
    made = made && seeded != NULL;
    attn_loader_free(seeded);
    attn_loader_free(shared);
    attn_optimizer_free(optimizer);
    attn_parameters_free(p);
    return made;
}

START_TEST(every_allocation_may_fail) {
    long needed = 0;
    for (bool made = false; !made; needed++) {
        catch_errors();
        allocations_left = needed;
        made = make_everything();
        allocations_left = -1;
        ck_assert_int_eq(caught.count, !made);
        ck_assert(made || strstr(caught.last, "no memory") != NULL);
    }
    ck_assert_int_gt(needed, 8);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("training");
    TCase *cases[] = {
        tcase_create("parameters"), tcase_create("optimisers"),
        tcase_create("clipping"), tcase_create("loaders"),
        tcase_create("denormals"), tcase_create("memory")};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tcase_add_unchecked_fixture(cases[i], open_numbers, close_numbers);
        tcase_set_timeout(cases[i], 60);
        suite_add_tcase(suite, cases[i]);
    }
    tcase_add_test(cases[0], parameters_are_kept_in_order);
    tcase_add_test(cases[0], parameters_refuse_what_is_wrong);
    tcase_add_test(cases[1], optimisers_step_as_pytorch);
    tcase_add_test(cases[1], the_first_step_is_the_rate);
    tcase_add_test(cases[1], an_optimizer_keeps_to_what_it_was_made_for);
    tcase_add_test(cases[1], optimisers_refuse_what_is_wrong);
    tcase_add_test(cases[2], clipping_is_pytorchs);
    tcase_add_test(cases[2],
                   clipping_keeps_short_gradients_and_spreads_nan);
    tcase_add_test(cases[2], the_warm_up_climbs_and_stays);
    tcase_add_test(cases[3], loaders_shuffle_as_pytorch);
    tcase_add_test(cases[3], a_loader_draws_when_it_is_asked);
    tcase_add_test(cases[3], a_batch_may_be_larger_than_all_there_is);
    tcase_add_test(cases[3], loaders_refuse_what_is_wrong);
    tcase_add_test(cases[4], denormals_are_flushed_in_every_thread);
    tcase_add_test(cases[5], every_allocation_may_fail);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
