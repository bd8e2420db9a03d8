/* Talea for PHP: declarations that the files of the extension share. */
#ifndef PHP_TALEA_H
#define PHP_TALEA_H

#include "php.h"
#include "talea.h"

#define PHP_TALEA_VERSION "0.1.0"

extern zend_module_entry talea_module_entry;
#define phpext_talea_ptr &talea_module_entry

ZEND_BEGIN_MODULE_GLOBALS(talea)
    /* The settings of these names. */
    char *region;
    zend_long mode;
    char *group;
    /* Bytes of a new file; 0: the library decides. */
    zend_long size;
    zend_long max_series;
ZEND_END_MODULE_GLOBALS(talea)

ZEND_EXTERN_MODULE_GLOBALS(talea)
#define TALEA_G(v) ZEND_MODULE_GLOBALS_ACCESSOR(talea, v)

#if defined(ZTS) && defined(COMPILE_DL_TALEA)
ZEND_TSRMLS_CACHE_EXTERN()
#endif

/* process.c: objects of the process, shared by its requests and threads. */

/* A region that was opened, and the families that were registered in it, by their names as they
 * were given: the first of each name leads to those of other definitions. */
typedef struct {
    const talea_registry *registry;
    HashTable families;
} process_registry;

/* A registered family. If one thread registers it again while others record in it, these use the
 * earlier handle or the later one. */
typedef struct process_family {
    /* Null if the region had no room for it: its updates are discarded. */
    const talea_family *_Atomic family;
    /* Copies from the options, beside the handle: each update reads all three. */
    uint32_t kind;
    uint32_t label_count;
    process_registry *registry;
    /* A gauge in which its name is noted whenever it is registered, or null. */
    struct process_family *notes;
    /* Another definition of the same name, or null. */
    struct process_family *next;
    /* The options of its registration. Its texts end with a zero. */
    talea_family_options options;
    /* The second of the last registration that found no room; 0: it may ask again. */
    uint64_t asked_at;
} process_family;

void process_begin(void);
void process_end(void);

/* The region of a path; if that is null, of talea.region, else of TALEA_REGION, else memory of
 * this process, which a line in the log reports as a mistake if a server has many processes. Null
 * after an exception. */
process_registry *process_open(zend_string *path);

/* Registers a family of a name, or finds one with the same definition. Null after an exception. */
process_family *process_register(process_registry *registry, zend_string *name,
    const talea_family_options *options);

/* Registers a family again that any process ended; once a second, one that there was no room for. */
void process_revive(process_family *family);

/* The handle that records in a family; null if there is no room for it. */
static inline const talea_family *process_there(process_family *family) {
    if (UNEXPECTED(talea_is_ended(family->family))) {
        process_revive(family);
    }
    return family->family;
}

/* Has a gauge with one label note the family's name, now and whenever it is registered again. */
void process_note(process_family *family, process_family *notes);

/* Lets families without room ask again: there may be room now. */
void process_ask_again(process_registry *registry);

/* labels.c: label values. */

enum { LABELS_IN_PLACE = 8 };

typedef struct {
    talea_text *values;
    uint32_t count;
    /* Strings that hold the texts. */
    zend_string **made;
    talea_text values_in_place[LABELS_IN_PLACE];
    zend_string *made_in_place[LABELS_IN_PLACE];
} label_values;

/* Whether keys of an array that are texts are names of labels. */
typedef enum {
    LABELS_BY_NAME,
    /* As promphp/prometheus_client_php takes them, whatever keys they have. */
    LABELS_IN_ORDER,
} label_order;

bool labels_take_some(label_values *labels, const process_family *family, HashTable *given,
    label_order order);
void labels_free_some(label_values *labels);

/* The values of a call, which may be null. The caller holds the array: an object's code may do anything.
 * False after an exception; else labels_free ends it. */
static inline bool labels_take(label_values *labels, const process_family *family,
    HashTable *given, label_order order) {
    if (family->label_count == 0 && (!given || zend_hash_num_elements(given) == 0)) {
        labels->values = NULL;
        labels->count = 0;
        return true;
    }
    return labels_take_some(labels, family, given, order);
}

static inline void labels_free(label_values *labels) {
    if (labels->count > 0) {
        labels_free_some(labels);
    }
}

/* metrics.c: the classes of metrics. */

void metrics_begin(void);
zend_object *metric_new(process_family *family);
process_family *metric_family(zval *metric);

/* Records a value in the series of the label values, which may be null. */
void metric_record(process_family *family, talea_operation operation, double value,
    HashTable *labels, label_order order);
/* Observes a value at another time, in seconds since 1970. */
void metric_observe_at(process_family *family, double value, HashTable *labels, label_order order,
    double time);

