/* The values as arrays, for code that shows them in its own way. */
#include "php_talea.h"

static void take_family(zval *into, const talea_family_view *family);
static void take_series(zval *into, const talea_series_view *series, const zval *before);
static void take_sample(zval *into, const talea_sample *sample, const zval *before);

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
        while (status == TALEA_STATUS_OK) {
            status = talea_read_next(reading, &family);
            if (status != TALEA_STATUS_OK || !family) {
                break;
            }
            zval taken;
            take_family(&taken, family);
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

static void add(zval *into, zend_string *key, zval *value) {
    zend_hash_add_new(Z_ARRVAL_P(into), key, value);
}

static void add_text(zval *into, zend_string *key, talea_text text) {
    zval value;
    ZVAL_STR(&value, zend_string_init_fast(text.len ? text.data : "", text.len));
    add(into, key, &value);
}

/* The same where it is likely to be that of the same place before, whose string then does. */
static void add_text_as(zval *into, zend_string *key, talea_text text, const zval *before) {
    zval *found = before ? zend_hash_find_known_hash(Z_ARRVAL_P(before), key) : NULL;
    if (found && Z_STRLEN_P(found) == text.len
        && memcmp(Z_STRVAL_P(found), text.data, text.len) == 0) {
        Z_TRY_ADDREF_P(found);
        add(into, key, found);
    } else {
        add_text(into, key, text);
    }
}

static void take_family(zval *into, const talea_family_view *family) {
    array_init_size(into, 4);
    add_text(into, NAME, family->name);
    add_text(into, TYPE, family->kind);
    add_text(into, HELP, family->help);
    zval all;
    array_init_size(&all, (uint32_t) family->series_count);
    const zval *before = NULL;
    for (size_t i = 0; i < family->series_count; i++) {
        zval series;
        take_series(&series, &family->series[i], before);
        zval *added = zend_hash_next_index_insert_new(Z_ARRVAL(all), &series);
        before = zend_hash_find_known_hash(Z_ARRVAL_P(added), SAMPLES);
    }
    add(into, SERIES, &all);
}

static void take_series(zval *into, const talea_series_view *series, const zval *before) {
    array_init_size(into, 2);
    zval labels;
    array_init_size(&labels, (uint32_t) series->label_count);
    for (size_t i = 0; i < series->label_count; i++) {
        talea_text name = series->labels[i].name, value = series->labels[i].value;
        zval text;
        ZVAL_STR(&text, zend_string_init_fast(value.len ? value.data : "", value.len));
        zend_hash_str_update(Z_ARRVAL(labels), name.data, name.len, &text);
    }
    add(into, LABELS, &labels);
    zval samples;
    array_init_size(&samples, (uint32_t) series->sample_count);
    for (size_t i = 0; i < series->sample_count; i++) {
        zval sample;
        take_sample(&sample, &series->samples[i],
            before ? zend_hash_index_find(Z_ARRVAL_P(before), i) : NULL);
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

static void take_sample(zval *into, const talea_sample *sample, const zval *before) {
    array_init_size(into, 4);
    add_text_as(into, NAME, sample->name, before);
    if (sample->label.name.len > 0) {
        add_text_as(into, LABEL, sample->label.name, before);
        add_text_as(into, LABEL_VALUE, sample->label.value, before);
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
