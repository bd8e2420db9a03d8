/* The values in the arrays that promphp/prometheus_client_php makes its samples of. There are tens
   of thousands, so their common parts are made once. */
#include "php_talea.h"
#include "zend_smart_str.h"

#define OVERFLOW "otel_metric_overflow"

/* The most series that an array has room for before there are any. */
enum { SERIES_AT_FIRST = 4096 };

/* The data that the arrays of a walk share. */
typedef struct {
    /* The names of samples' own labels: none, `le` or `quantile`. */
    zval no_names, le_names, quantile_names;
    /* Thresholds as texts, by their place among a series' samples. */
    struct {
        double bound;
        zend_string *text;
    } *bounds;
    size_t bound_count;
    /* The name that the last sample had. */
    zend_string *last_name;
} shared;

static zend_string *SAMPLES, *SERIES, *NAME, *TYPE, *HELP, *LABEL_NAMES, *LABEL_VALUES, *VALUE;

static void add(zval *into, zend_string *key, zval *value);
static void shared_begin(shared *shared);
static void shared_end(shared *shared);
static void take_family(zval *into, zval *series, const talea_family_view *family, shared *shared);
static bool take_series(zval *into, const talea_family_view *family,
    const talea_series_view *series, size_t label_count, shared *shared);

void families_begin(void) {
    SAMPLES = key_of("samples");
    SERIES = key_of("series");
    NAME = key_of("name");
    TYPE = key_of("type");
    HELP = key_of("help");
    LABEL_NAMES = key_of("labelNames");
    LABEL_VALUES = key_of("labelValues");
    VALUE = key_of("value");
}

/* Calls a function with a family and its series. False after an exception. */
static bool hand_over(families_taker *taker, zval *family, zval *series) {
    zval arguments[2], answer;
    ZVAL_COPY_VALUE(&arguments[0], family);
    ZVAL_COPY_VALUE(&arguments[1], series);
    ZVAL_UNDEF(&answer);
    taker->call.retval = &answer;
    taker->call.params = arguments;
    taker->call.param_count = 2;
    zend_call_function(&taker->call, &taker->cache);
    zval_ptr_dtor(&arguments[0]);
    zval_ptr_dtor(&arguments[1]);
    zval_ptr_dtor(&answer);
    return !EG(exception);
}

static talea_status read_all(talea_reading *reading, families_taker *taker, zval *into,
    shared *shared) {
    const talea_family_view *view = NULL;
    talea_status status;
    while ((status = talea_read_next(reading, &view)) == TALEA_STATUS_OK && view) {
        zval family, series;
        take_family(&family, &series, view, shared);
        if (is_over_limit()) {
            zval_ptr_dtor(&family);
            zval_ptr_dtor(&series);
            break;
        }
        if (into) {
            add(&family, SERIES, &series);
            zend_hash_next_index_insert_new(Z_ARRVAL_P(into), &family);
        } else if (!hand_over(taker, &family, &series)) {
            break;
        }
    }
    return status;
}

void families_read(const talea_registry *registry, talea_text name, const double *now,
    families_taker *taker, zval *into) {
    talea_reading *begun = NULL;
    volatile talea_status status = talea_read_begin(registry, name, &begun);
    talea_reading *volatile reading = begun;
    if (status == TALEA_STATUS_OK && now) {
        status = talea_reading_at(reading, millis_of(*now));
    }
    shared shared;
    shared_begin(&shared);
    /* By exit(), and in older PHPs beyond the memory limit, it jumps out of here. */
    zend_try {
        if (status == TALEA_STATUS_OK) {
            status = read_all(reading, taker, into, &shared);
        }
    } zend_catch {
        talea_read_end(reading);
        zend_bailout();
    } zend_end_try();
    talea_read_end(reading);
    shared_end(&shared);
    if (status != TALEA_STATUS_OK) {
        failure_of_status(status);
    }
}

static void names_of(zval *into, const char *name) {
    array_init_size(into, 1);
    add_next_index_string(into, name);
}

static void shared_begin(shared *shared) {
    memset(shared, 0, sizeof *shared);
    ZVAL_EMPTY_ARRAY(&shared->no_names);
    names_of(&shared->le_names, "le");
    names_of(&shared->quantile_names, "quantile");
}

