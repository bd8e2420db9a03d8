// Each mistake has its status, and breaks nothing.

#include <math.h>

#include "check.h"

static char message[512];

static void refuses(const talea_registry *registry, talea_status status, const char *word,
                    const talea_family_options *options) {
    const talea_family *family = NULL;
    talea_status found = talea_register(registry, options, &family, message, sizeof message);
    if (found != status || strstr(message, word) == NULL)
        fprintf(stderr, "%d rather than %d, %s: %s\n", found, status, word, message);
    CHECK(found == status && family == NULL && strstr(message, word) != NULL);
    // So too without a buffer for the message, or with a short one, which is not overrun.
    ANSWERS(status, talea_register(registry, options, &family, NULL, 100));
    char cut[8] = "xxxxxxx";
    ANSWERS(status, talea_register(registry, options, &family, cut, 4));
    CHECK(strlen(cut) == 3 && cut[4] == 'x');
    ANSWERS(status, talea_register(registry, options, &family, cut, 0));
}

// The good options with one thing changed.
#define REFUSES(status, word, ...)                    \
    do {                                              \
        bad = good;                                   \
        __VA_ARGS__;                                  \
        refuses(registry, (status), (word), &bad);    \
    } while (0)

static void opening(void) {
    const talea_registry *registry = NULL;
    talea_open_options options;
    memset(&options, 0, sizeof options);
    ANSWERS(TALEA_STATUS_WRONG_SIZE, talea_open(&options, &registry, message, sizeof message));
    CHECK(strstr(message, "sizeof") != NULL);
    options.size = sizeof options;
    ANSWERS(TALEA_STATUS_NULL, talea_open(&options, NULL, message, sizeof message));
    options.flags = 2;
    ANSWERS(TALEA_STATUS_WRONG_OPTION, talea_open(&options, &registry, message, sizeof message));
    options.flags = 0;
    options.group = 1;
    ANSWERS(TALEA_STATUS_WRONG_OPTION, talea_open(&options, &registry, message, sizeof message));
    CHECK(strstr(message, "TALEA_OPEN_READ_BY_GROUP") != NULL);
    options.group = 0;
    options.len = 1;
    ANSWERS(TALEA_STATUS_CANNOT_OPEN, talea_open(&options, &registry, message, sizeof message));
    CHECK(strlen(message) > 20);
    options.len = 0;
    options.path = talea_text_of("/proc/cannot/be");
    ANSWERS(TALEA_STATUS_CANNOT_OPEN, talea_open(&options, &registry, message, sizeof message));
    CHECK(strstr(message, "/proc/cannot") != NULL);
    options.path.data = NULL;
    ANSWERS(TALEA_STATUS_NULL, talea_open(&options, &registry, message, sizeof message));
    options.path = (talea_text){"x", SIZE_MAX};
    ANSWERS(TALEA_STATUS_WRONG_LENGTH, talea_open(&options, &registry, message, sizeof message));
    ANSWERS(TALEA_STATUS_NULL, talea_open_from_environment(NULL, message, sizeof message));
    setenv("TALEA_REGION", "/proc/cannot/be", 1);
    ANSWERS(TALEA_STATUS_CANNOT_OPEN, talea_open_from_environment(&registry, message, sizeof message));
    CHECK(strstr(message, "TALEA_REGION") != NULL && registry == NULL);
    unsetenv("TALEA_REGION");
    OK(talea_open_from_environment(&registry, message, sizeof message));
    CHECK(registry != NULL);
}

