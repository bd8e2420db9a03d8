/* The values as arrays, for code that shows them in its own way. */
#include "php_talea.h"

static const HashTable *take_family(zval *into, const talea_family_view *family,
    const HashTable *before);
static void take_series(zval *into, const talea_series_view *series, const HashTable *before);
static void take_labels(zval *into, const talea_series_view *series, const HashTable *before);
static void take_sample(zval *into, const talea_sample *sample, const HashTable *previous,
    const HashTable *before);

uint64_t families_millis(double seconds) {
    return seconds > 0 && seconds < 1e12 ? (uint64_t) (seconds * 1000) : 0;
}

bool families_of(const talea_registry *registry, const double *now, zval *into) {
    talea_reading *volatile reading = NULL;
    talea_reading *begun = NULL;
    volatile talea_status status =
        talea_read_begin(registry, (talea_text) { NULL, 0 }, &begun);
    reading = begun;
    if (status == TALEA_STATUS_OK && now) {
        status = talea_reading_at(reading, families_millis(*now));
    }
    array_init(into);
    /* Beyond the memory limit it jumps out of here. */
    zend_try {
        const talea_family_view *family = NULL;
        const HashTable *before = NULL;
        while (status == TALEA_STATUS_OK) {
            status = talea_read_next(reading, &family);
            if (status != TALEA_STATUS_OK || !family) {
                break;
            }
            zval taken;
            before = take_family(&taken, family, before);
            zend_hash_next_index_insert_new(Z_ARRVAL_P(into), &taken);
        }
    } zend_catch {
        talea_read_end(reading);
        zend_bailout();
    } zend_end_try();
    talea_read_end(reading);
    if (status != TALEA_STATUS_OK) {
        zval_ptr_dtor(into);
        ZVAL_NULL(into);
        failure_of_status(status);
    }
    return status == TALEA_STATUS_OK;
}

/* The keys of all arrays, made once. */
static zend_string *NAME, *TYPE, *HELP, *SERIES, *LABELS, *SAMPLES, *LABEL, *LABEL_VALUE, *VALUE,
    *WINDOW_COUNT, *WINDOW_SUM;

static zend_string *key_of(const char *text) {
    return zend_string_init_interned(text, strlen(text), 1);
}

void families_begin(void) {
    NAME = key_of("name");
    TYPE = key_of("type");
    HELP = key_of("help");
    SERIES = key_of("series");
    LABELS = key_of("labels");
    SAMPLES = key_of("samples");
    LABEL = key_of("label");
    LABEL_VALUE = key_of("labelValue");
    VALUE = key_of("value");
    WINDOW_COUNT = key_of("windowCount");
    WINDOW_SUM = key_of("windowSum");
}

/* Where they are in an array of a series, and of a sample that has a label. */
enum { LABELS_AT = 0, SAMPLES_AT = 1 };
enum { NAME_AT = 0, LABEL_AT = 1, LABEL_VALUE_AT = 2, WITH_LABEL = 4 };

static const zval *value_at(const HashTable *array, uint32_t place) {
    return &array->arData[place].val;
}

static void add(zval *into, zend_string *key, zval *value) {
    zend_hash_add_new(Z_ARRVAL_P(into), key, value);
}

static void text_make(zval *into, talea_text text) {
    ZVAL_STR(into, zend_string_init_fast(text.len ? text.data : "", text.len));
}

/* The string that is there already, where it is the same. */
static bool text_is_that(zval *into, talea_text text, zend_string *string) {
    bool is = ZSTR_LEN(string) == text.len
        && (text.len == 0 || memcmp(ZSTR_VAL(string), text.data, text.len) == 0);
    if (is) {
        ZVAL_STR_COPY(into, string);
    }
    return is;
}

static void add_text(zval *into, zend_string *key, talea_text text) {
    zval value;
    text_make(&value, text);
    add(into, key, &value);
}

/* Names and thresholds repeat, so two arrays that may have it are looked at: fewer strings are
 * less time and less memory, here and for the code that iterates over them. */