static void shared_end(shared *shared) {
    zval_ptr_dtor(&shared->le_names);
    zval_ptr_dtor(&shared->quantile_names);
    for (size_t i = 0; i < shared->bound_count; i++) {
        if (shared->bounds[i].text) {
            zend_string_release(shared->bounds[i].text);
        }
    }
    if (shared->bounds) {
        efree(shared->bounds);
    }
    if (shared->last_name) {
        zend_string_release(shared->last_name);
    }
}

static zend_string *string_of(talea_text text) {
    return zend_string_init_fast(text.len ? text.data : "", text.len);
}

/* A name, which the sample before probably has too. */
static zend_string *shared_name(shared *shared, talea_text name) {
    zend_string *last = shared->last_name;
    if (!last || ZSTR_LEN(last) != name.len || memcmp(ZSTR_VAL(last), name.data, name.len) != 0) {
        if (last) {
            zend_string_release(last);
        }
        shared->last_name = string_of(name);
    }
    return zend_string_copy(shared->last_name);
}

/* The shortest text of a threshold, as pages have it, whatever `precision` is set to. */
static zend_string *text_of_float(double value) {
    smart_str text = { 0 };
    smart_str_append_double(&text, value, -1, false);
    return smart_str_extract(&text);
}

/* A threshold as text. The series before probably has the same one at this place. */
static zend_string *shared_bound(shared *shared, size_t place, const talea_sample *sample) {
    if (place >= shared->bound_count) {
        size_t count = place + 16;
        shared->bounds = safe_erealloc(shared->bounds, count, sizeof *shared->bounds, 0);
        memset(shared->bounds + shared->bound_count, 0,
            (count - shared->bound_count) * sizeof *shared->bounds);
        shared->bound_count = count;
    }
    zend_string **text = &shared->bounds[place].text;
    if (!*text || shared->bounds[place].bound != sample->bound) {
        if (*text) {
            zend_string_release(*text);
        }
        shared->bounds[place].bound = sample->bound;
        *text = zend_finite(sample->bound)
            ? text_of_float(sample->bound) : string_of(sample->label.value);
    }
    return zend_string_copy(*text);
}

static bool is_overflow(const talea_series_view *series) {
    return series->label_count == 1 && series->labels[0].name.len == strlen(OVERFLOW)
        && memcmp(series->labels[0].name.data, OVERFLOW, strlen(OVERFLOW)) == 0;
}

static void add(zval *into, zend_string *key, zval *value) {
    zend_hash_add_new(Z_ARRVAL_P(into), key, value);
}

static void add_string(zval *into, zend_string *key, zend_string *string) {
    zval value;
    ZVAL_STR(&value, string);
    add(into, key, &value);
}

/* The family, and its series: label values and samples of each. The samples of an only series are
   the family's too. */
static void take_family(zval *into, zval *series, const talea_family_view *family,
    shared *shared) {
    array_init_size(into, 8);
    add_string(into, NAME, string_of(family->name));
    add_string(into, TYPE, string_of(family->kind));
    add_string(into, HELP, string_of(family->help));
    zval names;
    array_init(&names);
    size_t label_count = 0;
    for (size_t i = 0; i < family->series_count; i++) {
        const talea_series_view *one = &family->series[i];
        if (!is_overflow(one)) {
            label_count = one->label_count;
            for (size_t n = 0; n < label_count; n++) {
                zval name;
                ZVAL_STR(&name, string_of(one->labels[n].name));
                zend_hash_next_index_insert_new(Z_ARRVAL(names), &name);
            }
            break;
        }
    }
    add(into, LABEL_NAMES, &names);
    array_init_size(series, (uint32_t) MIN(family->series_count, SERIES_AT_FIRST));
    for (size_t i = 0; i < family->series_count && !is_over_limit(); i++) {
        zval taken;
        if (take_series(&taken, family, &family->series[i], label_count, shared)) {
            zend_hash_next_index_insert_new(Z_ARRVAL_P(series), &taken);
        }
    }
    if (zend_hash_num_elements(Z_ARRVAL_P(series)) == 1) {
        zval *only = zend_hash_index_find(Z_ARRVAL_P(series), 0);
        zval *samples = zend_hash_index_find(Z_ARRVAL_P(only), 1);
        Z_ADDREF_P(samples);
        add(into, SAMPLES, samples);
    }
}

