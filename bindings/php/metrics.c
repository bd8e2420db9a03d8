/* The classes Counter, Gauge, Histogram and Summary: each object is a family to record in. */
#include "php_talea.h"
#include "ext/standard/html.h"

#include "metrics_arginfo.h"

typedef struct {
    process_family *family;
    zend_object std;
} metric;

static zend_class_entry *counter_class, *gauge_class, *histogram_class, *summary_class;
static zend_object_handlers metric_handlers;

static void fail(talea_status status, const process_family *family, const label_values *labels,
    double value);

static inline metric *metric_of(zend_object *object) {
    return (metric *) ((char *) object - XtOffsetOf(metric, std));
}

static void add_one(INTERNAL_FUNCTION_PARAMETERS, double value) {
    HashTable *labels = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT(labels)
    ZEND_PARSE_PARAMETERS_END();
    metric_record(metric_family(ZEND_THIS), TALEA_OPERATION_ADD, value, labels, LABELS_BY_NAME);
}

static void record_number(INTERNAL_FUNCTION_PARAMETERS, talea_operation operation, double sign) {
    double value;
    HashTable *labels = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_DOUBLE(value)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT(labels)
    ZEND_PARSE_PARAMETERS_END();
    metric_record(metric_family(ZEND_THIS), operation, sign * value, labels, LABELS_BY_NAME);
}

#define ONE(Kind, name, value) \
    ZEND_METHOD(Talea_##Kind, name) { \
        add_one(INTERNAL_FUNCTION_PARAM_PASSTHRU, value); \
    }

