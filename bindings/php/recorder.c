/* The class Recorder: records what promphp/prometheus_client_php passes to its storages, an array
 * for each update. Such a program updates many metrics once each, so it must cost little to find
 * one: no object of PHP is made of it. */
#include "php_talea.h"

#include "recorder_arginfo.h"

/* The counters that were given names without `_total`; names in the region end with it. */
#define NAMES "talea_promphp_counters"
#define NAMES_HELP "Counters whose names were given without _total."

/* The library's Adapter::COMMAND_SET. */
enum { COMMAND_SET = 3 };

typedef struct {
    process_registry *registry;
    /* The families that this object found or registered, by name: the first definition holds. */
    HashTable families;
    /* The gauge of names, once a counter needs it. */
    process_family *names;
    zend_object std;
} recorder;

static zend_object_handlers recorder_handlers;
static zend_string *NAME, *HELP, *LABEL_NAMES, *LABEL_VALUES, *VALUE, *COMMAND, *BUCKETS,
    *QUANTILES, *MAX_AGE_SECONDS, *NAMES_NAME;

static process_family *family_find(recorder *this, talea_kind kind, HashTable *data);
static process_family *family_register(recorder *this, talea_kind kind, HashTable *data,
    zend_string *name);
static bool name_note(recorder *this, process_family *counter);
static zval *member(HashTable *data, zend_string *key, uint32_t type);
static bool value_of(HashTable *data, double *value);

static inline recorder *recorder_of(zval *this) {
    return (recorder *) ((char *) Z_OBJ_P(this) - XtOffsetOf(recorder, std));
}

ZEND_METHOD(Talea_Recorder, __construct) {
    zval *registry;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_OBJECT_OF_CLASS(registry, registry_class)
    ZEND_PARSE_PARAMETERS_END();
    process_registry *opened = registry_opened(registry);
    if (opened) {
        recorder *this = recorder_of(ZEND_THIS);
        zend_hash_clean(&this->families);
        this->names = NULL;
        this->registry = opened;
    }
}

static void record(zval *this, talea_kind kind, talea_operation operation, HashTable *data,
    const double *time) {
    process_family *family = family_find(recorder_of(this), kind, data);
    zval *labels = family ? member(data, LABEL_VALUES, IS_ARRAY) : NULL;
    double value;
    if (EXPECTED(labels && value_of(data, &value))) {
        /* Data may refer to it, and an object's code replace it. */
        zval held;
        ZVAL_COPY(&held, labels);
        if (time) {
            metric_observe_at(family, value, Z_ARRVAL(held), LABELS_IN_ORDER, *time);
        } else {
            metric_record(family, operation, value, Z_ARRVAL(held), LABELS_IN_ORDER);
        }
        zval_ptr_dtor(&held);
    }
}

ZEND_METHOD(Talea_Recorder, counter) {
    HashTable *data;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_ARRAY_HT(data)
    ZEND_PARSE_PARAMETERS_END();
    record(ZEND_THIS, TALEA_KIND_FLOAT_COUNTER, TALEA_OPERATION_ADD, data, NULL);
}

ZEND_METHOD(Talea_Recorder, gauge) {
    HashTable *data;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_ARRAY_HT(data)
    ZEND_PARSE_PARAMETERS_END();
    zval *command = member(data, COMMAND, IS_LONG);
    if (command) {
        bool sets = Z_LVAL_P(command) == COMMAND_SET;
        record(ZEND_THIS, TALEA_KIND_GAUGE, sets ? TALEA_OPERATION_SET : TALEA_OPERATION_ADD, data, NULL);
    }
}

ZEND_METHOD(Talea_Recorder, histogram) {
    HashTable *data;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_ARRAY_HT(data)
    ZEND_PARSE_PARAMETERS_END();
    record(ZEND_THIS, TALEA_KIND_HISTOGRAM, TALEA_OPERATION_OBSERVE, data, NULL);
}

ZEND_METHOD(Talea_Recorder, summary) {
    HashTable *data;
    double time = 0;
    bool is_now = true;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_ARRAY_HT(data)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE_OR_NULL(time, is_now)
    ZEND_PARSE_PARAMETERS_END();
    record(ZEND_THIS, TALEA_KIND_SUMMARY, TALEA_OPERATION_OBSERVE, data, is_now ? NULL : &time);
}

ZEND_METHOD(Talea_Recorder, forget) {
    ZEND_PARSE_PARAMETERS_NONE();
    recorder *this = recorder_of(ZEND_THIS);
    zend_hash_clean(&this->families);
    this->names = NULL;
}

/* Null after an exception. */
static process_family *family_find(recorder *this, talea_kind kind, HashTable *data) {
    zval *name = member(data, NAME, IS_STRING);
    if (UNEXPECTED(!name)) {
        return NULL;
    }
    process_family *found = zend_hash_find_ptr(&this->families, Z_STR_P(name));
    if (EXPECTED(found && found->kind == kind)) {
        /* Of many metrics this one is in no cache: prefetch it while the values are read. */
        const char *family = (const char *) found->family;
        for (size_t at = 0; at < 256; at += 64) {
            __builtin_prefetch(family + at);
        }
        return found;
    }
    return family_register(this, kind, data, Z_STR_P(name));
}