/* The label values; of the overflow series, which has none of these labels, empty texts. */
static void take_labels(zval *into, const talea_series_view *series, size_t label_count) {
    array_init_size(into, (uint32_t) label_count + 2);
    zend_hash_real_init_packed(Z_ARRVAL_P(into));
    bool overflows = is_overflow(series);
    for (size_t i = 0; i < label_count; i++) {
        zval value;
        ZVAL_STR(&value, overflows ? ZSTR_EMPTY_ALLOC() : string_of(series->labels[i].value));
        zend_hash_next_index_insert_new(Z_ARRVAL_P(into), &value);
    }
    if (overflows) {
        add_next_index_string(into, "true");
    }
}

static void take_value(zval *into, talea_number number) {
    if (number.kind == TALEA_NUMBER_KIND_SIGNED
        || (number.kind == TALEA_NUMBER_KIND_UNSIGNED && number.bits <= ZEND_LONG_MAX)) {
        ZVAL_LONG(into, (zend_long) number.bits);
    } else {
        ZVAL_DOUBLE(into, talea_as_double(number));
    }
}

static void take_sample(zval *into, const talea_sample *sample, size_t place, const zval *labels,
    bool overflows, shared *shared) {
    array_init_size(into, 4);
    zend_hash_real_init_mixed(Z_ARRVAL_P(into));
    add_string(into, NAME, shared_name(shared, sample->name));
    zval names, values;
    talea_text own = sample->label.name;
    ZVAL_COPY(&names, own.len == 0 ? &shared->no_names
        : own.len == 2 ? &shared->le_names : &shared->quantile_names);
    if (overflows) {
        zval with;
        array_init_size(&with, 2);
        add_next_index_string(&with, OVERFLOW);
        if (own.len > 0) {
            add_next_index_stringl(&with, own.data, own.len);
        }
        zval_ptr_dtor(&names);
        ZVAL_COPY_VALUE(&names, &with);
    }
    if (own.len == 0) {
        ZVAL_COPY(&values, (zval *) labels);
    } else {
        ZVAL_ARR(&values, zend_array_dup(Z_ARRVAL_P(labels)));
        zval bound;
        ZVAL_STR(&bound, shared_bound(shared, place, sample));
        zend_hash_next_index_insert_new(Z_ARRVAL(values), &bound);
    }
    add(into, LABEL_NAMES, &names);
    add(into, LABEL_VALUES, &values);
    zval value;
    take_value(&value, sample->number);
    add(into, VALUE, &value);
}

/* False for a summary with an empty window. */
static bool take_series(zval *into, const talea_family_view *family,
    const talea_series_view *series, size_t label_count, shared *shared) {
    bool sums_up = family->kind.len == strlen("summary")
        && memcmp(family->kind.data, "summary", family->kind.len) == 0;
    if (series->is_sampled ? series->window_count == 0
            : sums_up && series->sample_count > 2 && zend_isnan(talea_as_double(series->samples[0].number))) {
        return false;
    }
    zval labels, samples;
    take_labels(&labels, series, label_count);
    size_t count = series->sample_count;
    array_init_size(&samples, (uint32_t) count);
    zend_hash_real_init_packed(Z_ARRVAL(samples));
    bool overflows = is_overflow(series);
    for (size_t i = 0; i < count; i++) {
        size_t place = i;
        if (count > 1 && i + 2 >= count) {
            /* The count goes before the sum. */
            place = i + 2 == count ? i + 1 : i - 1;
        }
        talea_sample sample = series->samples[place];
        if (series->is_sampled && i + 2 >= count) {
            /* Those of the window, not of all time. */
            sample.number = place == i + 1
                ? talea_unsigned(series->window_count) : talea_double(series->window_sum);
        }
        zval taken;
        take_sample(&taken, &sample, i, &labels, overflows, shared);
        zend_hash_next_index_insert_new(Z_ARRVAL(samples), &taken);
    }
    array_init_size(into, 2);
    zend_hash_real_init_packed(Z_ARRVAL_P(into));
    zend_hash_next_index_insert_new(Z_ARRVAL_P(into), &labels);
    zend_hash_next_index_insert_new(Z_ARRVAL_P(into), &samples);
    return true;
}
