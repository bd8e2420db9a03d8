/* The class Registry: registers metrics, shows and wipes them. */
#include "php_talea.h"
#include "zend_exceptions.h"
#include "zend_interfaces.h"

#include "registry_arginfo.h"

/* The defaults of promphp/prometheus_client_php. */
static const double DEFAULT_BUCKETS[] =
    { 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10 };
static const double DEFAULT_QUANTILES[] = { 0.01, 0.05, 0.5, 0.95, 0.99 };
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

typedef struct {
    process_registry *registry;
    /* The metrics that this object registered, by name; no two kinds share a name. */
    HashTable metrics;
    zend_object std;
} registry;

typedef enum {
    REGISTER,
    GET_OR_REGISTER,
} way;

zend_class_entry *registry_class;
static zend_object_handlers registry_handlers;

static zval *metric_find(registry *this, talea_kind kind, zend_string *namespace,
    zend_string *name);
static zend_string *name_of(zend_string *namespace, zend_string *name);
static talea_text *texts_of(HashTable *labels);
static double *doubles_of(const char *what, HashTable *numbers);

static inline registry *registry_of(zval *this) {
    return (registry *) ((char *) Z_OBJ_P(this) - XtOffsetOf(registry, std));
}

process_registry *registry_opened(zval *this) {
    process_registry *found = registry_of(this)->registry;
    if (UNEXPECTED(!found)) {
        failure_throw("the registry was not constructed");
    }
    return found;
}

/* Null after an exception. */
static const talea_registry *opened(zval *this) {
    process_registry *found = registry_opened(this);
    return found ? found->registry : NULL;
}

ZEND_METHOD(Talea_Registry, __construct) {
    zend_string *path = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_PATH_STR_OR_NULL(path)
    ZEND_PARSE_PARAMETERS_END();
    if (path && ZSTR_LEN(path) == 0) {
        failure_throw("the path of the region is empty; leave it out for the configured one");
        return;
    }
    /* The administrator chose the path in php.ini, but not one in code. */
    if (path && php_check_open_basedir(ZSTR_VAL(path))) {
        failure_throw("open_basedir does not allow the region %s", ZSTR_VAL(path));
        return;
    }
    registry *this = registry_of(ZEND_THIS);
    process_registry *found = process_open(path);
    if (found) {
        zend_hash_clean(&this->metrics);
        this->registry = found;
    }
}

/* Returns the metric that this object registered before, or registers it. */
static void return_metric(INTERNAL_FUNCTION_PARAMETERS, talea_kind kind, way way) {
    asked asked = { .window_seconds = 600 };
    zend_string *namespace, *name, *help;
    bool measures = kind == TALEA_KIND_HISTOGRAM || kind == TALEA_KIND_SUMMARY;
    ZEND_PARSE_PARAMETERS_START(3, !measures ? 4 : kind == TALEA_KIND_SUMMARY ? 6 : 5)
        Z_PARAM_STR(namespace)
        Z_PARAM_STR(name)
        Z_PARAM_STR(help)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT(asked.labels)
        if (kind == TALEA_KIND_SUMMARY) {
            Z_PARAM_LONG(asked.window_seconds)
        }
        Z_PARAM_ARRAY_HT_OR_NULL(asked.numbers)
    ZEND_PARSE_PARAMETERS_END();
    process_registry *opened = registry_opened(ZEND_THIS);
    if (!opened) {
        return;
    }
    registry *this = registry_of(ZEND_THIS);
    zval *found = metric_find(this, kind, namespace, name);
    if (found && way == GET_OR_REGISTER) {
        process_there(metric_family(found));
        RETURN_COPY(found);
    }
    zend_string *whole = name_of(namespace, name);
    if (found) {
        failure_throw("%s is registered already; getOrRegister finds it", ZSTR_VAL(whole));
    } else {
        asked.help = text_of(help);
        process_family *family = registry_register(opened, kind, whole, &asked);
        if (family) {
            RETVAL_OBJ(metric_new(family));
            Z_ADDREF_P(return_value);
            zend_hash_update(&this->metrics, whole, return_value);
        }
    }
    zend_string_release(whole);
}

static void return_registered(INTERNAL_FUNCTION_PARAMETERS, talea_kind kind) {
    zend_string *namespace, *name;
    ZEND_PARSE_PARAMETERS_START(2, 2)
        Z_PARAM_STR(namespace)
        Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    if (!registry_opened(ZEND_THIS)) {
        return;
    }
    zval *found = metric_find(registry_of(ZEND_THIS), kind, namespace, name);
    if (found) {
        RETURN_COPY(found);
    }
    zend_string *whole = name_of(namespace, name);
    failure_throw("%s is not registered here", ZSTR_VAL(whole));
    zend_string_release(whole);
}