static void registering(const talea_registry *registry) {
    talea_text label = {"method", 6}, twice[] = {label, label};
    talea_family_options good = options_of(TALEA_KIND_COUNTER, "orders", &label, 1), bad;
    const talea_family *family = NULL;
    ANSWERS(TALEA_STATUS_NULL, talea_register(NULL, &good, &family, message, sizeof message));
    ANSWERS(TALEA_STATUS_NULL, talea_register(registry, NULL, &family, message, sizeof message));
    ANSWERS(TALEA_STATUS_NULL, talea_register(registry, &good, NULL, message, sizeof message));
    OK(talea_register(registry, &good, &family, message, sizeof message));

    // A struct of a later header, with and without a zero in the unknown field.
    struct {
        talea_family_options known;
        uint64_t later;
    } grown = {good, 0};
    grown.known.size = sizeof grown;
    const talea_family *same;
    OK(talea_register(registry, &grown.known, &same, message, sizeof message));
    CHECK(same == family);
    grown.later = 1;
    ANSWERS(TALEA_STATUS_WRONG_SIZE, talea_register(registry, &grown.known, &same, NULL, 0));
    REFUSES(TALEA_STATUS_WRONG_SIZE, "zeros", bad.size = 0);
    REFUSES(TALEA_STATUS_WRONG_SIZE, "zeros", bad.size -= 8);
    REFUSES(TALEA_STATUS_WRONG_SIZE, "zeros", bad.size = SIZE_MAX);

    REFUSES(TALEA_STATUS_WRONG_OPTION, "kind", bad.kind = 0);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "kind", bad.kind = 99);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "unit", bad.unit = 9);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "unit", bad.unit = TALEA_UNIT_BYTES);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "combining", bad.combining = 9);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "combining", bad.combining = 1);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "bucketing", bad.bucketing = 9);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "flags", bad.flags = 1u << 31);
    REFUSES(TALEA_STATUS_WRONG_OPTION, "flags", bad.reserved = 1);
    talea_text broken = talea_text_of("\xff");
    REFUSES(TALEA_STATUS_NOT_UTF8, "the name: a text is not UTF-8", bad.name = broken);
    REFUSES(TALEA_STATUS_NOT_UTF8, "the help of \"orders\": a text is not UTF-8", bad.help = broken);
    REFUSES(TALEA_STATUS_NOT_UTF8, "a label of \"orders\": a text is not UTF-8", bad.label_names = &broken);
    REFUSES(TALEA_STATUS_NULL, "null", bad.label_names = NULL);
    REFUSES(TALEA_STATUS_NULL, "null", bad.name.data = NULL);
    REFUSES(TALEA_STATUS_NULL, "null", bad.kind = TALEA_KIND_HISTOGRAM, bad.bucket_count = 1);
    REFUSES(TALEA_STATUS_WRONG_LENGTH, "length", bad.label_count = SIZE_MAX);
    REFUSES(TALEA_STATUS_WRONG_LENGTH, "length", bad.name.len = SIZE_MAX);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "help", bad.help = NONE);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "empty", bad.name = NONE);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "empty", bad.name = talea_text_of("_total"));
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "empty", bad.name = NONE,
            bad.flags = TALEA_FAMILY_LENIENT_NAMES);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "begin with '_'", bad.name = talea_text_of("_orders"));
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "begin with '_'", bad.name = talea_text_of("__orders"),
            bad.flags = TALEA_FAMILY_LENIENT_NAMES);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "control characters", bad.name = talea_text_of("a\tb"),
            bad.flags = TALEA_FAMILY_UTF8_NAMES);
    talea_text reserved = talea_text_of("_method");
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "begin with '_'", bad.label_names = &reserved);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "it is empty", bad.label_names = &NONE);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "digit; or set TALEA_FAMILY_UTF8_NAMES",
            bad.name = talea_text_of("http.x"));
    // Those who choose lenient names cannot set flags.
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "does not begin with a digit", bad.name = talea_text_of("http.x"),
            bad.flags = TALEA_FAMILY_LENIENT_NAMES);
    CHECK(strstr(message, "; or") == NULL);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "twice", bad.label_names = twice, bad.label_count = 2);
    // The message says in what the definitions differ.
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "labels", bad.label_count = 0);
    REFUSES(TALEA_STATUS_CANNOT_REGISTER, "Other.", bad.help = talea_text_of("Other."));
    bad = options_of(TALEA_KIND_SUMMARY, "pricing", NULL, 0);
    const double quantiles[] = {0.9, 0.5};
    bad.quantiles = quantiles;
    bad.quantile_count = 2;
    refuses(registry, TALEA_STATUS_CANNOT_REGISTER, "ascending", &bad);
    bad = options_of(TALEA_KIND_HISTOGRAM, "pricing", NULL, 0);
    bad.flags = TALEA_FAMILY_SCHEMA;
    bad.schema = 9;
    refuses(registry, TALEA_STATUS_CANNOT_REGISTER, "schema", &bad);
    bad.schema = 1000;
    refuses(registry, TALEA_STATUS_WRONG_OPTION, "schema", &bad);
    // Such names can be allowed.
    good = options_of(TALEA_KIND_COUNTER, "http.x", NULL, 0);
    good.flags = TALEA_FAMILY_UTF8_NAMES;
    OK(talea_register(registry, &good, &family, message, sizeof message));
}

