/* Models in files: what attn_save writes, what attn_load reads, and all
   that it must refuse. */
/* link: -Wl,--wrap=malloc,--wrap=calloc */
/* link: -Wl,--wrap=realloc,--wrap=aligned_alloc */
#include "check_support.h"
#include "scarcity.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include <cJSON.h>

#include "models.h"

/* ---- Files ---- */

static char folder[40], path[64], draft[80];

static void make_folder(void) {
    strcpy(folder, "/tmp/check_files.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    snprintf(draft, sizeof draft, "%s.part", path);
}

static void remove_folder(void) {
    remove(path);
    remove(draft);
    ck_assert_int_eq(rmdir(folder), 0);
}

static bool exists(const char *name) {
    struct stat status;
    return stat(name, &status) == 0;
}

/* The bytes of a file, one more than there are; the caller frees them. */
static unsigned char *read_bytes(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    ck_assert_msg(file != NULL, "%s: %s", name, strerror(errno));
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size + 1);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* Some file systems are slow to write over what there is. */
static void write_bytes(const void *bytes, size_t size) {
    remove(path);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* A file with this header and so many bytes of data after it. */
static void write_parts(uint64_t claimed, const char *header,
                        size_t data_size) {
    size_t length = strlen(header), size = 8 + length + data_size;
    unsigned char *bytes = calloc(1, size);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(claimed >> (8 * i));
    memcpy(bytes + 8, header, length);
    write_bytes(bytes, size);
    free(bytes);
}

/* The model that tests/golden/files.py writes as book.safetensors, with
   the numbers it has there or with other ones. */
static attn_parameters *books_model(bool filled) {
    attn_parameters *p = attn_parameters_new();
    attn_tensor *t[4] = {
        attn_parameters_add(p, "b.weight", ATTN_SHAPE(2, 3)),
        attn_parameters_add(p, "a \"name\" – ü", ATTN_SHAPE(7)),
        attn_parameters_add(p, "scalar", 0, NULL),
        attn_parameters_add(p, "rank.4", ATTN_SHAPE(1, 2, 11, 50))};
    const float special[] = {0.0f, -0.0f, 1.5f, INFINITY,
                             -INFINITY, 0x1p-149f, 0x1.fffffep127f};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < attn_tensor_size(t[i]); j++)
            t[i]->value[j] = !filled  ? 42.0f
                             : i == 0 ? (float)j / 4
                             : i == 1 ? special[j]
                             : i == 2 ? -1.25f
                                      : (float)j;
    return p;
}

static bool same_values(const attn_parameters *a,
                        const attn_parameters *b) {
    for (size_t i = 0; i < attn_parameters_length(a); i++) {
        const attn_tensor *x = attn_parameters_at(a, i);
        const attn_tensor *y =
            attn_parameters_find(b, attn_parameters_name(a, i));
        if (y == NULL || memcmp(x->value, y->value,
                                attn_tensor_size(x) * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/* ---- Saving and loading ---- */

START_TEST(a_saved_model_has_the_peers_bytes) {
    attn_parameters *p = books_model(true);
    ck_assert(attn_save(p, path));
    ck_assert(!exists(draft));
    size_t size, expected_size;
    unsigned char *bytes = read_bytes(path, &size);
    unsigned char *expected =
        read_bytes("tests/golden/book.safetensors", &expected_size);
    ck_assert_uint_eq(size, expected_size);
    ck_assert(memcmp(bytes, expected, size) == 0);
    free(bytes);
    free(expected);
    attn_parameters_free(p);
}
END_TEST

START_TEST(a_saved_model_comes_back) {
    attn_parameters *saved = books_model(true);
    attn_parameters *loaded = books_model(false);
    uint32_t payload = 0x7fc12345; /* a NaN keeps all its bits */
    memcpy(attn_parameters_at(saved, 0)->value, &payload, sizeof payload);
    ck_assert(attn_save(saved, path));
    ck_assert(attn_load(loaded, path));
    ck_assert(same_values(loaded, saved));
    /* Saving over it leaves the file as it was until the end. */
    attn_parameters_at(saved, 2)->value[0] = 7.0f;
    ck_assert(attn_save(saved, path));
    ck_assert(attn_load(loaded, path));
    ck_assert(attn_parameters_at(loaded, 2)->value[0] == 7.0f);
    attn_parameters_free(saved);
    attn_parameters_free(loaded);
}
END_TEST

/* PyTorch's side wrote the file, names in another order than here; the
   model answers what PyTorch's answered. */
START_TEST(the_peers_model_answers_the_same) {
    positions_matter layers = {.positions = true};
    attn_parameters *p = attn_parameters_new();
    attn_torch_generator generator;
    attn_torch_seed(&generator, 1);
    ck_assert(positions_matter_make(&layers, p, &generator));
    ck_assert(attn_load(p, "tests/golden/positions-matter.safetensors"));
    attn_arena *data = attn_arena_new();
    attn_tape *tape = attn_tape_new();
    attn_tensor *logits = positions_matter_apply(
        tape, &layers, task_repeated_digit(data, 8, 8, 3), NULL);
    golden file = golden_read("tests/golden/files.golden");
    check_values(logits, golden_tensor(&file, "logits"), 1e-6, "logits");
    golden_free(&file);
    attn_tape_free(tape);
    attn_arena_free(data);
    attn_parameters_free(p);
}
END_TEST

START_TEST(a_model_without_parameters_is_a_file_too) {
    attn_parameters *p = attn_parameters_new();
    ck_assert(attn_save(p, path));
    ck_assert(attn_load(p, path));
    attn_parameters_free(p);
}
END_TEST

/* ---- What must be refused ---- */

#define F32 "\"dtype\":\"F32\","
#define A "\"a\":{" F32 "\"shape\":[2],\"data_offsets\":[0,8]}"
#define B "\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[8,12]}"

/* A header and the number of data bytes; what must be said of it. */
static const struct malformed {
    const char *header;
    size_t data_size;
    const char *complaint;
} malformed[] = {
    {"", 12, "the header of %s is not JSON from byte 0 on"},
    {" {" A "," B "}", 12, "the header of %s is not JSON from byte 0 on"},
    {"[" A "," B "]", 12, "the header of %s is not JSON from byte 0 on"},
    {"{" A "," B, 12, "the header of %s is not JSON from byte 106 on"},
    {"{" A "," B "}}", 12, "the header of %s is not JSON from byte 108 on"},
    {"{" A "," B "}\n", 12,
     "the header of %s is not JSON from byte 108 on"},
    {"{" A "," B "} x", 12,
     "the header of %s is not JSON from byte 109 on"},
    {"{\"a\\u0000\":{" F32 "\"shape\":[2],\"data_offsets\":[0,8]}," B "}",
     12, "the header of %s is not JSON from byte 0 on"},
    {"{}", 0, "%s lacks \"a\""},
    {"{" A "}", 8, "%s lacks \"b\""},
    {"{" A "," B ",\"c\":{" F32 "\"shape\":[1],\"data_offsets\":[12,16]}}",
     16, "%s: \"c\" is not in the model"},
    {"{" A "," B ",\"A\":{" F32 "\"shape\":[1],\"data_offsets\":[12,16]}}",
     16, "%s: \"A\" is not in the model"},
    {"{" A "," A "," B "}", 12, "%s: \"a\" comes twice"},
    {"{" A ",\"b\":3}", 12,
     "%s: \"b\" does not have dtype, shape and data_offsets"},
    {"{" A ",\"b\":{\"shape\":[1],\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" does not have dtype, shape and data_offsets"},
    {"{" A ",\"b\":{" F32 F32 "\"shape\":[1],\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" does not have dtype, shape and data_offsets"},
    {"{" A ",\"b\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[8,12]}}",
     12, "%s: \"b\" does not have dtype, shape and data_offsets"},
    {"{" A ",\"b\":{" F32 "\"shape\":1,\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" does not have dtype, shape and data_offsets"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":{}}}", 12,
     "%s: \"b\" does not have dtype, shape and data_offsets"},
    {"{" A
     ",\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]}}",
     16, "%s: \"b\" does not have the dtype F32"},
    {"{" A ",\"b\":{" F32 "\"shape\":[2],\"data_offsets\":[8,16]}}", 16,
     "%s: \"b\" has another shape in the model"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1,1],\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" has another shape in the model"},
    {"{" A ",\"b\":{" F32 "\"shape\":[],\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" has another shape in the model"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1.5],\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" has another shape in the model"},
    {"{" A ",\"b\":{" F32 "\"shape\":[-1],\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" has another shape in the model"},
    {"{" A ",\"b\":{" F32 "\"shape\":[\"1\"],\"data_offsets\":[8,12]}}", 12,
     "%s: \"b\" has another shape in the model"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[8]}}", 12,
     "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[8,12,16]}}", 12,
     "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[8,16]}}", 16,
     "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[12,8]}}", 12,
     "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[-4,0]}}", 12,
     "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[8.5,12.5]}}", 12,
     "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[1e300,1e300]}}",
     12, "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32
     "\"shape\":[1],\"data_offsets\":[18446744073709551612,0]}}",
     12, "%s: \"b\" has data_offsets that do not fit its shape"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
     "%s: \"b\" begins at byte 4, not 8"},
    {"{" A ",\"b\":{" F32 "\"shape\":[1],\"data_offsets\":[16,20]}}", 20,
     "%s: \"b\" begins at byte 16, not 8"},
    {"{" A ",\"b\":{" F32
     "\"shape\":[1],\"data_offsets\":[1099511627776,1099511627780]}}",
     12, "%s: \"b\" begins at byte 1099511627776, not 8"},
    {"{" A "," B "}", 11, "%s has 11 bytes of data, not 12"},
    {"{" A "," B "}", 13, "%s has 13 bytes of data, not 12"},
    {"{" A "," B "}", 0, "%s has 0 bytes of data, not 12"},
    {"{\"__metadata__\":3," A "," B "}", 12,
     "%s: \"__metadata__\" holds more than strings"},
    {"{\"__metadata__\":{\"x\":3}," A "," B "}", 12,
     "%s: \"__metadata__\" holds more than strings"},
};

static attn_parameters *two_parameters(void) {
    attn_parameters *p = attn_parameters_new();
    attn_parameters_add(p, "a", ATTN_SHAPE(2))->value[0] = 42.0f;
    attn_parameters_add(p, "b", ATTN_SHAPE(1))->value[0] = 43.0f;
    return p;
}

static void check_unchanged(const attn_parameters *p) {
    ck_assert(attn_parameters_at(p, 0)->value[0] == 42.0f);
    ck_assert(attn_parameters_at(p, 0)->value[1] == 0.0f);
    ck_assert(attn_parameters_at(p, 1)->value[0] == 43.0f);
}

START_TEST(malformed_headers_are_refused) {
    const struct malformed *m = &malformed[_i];
    attn_parameters *p = two_parameters();
    write_parts(strlen(m->header), m->header, m->data_size);
    char complaint[256], sentence[300];
    snprintf(complaint, sizeof complaint, m->complaint, path);
    snprintf(sentence, sizeof sentence, "attn_load: %s", complaint);
    ck_assert_error(attn_load(p, path), sentence);
    check_unchanged(p);
    attn_parameters_free(p);
}
END_TEST

START_TEST(well_formed_headers_are_taken) {
    static const char *const headers[] = {
        "{" A "," B "}",
        "{" B "," A "}", /* in any order */
        "{" A "," B "}     ",
        "{ " A " ,\n\t" B " }",
        "{\"__metadata__\":{}," A "," B "}",
        "{" A ",\"__metadata__\":{\"x\":\"y\",\"x\":\"z\"}," B "}",
        "{\"\\u0061\":{\"data_offsets\":[0,8],\"shape\":[2]," F32
        "\"x\":0}," B "}"};
    for (size_t i = 0; i < 6; i++) {
        attn_parameters *p = two_parameters();
        write_parts(strlen(headers[i]), headers[i], 12);
        ck_assert_msg(attn_load(p, path), "%s", headers[i]);
        ck_assert(attn_parameters_at(p, 0)->value[0] == 0.0f);
        ck_assert(attn_parameters_at(p, 1)->value[0] == 0.0f);
        attn_parameters_free(p);
    }
    /* A field that nobody knows may mean that the others are not what
       they seem. */
    attn_parameters *p = two_parameters();
    write_parts(strlen(headers[6]), headers[6], 12);
    catch_errors();
    ck_assert(!attn_load(p, path));
    ck_assert_int_eq(caught.count, 1);
    check_unchanged(p);
    attn_parameters_free(p);
}
END_TEST

START_TEST(headers_that_lie_about_their_length_are_refused) {
    static const uint64_t claims[] = {
        109, 1000, 100000001, UINT32_MAX, (uint64_t)INT64_MAX, UINT64_MAX};
    const char *header = "{" A "," B "}";
    attn_parameters *p = two_parameters();
    for (size_t i = 0; i < 6; i++) {
        write_parts(claims[i], header, i == 0 ? 0 : 12);
        char sentence[300];
        snprintf(sentence, sizeof sentence,
                 "attn_load: %s cannot have a header of %llu bytes, with "
                 "%zu bytes in all",
                 path, (unsigned long long)claims[i],
                 8 + strlen(header) + (i == 0 ? 0 : 12));
        ck_assert_error(attn_load(p, path), sentence);
    }
    /* Shorter than it is, the rest would be data. */
    for (uint64_t claim = 0; claim < strlen(header); claim++) {
        write_parts(claim, header, 12);
        catch_errors();
        ck_assert(!attn_load(p, path));
        ck_assert_int_eq(caught.count, 1);
    }
    /* Zero bytes are not JSON either. */
    write_parts(strlen(header) + 1, header, 13);
    catch_errors();
    ck_assert(!attn_load(p, path));
    check_unchanged(p);
    attn_parameters_free(p);
}
END_TEST

/* Cut off after any byte, or with any byte more: refused, and nothing
   of it is loaded. */
START_TEST(no_part_of_a_file_is_a_file) {
    size_t size;
    unsigned char *bytes =
        read_bytes("tests/golden/book.safetensors", &size);
    attn_parameters *p = books_model(false);
    attn_parameters *untouched = books_model(false);
    for (size_t part = 0; part < size; part++) {
        write_bytes(bytes, part);
        catch_errors();
        ck_assert_msg(!attn_load(p, path), "%zu bytes were taken", part);
        ck_assert_int_eq(caught.count, 1);
    }
    bytes[size] = 0;
    write_bytes(bytes, size + 1);
    catch_errors();
    ck_assert(!attn_load(p, path));
    ck_assert(same_values(p, untouched));
    write_bytes(bytes, size);
    ck_assert(attn_load(p, path));
    free(bytes);
    attn_parameters_free(p);
    attn_parameters_free(untouched);
}
END_TEST

/* Any byte of the header changed to many others, and then two at a
   time: no crash, and either all is loaded or nothing and one error. */
START_TEST(changed_bytes_do_no_harm) {
    size_t size, taken = 0, refused = 0;
    unsigned char *bytes =
        read_bytes("tests/golden/book.safetensors", &size);
    size_t header = 8 + (size_t)bytes[0] + 256 * (size_t)bytes[1];
    attn_parameters *p = books_model(false);
    attn_parameters *untouched = books_model(false);
    attn_parameters *full = books_model(true);
    attn_torch_generator generator;
    attn_torch_seed(&generator, 0);
    for (size_t trial = 0; trial < 12 * header; trial++) {
        unsigned char saved[2];
        size_t place[2];
        for (size_t i = 0; i < 2; i++) {
            place[i] = i == 0 ? trial % header
                              : attn_torch_u32(&generator) % header;
            saved[i] = bytes[place[i]];
            if (i == 0 || trial >= 6 * header)
                bytes[place[i]] = (unsigned char)attn_torch_u32(&generator);
        }
        write_bytes(bytes, size);
        catch_errors();
        bool loaded = attn_load(p, path);
        ck_assert_int_eq(caught.count, !loaded);
        ck_assert(loaded || same_values(p, untouched));
        ck_assert(!loaded || attn_parameters_at(p, 2)->value[0] != 42.0f);
        taken += loaded;
        refused += !loaded;
        bytes[place[1]] = saved[1];
        bytes[place[0]] = saved[0];
        if (loaded)
            for (size_t i = 0; i < 4; i++) {
                attn_tensor *t = attn_parameters_at(p, i);
                memcpy(t->value, attn_parameters_at(untouched, i)->value,
                       attn_tensor_size(t) * sizeof(float));
            }
    }
    /* Another letter in the metadata is nobody's loss. */
    ck_assert_uint_gt(taken, 0);
    ck_assert_uint_gt(refused, 40 * taken);
    free(bytes);
    attn_parameters_free(p);
    attn_parameters_free(untouched);
    attn_parameters_free(full);
}
END_TEST

START_TEST(deep_nesting_is_refused) {
    size_t depth = 100000;
    char *header = malloc(depth + 8);
    memcpy(header, "{\"a\":", 5);
    memset(header + 5, '[', depth);
    header[depth + 5] = '\0';
    write_parts(strlen(header), header, 0);
    attn_parameters *p = two_parameters();
    catch_errors();
    ck_assert(!attn_load(p, path));
    ck_assert_int_eq(caught.count, 1);
    check_unchanged(p);
    free(header);
    attn_parameters_free(p);
}
END_TEST

START_TEST(what_is_no_file_is_refused) {
    attn_parameters *p = two_parameters();
    char sentence[300];
    ck_assert_error(attn_load(NULL, path), "attn_load: parameters is NULL");
    ck_assert_error(attn_load(p, NULL), "attn_load: path is NULL");
    ck_assert_error(attn_save(NULL, path), "attn_save: parameters is NULL");
    ck_assert_error(attn_save(p, NULL), "attn_save: path is NULL");
    remove(path);
    snprintf(sentence, sizeof sentence,
             "attn_load: cannot read %s: No such file or directory", path);
    ck_assert_error(attn_load(p, path), sentence);
    snprintf(sentence, sizeof sentence,
             "attn_load: %s is not a regular file", folder);
    ck_assert_error(attn_load(p, folder), sentence);
    ck_assert_error(attn_load(p, "/dev/null"),
                    "attn_load: /dev/null is not a regular file");
    ck_assert_error(attn_save(p, "/nowhere/model"),
                    "attn_save: cannot write /nowhere/model: No such file "
                    "or directory");
    /* A folder is in the way: it stays, and no draft does. */
    snprintf(sentence, sizeof sentence,
             "attn_save: %s is not a regular file", folder);
    ck_assert_error(attn_save(p, folder), sentence);
    /* Nor is a pipe or a device replaced. */
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    snprintf(sentence, sizeof sentence,
             "attn_save: %s is not a regular file", path);
    ck_assert_error(attn_save(p, path), sentence);
    struct stat status;
    ck_assert(stat(path, &status) == 0 && S_ISFIFO(status.st_mode));
    ck_assert_int_eq(remove(path), 0);
    char beside[80];
    snprintf(beside, sizeof beside, "%s.part", folder);
    ck_assert(exists(folder) && !exists(beside));
    check_unchanged(p);
    attn_parameters_free(p);
}
END_TEST

/* A full disk, imitated by a limit on the size of files: the model that
   was there stays, and nothing is left of the other. */
START_TEST(a_full_disk_leaves_the_old_model) {
    attn_parameters *p = two_parameters();
    attn_parameters *large = attn_parameters_new();
    attn_parameters_add(large, "large", ATTN_SHAPE(100000));
    ck_assert(attn_save(p, path));
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 10000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    char sentence[300];
    snprintf(sentence, sizeof sentence,
             "attn_save: cannot write %s: File too large", path);
    ck_assert_error(attn_save(large, path), sentence);
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert(!exists(draft));
    ck_assert(attn_load(p, path));
    check_unchanged(p);
    attn_parameters_free(large);
    attn_parameters_free(p);
}
END_TEST

/* Every allocation fails once, the library's and cJSON's. */
START_TEST(without_memory_nothing_is_saved_or_loaded) {
    attn_parameters *full = books_model(true);
    attn_parameters *p = books_model(false);
    attn_parameters *untouched = books_model(false);
    cJSON_Hooks hooks = {__wrap_malloc, free};
    cJSON_InitHooks(&hooks);
    remove(path);
    long needed = 0;
    for (bool saved = false; !saved; needed++) {
        catch_errors();
        allocations_left = needed;
        saved = attn_save(full, path);
        allocations_left = -1;
        ck_assert_int_eq(caught.count, !saved);
        ck_assert_int_eq(exists(path), saved);
        ck_assert(!exists(draft));
    }
    ck_assert_int_gt(needed, 10);
    needed = 0;
    for (bool loaded = false; !loaded; needed++) {
        ck_assert(same_values(p, untouched));
        catch_errors();
        allocations_left = needed;
        loaded = attn_load(p, path);
        allocations_left = -1;
        ck_assert_int_eq(caught.count, !loaded);
    }
    ck_assert_int_gt(needed, 10);
    ck_assert(same_values(p, full));
    cJSON_InitHooks(NULL);
    attn_parameters_free(full);
    attn_parameters_free(p);
    attn_parameters_free(untouched);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("files");
    TCase *cases[] = {tcase_create("saving"), tcase_create("refusing")};
    for (size_t i = 0; i < 2; i++) {
        tcase_add_unchecked_fixture(cases[i], make_folder, remove_folder);
        tcase_set_timeout(cases[i], 120);
        suite_add_tcase(suite, cases[i]);
    }
    tcase_add_test(cases[0], a_saved_model_has_the_peers_bytes);
    tcase_add_test(cases[0], a_saved_model_comes_back);
    tcase_add_test(cases[0], the_peers_model_answers_the_same);
    tcase_add_test(cases[0], a_model_without_parameters_is_a_file_too);
    tcase_add_test(cases[0], a_full_disk_leaves_the_old_model);
    tcase_add_test(cases[0], without_memory_nothing_is_saved_or_loaded);
    tcase_add_loop_test(cases[1], malformed_headers_are_refused, 0,
                        (int)(sizeof malformed / sizeof *malformed));
    tcase_add_test(cases[1], well_formed_headers_are_taken);
    tcase_add_test(cases[1],
                   headers_that_lie_about_their_length_are_refused);
    tcase_add_test(cases[1], no_part_of_a_file_is_a_file);
    tcase_add_test(cases[1], changed_bytes_do_no_harm);
    tcase_add_test(cases[1], deep_nesting_is_refused);
    tcase_add_test(cases[1], what_is_no_file_is_refused);
    return suite;
}

int main(int argc, char *argv[]) {
    return run_tests(argc, argv, make_suite());
}