#define METHODS_OF(Kind, kind) \
    ZEND_METHOD(Talea_Registry, register##Kind) { \
        return_metric(INTERNAL_FUNCTION_PARAM_PASSTHRU, kind, REGISTER); \
    } \
    ZEND_METHOD(Talea_Registry, getOrRegister##Kind) { \
        return_metric(INTERNAL_FUNCTION_PARAM_PASSTHRU, kind, GET_OR_REGISTER); \
    } \
    ZEND_METHOD(Talea_Registry, get##Kind) { \
        return_registered(INTERNAL_FUNCTION_PARAM_PASSTHRU, kind); \
    }

METHODS_OF(Counter, TALEA_KIND_FLOAT_COUNTER)
METHODS_OF(Gauge, TALEA_KIND_GAUGE)
METHODS_OF(Histogram, TALEA_KIND_HISTOGRAM)
METHODS_OF(Summary, TALEA_KIND_SUMMARY)

ZEND_METHOD(Talea_Registry, render) {
    zend_string *accept = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR_OR_NULL(accept)
    ZEND_PARSE_PARAMETERS_END();
    const talea_registry *registry = opened(ZEND_THIS);
    if (!registry) {
        return;
    }
    zend_string *page = page_of(registry, text_of(accept));
    if (page) {
        RETVAL_STR(page);
    }
}

ZEND_METHOD(Talea_Registry, contentType) {
    zend_string *accept = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR_OR_NULL(accept)
    ZEND_PARSE_PARAMETERS_END();
    char type[256];
    size_t len = 0;
    talea_status status = talea_content_type(text_of(accept), type, sizeof type, &len);
    if (status != TALEA_STATUS_OK) {
        failure_of_status(status);
        return;
    }
    RETVAL_STRINGL(type, len);
}

ZEND_METHOD(Talea_Registry, families) {
    double now = 0;
    bool is_now = true;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE_OR_NULL(now, is_now)
    ZEND_PARSE_PARAMETERS_END();
    const talea_registry *registry = opened(ZEND_THIS);
    if (registry) {
        array_init(return_value);
        families_read(registry, text_of(NULL), is_now ? NULL : &now, NULL, return_value);
    }
}

ZEND_METHOD(Talea_Registry, eachFamily) {
    families_taker take;
    double now = 0;
    bool is_now = true;
    zend_string *name = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 3)
        Z_PARAM_FUNC(take.call, take.cache)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE_OR_NULL(now, is_now)
        Z_PARAM_STR_OR_NULL(name)
    ZEND_PARSE_PARAMETERS_END();
    const talea_registry *registry = opened(ZEND_THIS);
    if (registry) {
        families_read(registry, text_of(name), is_now ? NULL : &now, &take, NULL);
    }
}

ZEND_METHOD(Talea_Registry, wipe) {
    ZEND_PARSE_PARAMETERS_NONE();
    const talea_registry *registry = opened(ZEND_THIS);
    if (!registry) {
        return;
    }
    talea_status status = talea_wipe(registry, text_of(NULL));
    if (status != TALEA_STATUS_OK) {
        failure_of_status(status);
    }
}

ZEND_METHOD(Talea_Registry, unregister) {
    zend_string *name = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR_OR_NULL(name)
    ZEND_PARSE_PARAMETERS_END();
    const talea_registry *registry = opened(ZEND_THIS);
    if (!registry) {
        return;
    }
    if (name && ZSTR_LEN(name) == 0) {
        failure_throw("the name of the family is empty; leave it out for all");
        return;
    }
    size_t ended = 0;
    talea_status status = talea_unregister(registry, text_of(name), &ended);
    if (status != TALEA_STATUS_OK) {
        failure_of_status(status);
        return;
    }
    /* So that ended families are registered again at their next use. */
    zend_hash_clean(&registry_of(ZEND_THIS)->metrics);
    process_ask_again(registry_of(ZEND_THIS)->registry);
    RETVAL_LONG((zend_long) ended);
}

/* The metric of a kind that was registered here, or null. Its name is built on the stack: a string
 * would cost more than the look-up. */
static zval *metric_find(registry *this, talea_kind kind, zend_string *namespace,
    zend_string *name) {
    char place[256];
    size_t len = ZSTR_LEN(namespace) + 1 + ZSTR_LEN(name);
    zval *found;
    if (ZSTR_LEN(namespace) == 0) {
        found = zend_hash_find(&this->metrics, name);
    } else if (EXPECTED(len <= sizeof place)) {
        memcpy(place, ZSTR_VAL(namespace), ZSTR_LEN(namespace));
        place[ZSTR_LEN(namespace)] = '_';
        memcpy(place + ZSTR_LEN(namespace) + 1, ZSTR_VAL(name), ZSTR_LEN(name));
        found = zend_hash_str_find(&this->metrics, place, len);
    } else {
        zend_string *whole = name_of(namespace, name);
        found = zend_hash_find(&this->metrics, whole);
        zend_string_release(whole);
    }
    return found && metric_family(found)->kind == kind ? found : NULL;
}

/* The caller releases it. */
static zend_string *name_of(zend_string *namespace, zend_string *name) {
    if (ZSTR_LEN(namespace) == 0) {
        return zend_string_copy(name);
    }
    return zend_string_concat3(ZSTR_VAL(namespace), ZSTR_LEN(namespace), "_", 1, ZSTR_VAL(name),
        ZSTR_LEN(name));
}