// An option that a kind has not is refused by its name, rather than ignored.
static void options_of_other_kinds(const talea_registry *registry) {
    static const double numbers[] = {0.5, 0.9};
    const struct {
        uint32_t kind;
        bool has_buckets, has_quantiles, has_combining, has_stripes;
    } kinds[] = {
        {TALEA_KIND_COUNTER, false, false, false, true},
        {TALEA_KIND_FLOAT_COUNTER, false, false, false, true},
        {TALEA_KIND_GAUGE, false, false, true, false},
        {TALEA_KIND_INTEGER_GAUGE, false, false, true, false},
        {TALEA_KIND_UP_DOWN_COUNTER, false, false, false, false},
        {TALEA_KIND_HISTOGRAM, true, true, false, true},
        {TALEA_KIND_SUMMARY, false, true, false, true},
    };
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        char name[16];
        sprintf(name, "of_kind_%zu", n);
        talea_family_options good = options_of(kinds[n].kind, name, NULL, 0), bad;
        // Each kind takes numbers and flags of 0, and arrays without elements.
        good.buckets = good.quantiles = numbers;
        registered(registry, &good);
        const bool has_buckets = kinds[n].has_buckets, has_quantiles = kinds[n].has_quantiles;
        // An option that the kind has is accepted, and then the name is refused.
        good.name = talea_text_of("_");
#define TAKES(is_taken, option, ...)                                                               \
    do {                                                                                           \
        if (is_taken)                                                                              \
            REFUSES(TALEA_STATUS_CANNOT_REGISTER, "the name is empty", __VA_ARGS__);               \
        else                                                                                       \
            REFUSES(TALEA_STATUS_WRONG_OPTION, option, __VA_ARGS__);                               \
    } while (0)
        TAKES(has_buckets, "has no buckets", bad.bucket_count = 2);
        TAKES(has_buckets, "has no bucketing", bad.bucketing = TALEA_BUCKETS_NATIVE);
        TAKES(has_quantiles, "has no unit", bad.unit = TALEA_UNIT_BYTES);
        TAKES(has_quantiles, "has no quantiles", bad.quantile_count = 2);
        TAKES(has_quantiles, "has no quantiles", bad.flags = TALEA_FAMILY_QUANTILES);
        TAKES(has_quantiles, "has no window_seconds", bad.window_seconds = 60);
        TAKES(has_quantiles, "has no schema", bad.flags = TALEA_FAMILY_SCHEMA);
        TAKES(has_quantiles, "has no max_buckets", bad.max_buckets = 40);
        TAKES(has_quantiles, "has no widest_zero", bad.widest_zero = 0.5);
        TAKES(kinds[n].has_combining, "has no combining", bad.combining = TALEA_COMBINING_SUM);
        TAKES(kinds[n].has_stripes, "has no TALEA_FAMILY_STRIPED", bad.flags = TALEA_FAMILY_STRIPED);
        TAKES(true, "", bad.flags = TALEA_FAMILY_UNSTRIPED | TALEA_FAMILY_PERMANENT);
        TAKES(false, "TALEA_FAMILY_SCHEMA", bad.schema = 5);
        if (kinds[n].has_stripes)
            REFUSES(TALEA_STATUS_WRONG_OPTION, "TALEA_FAMILY_STRIPED and TALEA_FAMILY_UNSTRIPED",
                bad.flags = TALEA_FAMILY_STRIPED | TALEA_FAMILY_UNSTRIPED);
        REFUSES(TALEA_STATUS_WRONG_OPTION, "TALEA_FAMILY_PERMANENT and expires_after_seconds",
            bad.flags = TALEA_FAMILY_PERMANENT, bad.expires_after_seconds = 60);
    }
}