static void add_likely(zval *into, zend_string *key, talea_text text, const HashTable *previous,
    const HashTable *before, uint32_t place) {
    zval value;
    if (!(previous && text_is_that(&value, text, Z_STR_P(value_at(previous, place))))
        && !(before && text_is_that(&value, text, Z_STR_P(value_at(before, place))))) {
        text_make(&value, text);
    }
    add(into, key, &value);
}

/* Answers its last series, or, where it has none, the one before. */
static const HashTable *take_family(zval *into, const talea_family_view *family,
    const HashTable *before) {
    array_init_size(into, 4);
    add_text(into, NAME, family->name);
    add_text(into, TYPE, family->kind);
    add_text(into, HELP, family->help);
    zval all;
    array_init_size(&all, (uint32_t) family->series_count);
    for (size_t i = 0; i < family->series_count; i++) {
        zval series;
        take_series(&series, &family->series[i], before);
        before = Z_ARRVAL(series);
        zend_hash_next_index_insert_new(Z_ARRVAL(all), &series);
    }
    add(into, SERIES, &all);
    return before;
}

static void take_series(zval *into, const talea_series_view *series, const HashTable *before) {
    array_init_size(into, 2);
    zval labels;
    take_labels(&labels, series, before ? Z_ARRVAL_P(value_at(before, LABELS_AT)) : NULL);
    add(into, LABELS, &labels);
    zval samples;
    array_init_size(&samples, (uint32_t) series->sample_count);
    const HashTable *samples_before = before ? Z_ARRVAL_P(value_at(before, SAMPLES_AT)) : NULL;
    const HashTable *previous = NULL;
    for (size_t i = 0; i < series->sample_count; i++) {
        zval sample;
        zval *at_this_place = samples_before ? zend_hash_index_find(samples_before, i) : NULL;
        take_sample(&sample, &series->samples[i], previous,
            at_this_place ? Z_ARRVAL_P(at_this_place) : NULL);
        previous = Z_ARRVAL(sample);
        zend_hash_next_index_insert_new(Z_ARRVAL(samples), &sample);
    }
    add(into, SAMPLES, &samples);
    if (series->is_sampled) {
        zval count, sum;
        ZVAL_LONG(&count, (zend_long) series->window_count);
        ZVAL_DOUBLE(&sum, series->window_sum);
        add(into, WINDOW_COUNT, &count);
        add(into, WINDOW_SUM, &sum);
    }
}

static void take_labels(zval *into, const talea_series_view *series, const HashTable *before) {
    array_init_size(into, (uint32_t) series->label_count);
    for (size_t i = 0; i < series->label_count; i++) {
        talea_text name = series->labels[i].name;
        zval key, value;
        text_make(&value, series->labels[i].value);
        const Bucket *likely = before && i < before->nNumUsed ? &before->arData[i] : NULL;
        if (likely && likely->key && text_is_that(&key, name, likely->key)) {
            zend_hash_update(Z_ARRVAL_P(into), Z_STR(key), &value);
            zval_ptr_dtor_str(&key);
        } else {
            zend_hash_str_update(Z_ARRVAL_P(into), name.data, name.len, &value);
        }
    }
}

/* `previous` is the one before it in its series, `before` the one at its place in the series before
 * that. */
static void take_sample(zval *into, const talea_sample *sample, const HashTable *previous,
    const HashTable *before) {
    array_init_size(into, WITH_LABEL);
    add_likely(into, NAME, sample->name, previous, before, NAME_AT);
    if (sample->label.name.len > 0) {
        previous = previous && zend_hash_num_elements(previous) == WITH_LABEL ? previous : NULL;
        before = before && zend_hash_num_elements(before) == WITH_LABEL ? before : NULL;
        add_likely(into, LABEL, sample->label.name, previous, before, LABEL_AT);
        add_likely(into, LABEL_VALUE, sample->label.value, NULL, before, LABEL_VALUE_AT);
    }
    zval value;
    if (sample->number == TALEA_NUMBER_UNSIGNED && sample->unsigned_value <= ZEND_LONG_MAX) {
        ZVAL_LONG(&value, (zend_long) sample->unsigned_value);
    } else if (sample->number == TALEA_NUMBER_SIGNED) {
        ZVAL_LONG(&value, (zend_long) sample->signed_value);
    } else {
        ZVAL_DOUBLE(&value, sample->value);
    }
    add(into, VALUE, &value);
}