process_family *registry_register(process_registry *registry, talea_kind kind, zend_string *name,
    const asked *asked) {
    talea_family_options options = {
        .size = sizeof options,
        .kind = kind,
        .name = text_of(name),
        .help = asked->help,
        /* No process of PHP keeps a series, so all would expire. And names are those that the
           library accepts: its own `php_info` is a gauge. A process answers requests of the code
           before a deploy and of that after it. */
        .flags = TALEA_FAMILY_PERMANENT | TALEA_FAMILY_LENIENT_NAMES | TALEA_FAMILY_UNSTRIPED
            | TALEA_FAMILY_ALLOW_OTHERS,
        .limit = asked->limit ? asked->limit : (uint64_t) TALEA_G(max_series),
    };
    if (asked->window_seconds < 1) {
        failure_throw("maxAgeSeconds of %s is " ZEND_LONG_FMT "; expected 1 or more",
            ZSTR_VAL(name), asked->window_seconds);
        return NULL;
    }
    double *numbers = NULL;
    bool is_histogram = kind == TALEA_KIND_HISTOGRAM;
    if (asked->numbers) {
        numbers = doubles_of(is_histogram ? "bucket" : "quantile", asked->numbers);
        if (!numbers) {
            return NULL;
        }
    }
    if (is_histogram) {
        options.buckets = numbers ? numbers : DEFAULT_BUCKETS;
        options.bucket_count =
            numbers ? zend_hash_num_elements(asked->numbers) : COUNT_OF(DEFAULT_BUCKETS);
    } else if (kind == TALEA_KIND_SUMMARY) {
        options.quantiles = numbers ? numbers : DEFAULT_QUANTILES;
        options.quantile_count =
            numbers ? zend_hash_num_elements(asked->numbers) : COUNT_OF(DEFAULT_QUANTILES);
        options.window_seconds = asked->window_seconds;
        /* Workers are replaced sooner than a window is over. */
        options.flags |= TALEA_FAMILY_SAMPLED;
    }
    process_family *family = NULL;
    uint32_t label_count = asked->labels ? zend_hash_num_elements(asked->labels) : 0;
    talea_text *labels = label_count ? texts_of(asked->labels) : NULL;
    if (!label_count || labels) {
        options.label_names = labels;
        options.label_count = label_count;
        family = process_register(registry, name, &options);
    }
    if (labels) {
        efree(labels);
    }
    if (numbers) {
        efree(numbers);
    }
    return family;
}

/* Null after an exception. */
static talea_text *texts_of(HashTable *labels) {
    talea_text *texts = safe_emalloc(zend_hash_num_elements(labels), sizeof *texts, 0);
    talea_text *next = texts;
    zval *label;
    ZEND_HASH_FOREACH_VAL(labels, label) {
        ZVAL_DEREF(label);
        if (Z_TYPE_P(label) != IS_STRING) {
            failure_throw("the name of a label is of the type %s; expected a string",
                zend_zval_type_name(label));
            efree(texts);
            return NULL;
        }
        *next++ = text_of(Z_STR_P(label));
    } ZEND_HASH_FOREACH_END();
    return texts;
}

/* Null after an exception. */
static double *doubles_of(const char *what, HashTable *numbers) {
    uint32_t count = zend_hash_num_elements(numbers);
    if (count == 0) {
        failure_throw("there is no %s; give at least one, or null for the defaults", what);
        return NULL;
    }
    double *doubles = safe_emalloc(count, sizeof *doubles, 0);
    double *next = doubles;
    zval *number;
    ZEND_HASH_FOREACH_VAL(numbers, number) {
        ZVAL_DEREF(number);
        if (!number_of(number, next)) {
            failure_throw("a %s is of the type %s; expected a number", what,
                zend_zval_type_name(number));
            efree(doubles);
            return NULL;
        }
        next++;
    } ZEND_HASH_FOREACH_END();
    return doubles;
}

static zend_object *registry_create(zend_class_entry *class) {
    registry *this = zend_object_alloc(sizeof *this, class);
    zend_object_std_init(&this->std, class);
    this->std.handlers = &registry_handlers;
    this->registry = NULL;
    zend_hash_init(&this->metrics, 8, NULL, ZVAL_PTR_DTOR, 0);
    return &this->std;
}

static void registry_free(zend_object *object) {
    registry *this = (registry *) ((char *) object - XtOffsetOf(registry, std));
    zend_hash_destroy(&this->metrics);
    zend_object_std_dtor(object);
}

void registry_begin(void) {
    registry_class =
        class_register("Talea\\Registry", class_Talea_Registry_methods, registry_create);
    registry_handlers = *zend_get_std_object_handlers();
    registry_handlers.offset = XtOffsetOf(registry, std);
    registry_handlers.free_obj = registry_free;
    registry_handlers.clone_obj = NULL;
}