/* registry.c: the class Registry. */

/* The options of a registration beside its kind and name. Null are no labels, and the defaults of
 * buckets or quantiles. */
typedef struct {
    talea_text help;
    HashTable *labels;
    HashTable *numbers;
    zend_long window_seconds;
    /* The most series; 0: talea.max_series. */
    uint64_t limit;
} asked;

void registry_begin(void);
/* Null after an exception: the constructor of a Registry was not called. */
process_registry *registry_opened(zval *registry);
extern zend_class_entry *registry_class;
/* Null after an exception. */
process_family *registry_register(process_registry *registry, talea_kind kind, zend_string *name,
    const asked *asked);

/* recorder.c: the class Recorder. */

void recorder_begin(void);

/* page.c: the text of a scrape. */

/* Gives back the memory that this thread keeps for the next one. */
void page_end(void);

/* Null after an exception. */
zend_string *page_of(const talea_registry *registry, talea_text accept);

/* families.c: the values as arrays. */

/* A function of PHP that takes families. */
typedef struct {
    zend_fcall_info call;
    zend_fcall_info_cache cache;
} families_taker;

void families_begin(void);
/* Reads the family of a name, or all if it is empty, as of a time in seconds since 1970 or now: adds
 * each to an array, or, if that is null, hands it to a function. */
void families_read(const talea_registry *registry, talea_text name, const double *now,
    families_taker *taker, zval *into);

/* group.c: the group that may read a region. */

enum { MESSAGE = 1024 };

/* The number of talea.group, which is a name or a number; if it is empty, of the group of this
 * process. False, with a message, if there is no such group. */
bool group_number(const char *group, uint32_t *number, char message[MESSAGE]);

/* private_region.c: a server's processes that share no region. */

void private_region_begin(void);
void private_region_end(void);

/* Memory of this process was opened: writes a line to the log, once for all processes of a server. */
void private_region_opened(void);

/* failure.c: exceptions. */

extern zend_class_entry *talea_exception;

void failure_begin(void);
void failure_throw(const char *format, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
/* The text of a status, for a call that has no message. */
void failure_of_status(talea_status status);

/* Registers a class that code of PHP cannot extend, and whose objects have no further properties. */
static inline zend_class_entry *class_register(const char *name,
    const zend_function_entry *methods, zend_object *(*create)(zend_class_entry *)) {
    zend_class_entry class;
    INIT_CLASS_ENTRY_EX(class, name, strlen(name), methods);
    zend_class_entry *registered = zend_register_internal_class(&class);
    registered->ce_flags |=
        ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    registered->create_object = create;
    return registered;
}

/* Newer PHPs note that the memory limit is reached, and end the request once the function has returned. Until
 * then they give memory up to the double, and end the process beyond that. Others jump. */
#ifdef ZEND_HAS_OOM
static inline bool is_over_limit(void) {
    return ZEND_HAS_OOM();
}

/* Null beyond the memory limit. */
static inline zend_string *string_alloc(size_t len) {
    return zend_string_falloc(len, false, true);
}
#else
static inline bool is_over_limit(void) {
    return false;
}

static inline zend_string *string_alloc(size_t len) {
    return zend_string_alloc(len, false);
}
#endif

/* A key of arrays, which stays. */
static inline zend_string *key_of(const char *text) {
    return zend_string_init_interned(text, strlen(text), 1);
}

/* The end of a counter's name in the region. */
#define TOTAL "_total"

static inline bool ends_with_total(talea_text name) {
    size_t end = sizeof TOTAL - 1;
    return name.len >= end && memcmp(name.data + name.len - end, TOTAL, end) == 0;
}

/* The empty text for null. */
static inline talea_text text_of(const zend_string *string) {
    return string ? (talea_text) { ZSTR_VAL(string), ZSTR_LEN(string) } : (talea_text) { NULL, 0 };
}

/* A number, or a string that is one. False if it is neither. */
static inline bool number_of(const zval *value, double *number) {
    uint8_t type = Z_TYPE_P(value);
    zend_long whole = 0;
    if (type == IS_STRING) {
        type = is_numeric_string(Z_STRVAL_P(value), Z_STRLEN_P(value), &whole, number, false);
    } else if (type == IS_LONG) {
        whole = Z_LVAL_P(value);
    } else if (type == IS_DOUBLE) {
        *number = Z_DVAL_P(value);
    }
    if (type == IS_LONG) {
        *number = (double) whole;
    }
    return type == IS_LONG || type == IS_DOUBLE;
}

/* A time in milliseconds; 0 if it cannot be one. */
static inline uint64_t millis_of(double seconds) {
    return seconds > 0 && seconds < 1e12 ? (uint64_t) (seconds * 1000) : 0;
}

#endif