/* The help, or, if it is blank, the name: Talea demands a help. */
static talea_text help_of(const zend_string *help, const zend_string *name) {
    /* The characters that trim() removes. */
    size_t blank = 0;
    while (blank < ZSTR_LEN(help) && memchr(" \n\r\t\v\0", ZSTR_VAL(help)[blank], 6)) {
        blank++;
    }
    return text_of(blank == ZSTR_LEN(help) ? name : help);
}

/* Null after an exception. */
static process_family *family_register(recorder *this, talea_kind kind, HashTable *data,
    zend_string *name) {
    if (UNEXPECTED(!this->registry)) {
        failure_throw("the recorder was not constructed");
        return NULL;
    }
    zval *help = member(data, HELP, IS_STRING);
    zval *labels = help ? member(data, LABEL_NAMES, IS_ARRAY) : NULL;
    if (!labels) {
        return NULL;
    }
    asked asked = {
        .help = help_of(Z_STR_P(help), name),
        .labels = Z_ARRVAL_P(labels),
        .window_seconds = 600,
    };
    if (kind == TALEA_KIND_HISTOGRAM || kind == TALEA_KIND_SUMMARY) {
        zval *numbers = member(data, kind == TALEA_KIND_HISTOGRAM ? BUCKETS : QUANTILES, IS_ARRAY);
        if (!numbers) {
            return NULL;
        }
        asked.numbers = Z_ARRVAL_P(numbers);
    }
    if (kind == TALEA_KIND_SUMMARY) {
        zval *seconds = member(data, MAX_AGE_SECONDS, IS_LONG);
        if (!seconds) {
            return NULL;
        }
        asked.window_seconds = Z_LVAL_P(seconds);
    }
    process_family *family = registry_register(this->registry, kind, name, &asked);
    if (!family || (kind == TALEA_KIND_FLOAT_COUNTER && !name_note(this, family))) {
        return NULL;
    }
    zend_hash_update_ptr(&this->families, name, family);
    return family;
}

/* Notes the name of a counter, if it is not the region's. False after an exception. */
static bool name_note(recorder *this, process_family *counter) {
    if (ends_with_total(counter->options.name)) {
        return true;
    }
    if (!this->names) {
        zval label, labels;
        array_init_size(&labels, 1);
        ZVAL_STR(&label, NAME);
        zend_hash_next_index_insert_new(Z_ARRVAL(labels), &label);
        asked asked = {
            .help = { NAMES_HELP, sizeof NAMES_HELP - 1 },
            .labels = Z_ARRVAL(labels),
            .window_seconds = 600,
            /* A name of each counter, however few series a counter may have. */
            .limit = UINT32_MAX,
        };
        this->names = registry_register(this->registry, TALEA_KIND_GAUGE, NAMES_NAME, &asked);
        zval_ptr_dtor(&labels);
    }
    if (this->names) {
        process_note(counter, this->names);
    }
    return this->names != NULL;
}

/* The value of a key, of a type; null after an exception. */
static zval *member(HashTable *data, zend_string *key, uint32_t type) {
    zval *found = zend_hash_find_known_hash(data, key);
    if (EXPECTED(found)) {
        ZVAL_DEREF(found);
        if (EXPECTED(Z_TYPE_P(found) == type)) {
            return found;
        }
    }
    zend_type_error("the %s of the data is %s; expected %s", ZSTR_VAL(key),
        found ? zend_zval_type_name(found) : "not there", zend_get_type_by_const(type));
    return NULL;
}

/* False after an exception. */
static bool value_of(HashTable *data, double *value) {
    zval *found = zend_hash_find_known_hash(data, VALUE);
    if (EXPECTED(found)) {
        ZVAL_DEREF(found);
        if (number_of(found, value)) {
            return true;
        }
    }
    zend_type_error("the value of the data is %s; expected a number",
        found ? zend_zval_type_name(found) : "not there");
    return false;
}

static zend_object *recorder_create(zend_class_entry *class) {
    recorder *this = zend_object_alloc(sizeof *this, class);
    zend_object_std_init(&this->std, class);
    this->std.handlers = &recorder_handlers;
    this->registry = NULL;
    this->names = NULL;
    zend_hash_init(&this->families, 8, NULL, NULL, 0);
    return &this->std;
}

static void recorder_free(zend_object *object) {
    recorder *this = (recorder *) ((char *) object - XtOffsetOf(recorder, std));
    zend_hash_destroy(&this->families);
    zend_object_std_dtor(object);
}

void recorder_begin(void) {
    NAME = key_of("name");
    HELP = key_of("help");
    LABEL_NAMES = key_of("labelNames");
    LABEL_VALUES = key_of("labelValues");
    VALUE = key_of("value");
    COMMAND = key_of("command");
    BUCKETS = key_of("buckets");
    QUANTILES = key_of("quantiles");
    MAX_AGE_SECONDS = key_of("maxAgeSeconds");
    NAMES_NAME = key_of(NAMES);
    class_register("Talea\\Recorder", class_Talea_Recorder_methods, recorder_create);
    recorder_handlers = *zend_get_std_object_handlers();
    recorder_handlers.offset = XtOffsetOf(recorder, std);
    recorder_handlers.free_obj = recorder_free;
    recorder_handlers.clone_obj = NULL;
}