#define NUMBER(Kind, name, OPERATION, sign) \
    ZEND_METHOD(Talea_##Kind, name) { \
        record_number(INTERNAL_FUNCTION_PARAM_PASSTHRU, TALEA_OPERATION_##OPERATION, sign); \
    }

ONE(Counter, inc, 1)
/* It takes integers and floats, and stores both as the same type. */
NUMBER(Counter, incBy, ADD, 1)
NUMBER(Gauge, set, SET, 1)
ONE(Gauge, inc, 1)
NUMBER(Gauge, incBy, ADD, 1)
ONE(Gauge, dec, -1)
NUMBER(Gauge, decBy, ADD, -1)
NUMBER(Histogram, observe, OBSERVE, 1)

ZEND_METHOD(Talea_Counter, noteName) {
    zval *gauge;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_OBJECT_OF_CLASS(gauge, gauge_class)
    ZEND_PARSE_PARAMETERS_END();
    process_family *notes = metric_family(gauge);
    if (notes->options.label_count != 1) {
        failure_throw("%s has %zu labels; expected one, for names", notes->options.name.data,
            notes->options.label_count);
        return;
    }
    process_note(metric_family(ZEND_THIS), notes);
}

ZEND_METHOD(Talea_Summary, observe) {
    double value, time = 0;
    HashTable *labels = NULL;
    bool is_now = true;
    ZEND_PARSE_PARAMETERS_START(1, 3)
        Z_PARAM_DOUBLE(value)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT(labels)
        Z_PARAM_DOUBLE_OR_NULL(time, is_now)
    ZEND_PARSE_PARAMETERS_END();
    if (is_now) {
        metric_record(metric_family(ZEND_THIS), TALEA_OPERATION_OBSERVE, value, labels, LABELS_BY_NAME);
    } else {
        metric_observe_at(metric_family(ZEND_THIS), value, labels, LABELS_BY_NAME, time);
    }
}

static void remove_series(INTERNAL_FUNCTION_PARAMETERS) {
    HashTable *given = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT(given)
    ZEND_PARSE_PARAMETERS_END();
    const process_family *family = metric_of(Z_OBJ_P(ZEND_THIS))->family;
    label_values labels;
    if (!labels_take(&labels, family, given, LABELS_BY_NAME)) {
        return;
    }
    bool removed = false;
    if (family->family) {
        talea_status status =
            talea_remove(family->family, labels.values, labels.count, &removed);
        if (status != TALEA_STATUS_OK) {
            fail(status, family, &labels, 0);
        }
    }
    labels_free(&labels);
    RETVAL_BOOL(removed);
}

/* The methods of all classes. Registries make the objects. */
#define METHODS_OF(Kind) \
    ZEND_METHOD(Talea_##Kind, __construct) {} \
    ZEND_METHOD(Talea_##Kind, remove) { \
        remove_series(INTERNAL_FUNCTION_PARAM_PASSTHRU); \
    }

METHODS_OF(Counter)
METHODS_OF(Gauge)
METHODS_OF(Histogram)
METHODS_OF(Summary)

static zend_always_inline void record(process_family *family, talea_operation operation,
    double value, HashTable *given, label_order order, const double *time) {
    label_values labels;
    if (!labels_take(&labels, family, given, order)) {
        return;
    }
    const talea_family *there = process_there(family);
    if (EXPECTED(there)) {
        talea_number number = talea_double(value);
        talea_status status = !time
            ? talea_record(there, labels.values, labels.count, operation, number)
            : talea_record_at(there, labels.values, labels.count, operation, number,
                millis_of(*time));
        if (UNEXPECTED(status != TALEA_STATUS_OK)) {
            fail(status, family, &labels, value);
        }
    }
    labels_free(&labels);
}

void metric_record(process_family *family, talea_operation operation, double value,
    HashTable *labels, label_order order) {
    record(family, operation, value, labels, order, NULL);
}

void metric_observe_at(process_family *family, double value, HashTable *labels, label_order order,
    double time) {
    record(family, TALEA_OPERATION_OBSERVE, value, labels, order, &time);
}

static bool is_utf8(const zend_string *string) {
    size_t at = 0;
    zend_result decoded = SUCCESS;
    while (at < ZSTR_LEN(string) && decoded == SUCCESS) {
        const unsigned char *text = (const unsigned char *) ZSTR_VAL(string);
        php_next_utf8_char(text, ZSTR_LEN(string), &at, &decoded);
    }
    return decoded == SUCCESS;
}

static void fail(talea_status status, const process_family *family, const label_values *labels,
    double value) {
    const char *name = family->options.name.data;
    if (status == TALEA_STATUS_NOT_UTF8) {
        uint32_t at = 0;
        while (at + 1 < labels->count && is_utf8(labels->made[at])) {
            at++;
        }
        failure_throw("the label %s of %s is not UTF-8", family->options.label_names[at].data, name);
    } else if (status == TALEA_STATUS_WRONG_VALUE && family->options.kind == TALEA_KIND_FLOAT_COUNTER) {
        failure_throw("%s is a counter, which only goes up by finite numbers; %g was given", name,
            value);
    } else {
        failure_throw("%s: %s", name, talea_status_text(status));
    }
}

static zend_object *metric_create(zend_class_entry *class) {
    metric *metric = zend_object_alloc(sizeof *metric, class);
    zend_object_std_init(&metric->std, class);
    metric->std.handlers = &metric_handlers;
    metric->family = NULL;
    return &metric->std;
}

zend_object *metric_new(process_family *family) {
    zend_class_entry *class;
    switch (family->options.kind) {
        case TALEA_KIND_FLOAT_COUNTER:
            class = counter_class;
            break;
        case TALEA_KIND_GAUGE:
            class = gauge_class;
            break;
        case TALEA_KIND_HISTOGRAM:
            class = histogram_class;
            break;
        default:
            class = summary_class;
    }
    zend_object *object = metric_create(class);
    metric_of(object)->family = family;
    return object;
}

process_family *metric_family(zval *metric) {
    return metric_of(Z_OBJ_P(metric))->family;
}

void metrics_begin(void) {
    counter_class = class_register("Talea\\Counter", class_Talea_Counter_methods, metric_create);
    gauge_class = class_register("Talea\\Gauge", class_Talea_Gauge_methods, metric_create);
    histogram_class = class_register("Talea\\Histogram", class_Talea_Histogram_methods, metric_create);
    summary_class = class_register("Talea\\Summary", class_Talea_Summary_methods, metric_create);
    metric_handlers = *zend_get_std_object_handlers();
    metric_handlers.offset = XtOffsetOf(metric, std);
    metric_handlers.clone_obj = NULL;
}