static void counting(const talea_registry *registry) {
    talea_text label = {"method", 6}, value = {"card", 4}, bad = {"\xc3", 1}, null = {NULL, 1},
               endless = {"x", SIZE_MAX}, two[] = {value, value};
    const talea_family *orders = family_of(registry, TALEA_KIND_COUNTER, "orders", &label, 1);
    size_t before;
    total_of(registry, "orders_total", &before);
    ANSWERS(TALEA_STATUS_NULL, talea_record(NULL, &value, 1, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_NULL, talea_record(orders, NULL, 1, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_NULL, talea_record(orders, &null, 1, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_NOT_UTF8, talea_record(orders, &bad, 1, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_WRONG_LENGTH, talea_record(orders, &endless, 1, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_WRONG_LABELS, talea_record(orders, two, 2, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_WRONG_LABELS, talea_record(orders, NULL, 0, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_WRONG_LABELS, talea_record(orders, two, SIZE_MAX, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_record(orders, &value, 1, SET, talea_double(1)));
    const talea_number unknown = {3, 1};
    ANSWERS(TALEA_STATUS_WRONG_OPTION, talea_record(orders, &value, 1, ADD, unknown));
    ANSWERS(TALEA_STATUS_WRONG_OPTION, talea_record(orders, &value, 1, 0, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_WRONG_OPTION, talea_record(orders, &value, 1, 4, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_NULL, talea_record_at(NULL, &value, 1, ADD, talea_unsigned(1), 0));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_record(orders, &value, 1, OBSERVE, talea_double(1)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(orders, &value, 1, ADD, talea_signed(-1)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(orders, &value, 1, ADD, talea_double(0.5)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(orders, &value, 1, ADD, talea_double(-1)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(orders, &value, 1, ADD, talea_double(NAN)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(orders, &value, 1, ADD, talea_double(1e30)));
    ANSWERS(TALEA_STATUS_NULL, talea_remove(NULL, &value, 1, NULL));
    ANSWERS(TALEA_STATUS_WRONG_LABELS, talea_remove(orders, NULL, 0, NULL));
    const talea_series *kept = NULL;
    ANSWERS(TALEA_STATUS_NULL, talea_series_keep(NULL, &value, 1, &kept));
    ANSWERS(TALEA_STATUS_NULL, talea_series_keep(orders, &value, 1, NULL));
    ANSWERS(TALEA_STATUS_NOT_UTF8, talea_series_keep(orders, &bad, 1, &kept));
    ANSWERS(TALEA_STATUS_WRONG_LABELS, talea_series_keep(orders, &bad, 0, &kept));
    CHECK(kept == NULL);
    // No series was created.
    size_t after;
    total_of(registry, "orders_total", &after);
    CHECK(before == after);
    OK(talea_series_keep(orders, &value, 1, &kept));
    ANSWERS(TALEA_STATUS_NULL, talea_series_record(NULL, ADD, talea_unsigned(1)));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_series_record(kept, SET, talea_double(1)));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_series_record(kept, OBSERVE, talea_double(1)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_series_record(kept, ADD, talea_signed(-1)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_series_record(kept, ADD, talea_double(-1)));

    const talea_family *busy = family_of(registry, TALEA_KIND_FLOAT_COUNTER, "busy", NULL, 0);
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(busy, NULL, 0, ADD, talea_double(-0.5)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(busy, NULL, 0, ADD, talea_double(INFINITY)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(busy, NULL, 0, ADD, talea_signed(-1)));
    const talea_family *open = family_of(registry, TALEA_KIND_UP_DOWN_COUNTER, "open", NULL, 0);
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(open, NULL, 0, ADD, talea_unsigned(UINT64_MAX)));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_record(open, NULL, 0, SET, talea_double(1)));
    const talea_family *depth = family_of(registry, TALEA_KIND_INTEGER_GAUGE, "depth", NULL, 0);
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(depth, NULL, 0, SET, talea_double(0.5)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(depth, NULL, 0, SET, talea_double(9223372036854775808.0)));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_record(depth, NULL, 0, OBSERVE, talea_double(1)));
    talea_family_options options = options_of(TALEA_KIND_HISTOGRAM, "time", NULL, 0);
    options.unit = TALEA_UNIT_SECONDS;
    const talea_family *time = registered(registry, &options);
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(time, NULL, 0, OBSERVE, talea_double(-1e-9)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(time, NULL, 0, OBSERVE, talea_double(NAN)));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_record(time, NULL, 0, OBSERVE, talea_signed(-1)));
    ANSWERS(TALEA_STATUS_WRONG_OPTION, talea_record(time, NULL, 0, OBSERVE, unknown));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_record(time, NULL, 0, ADD, talea_unsigned(1)));
}

static void reading(const talea_registry *registry) {
    char type[256];
    size_t len = 7;
    ANSWERS(TALEA_STATUS_NULL, talea_content_type(NONE, NULL, 256, &len));
    ANSWERS(TALEA_STATUS_NULL, talea_content_type(NONE, type, 256, NULL));
    ANSWERS(TALEA_STATUS_TOO_SHORT, talea_content_type(NONE, type, 10, &len));
    CHECK(len == 7);
    talea_text endless = {"x", SIZE_MAX}, null = {NULL, 1}, bad = {"\xff", 1};
    talea_rendering *rendering;
    talea_reading *reading;
    talea_text piece;
    const talea_family_view *family;
    ANSWERS(TALEA_STATUS_NULL, talea_render_begin(NULL, NONE, &rendering));
    ANSWERS(TALEA_STATUS_NULL, talea_render_begin(registry, NONE, NULL));
    ANSWERS(TALEA_STATUS_NULL, talea_render_begin(registry, null, &rendering));
    ANSWERS(TALEA_STATUS_WRONG_LENGTH, talea_render_begin(registry, endless, &rendering));
    ANSWERS(TALEA_STATUS_NULL, talea_render_next(NULL, &piece));
    ANSWERS(TALEA_STATUS_NULL, talea_read_begin(NULL, NONE, &reading));
    ANSWERS(TALEA_STATUS_NOT_UTF8, talea_read_begin(registry, bad, &reading));
    ANSWERS(TALEA_STATUS_NULL, talea_read_begin(registry, NONE, NULL));
    ANSWERS(TALEA_STATUS_NULL, talea_read_next(NULL, &family));
    OK(talea_render_begin(registry, NONE, &rendering));
    ANSWERS(TALEA_STATUS_NULL, talea_render_next(rendering, NULL));
    talea_render_end(rendering);
    talea_render_end(NULL);
    OK(talea_read_begin(registry, NONE, &reading));
    ANSWERS(TALEA_STATUS_NULL, talea_read_next(reading, NULL));
    talea_read_end(reading);
    talea_read_end(NULL);
    OK(talea_read_begin(registry, talea_text_of("there is none"), &reading));
    OK(talea_read_next(reading, &family));
    CHECK(family == NULL);
    talea_read_end(reading);
    ANSWERS(TALEA_STATUS_NULL, talea_wipe(NULL, NONE));
    ANSWERS(TALEA_STATUS_NOT_UTF8, talea_wipe(registry, bad));
    ANSWERS(TALEA_STATUS_NULL, talea_unregister(NULL, NONE, NULL));
    ANSWERS(TALEA_STATUS_NOT_UTF8, talea_unregister(registry, bad, NULL));
    CHECK(talea_text_of(NULL).len == 0);
    CHECK(strcmp(talea_status_text(TALEA_STATUS_NOT_UTF8), "a text is not UTF-8") == 0);
    CHECK(strlen(talea_status_text(12345)) > 0);
}

int main(void) {
    opening();
    const talea_registry *registry = opened(NULL, 4 << 20);
    registering(registry);
    options_of_other_kinds(registry);
    counting(registry);
    reading(registry);
    return 0;
}
