/* The values as arrays, for code that shows them in its own way. */
#include "php_talea.h"

static void take_family(zval *into, const talea_family_view *family);
static void take_series(zval *into, const talea_series_view *series);
static void take_sample(zval *into, const talea_sample *sample);

bool families_of(const talea_registry *registry, zval *into) {
    talea_reading *volatile reading = NULL;
    talea_reading *begun = NULL;
    volatile talea_status status =
        talea_read_begin(registry, (talea_text) { NULL, 0 }, &begun);
    reading = begun;
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

static void add_text(zval *into, const char *key, talea_text text) {
    add_assoc_stringl(into, key, text.len ? text.data : "", text.len);
}

static void take_family(zval *into, const talea_family_view *family) {
    array_init_size(into, 4);
    add_text(into, "name", family->name);
    add_text(into, "type", family->kind);
    add_text(into, "help", family->help);
    zval all;
    array_init_size(&all, (uint32_t) family->series_count);
    for (size_t i = 0; i < family->series_count; i++) {
        zval series;
        take_series(&series, &family->series[i]);
        zend_hash_next_index_insert_new(Z_ARRVAL(all), &series);
    }
    add_assoc_zval(into, "series", &all);
}

static void take_series(zval *into, const talea_series_view *series) {
    array_init_size(into, 2);
    zval labels;
    array_init_size(&labels, (uint32_t) series->label_count);
    for (size_t i = 0; i < series->label_count; i++) {
        talea_text name = series->labels[i].name, value = series->labels[i].value;
        zval text;
        ZVAL_STRINGL(&text, value.len ? value.data : "", value.len);
        /* Not as a symbol: a label that is called 1 has a text for its name too. */
        zend_hash_str_update(Z_ARRVAL(labels), name.data, name.len, &text);
    }
    add_assoc_zval(into, "labels", &labels);
    zval samples;
    array_init_size(&samples, (uint32_t) series->sample_count);
    for (size_t i = 0; i < series->sample_count; i++) {
        zval sample;
        take_sample(&sample, &series->samples[i]);
        zend_hash_next_index_insert_new(Z_ARRVAL(samples), &sample);
    }
    add_assoc_zval(into, "samples", &samples);
}

static void take_sample(zval *into, const talea_sample *sample) {
    array_init_size(into, 4);
    add_text(into, "name", sample->name);
    bool has_label = sample->label.name.len > 0;
    if (has_label) {
        add_text(into, "label", sample->label.name);
        add_text(into, "labelValue", sample->label.value);
    }
    if (sample->number == TALEA_NUMBER_UNSIGNED && sample->unsigned_value <= ZEND_LONG_MAX) {
        add_assoc_long(into, "value", (zend_long) sample->unsigned_value);
    } else if (sample->number == TALEA_NUMBER_SIGNED) {
        add_assoc_long(into, "value", (zend_long) sample->signed_value);
    } else {
        add_assoc_double(into, "value", sample->value);
    }
}
