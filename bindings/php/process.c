/* Objects that live as long as the process: regions by their path, families by their definition.
 *
 * A request finds the regions and families of earlier requests. Threads share them under a lock;
 * while it is held, no function is called that PHP might leave by a jump. */
#include "php_talea.h"

#include <syslog.h>
#include <time.h>

static bool begun;
static HashTable registries;

#ifdef ZTS
# include <pthread.h>

static MUTEX_T lock;

static void hold(void) {
    tsrm_mutex_lock(lock);
}

static void unlock(void) {
    tsrm_mutex_unlock(lock);
}

/* In a child no thread would unlock a lock that another thread held. Called after the library has
 * registered its own fork handlers: a thread that forks waits for our lock first, then for its. */
static void mind_forks(void) {
    static bool minds;
    minds = minds || pthread_atfork(hold, unlock, unlock) == 0;
}

# define LOCK() hold()
# define UNLOCK() unlock()
#else
# define LOCK()
# define UNLOCK()
# define mind_forks()
#endif

static talea_status region_open(talea_text path, const talea_registry **opened,
    char message[MESSAGE]);
static bool family_register(process_family *family, char message[MESSAGE]);
static void family_revive(process_family *family, talea_text help);
static void family_note(const process_family *family);
static process_family *family_remember(const process_family *asked, zend_string *name);
static bool is_defined_alike(const talea_family_options *one, const talea_family_options *other);
static talea_text text_remember(talea_text text);
static void another_definition_report(const zend_string *name);
static bool is_counter_of(const process_registry *registry, talea_text name);
static void shared_name_report(talea_text name);

/* Seconds of the monotonic clock that costs least. */
static uint64_t now(void) {
    struct timespec time = { 0 };
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return time.tv_sec;
}

void process_begin(void) {
    /* A host that restarts its modules finds the open regions. */
    if (begun) {
        return;
    }
    begun = true;
    zend_hash_init(&registries, 4, NULL, NULL, 1);
#ifdef ZTS
    lock = tsrm_mutex_alloc();
#endif
}

void process_end(void) {
    /* The library keeps us loaded, and its regions can be neither closed nor opened again. */
    if (zend_hash_num_elements(&registries) > 0) {
        return;
    }
    begun = false;
    zend_hash_destroy(&registries);
#ifdef ZTS
    tsrm_mutex_free(lock);
#endif
}

process_registry *process_open(zend_string *path) {
    const char *configured = TALEA_G(region) ? TALEA_G(region) : "";
    const char *wanted = path ? ZSTR_VAL(path) : configured;
    size_t wanted_len = strlen(wanted);
    char message[MESSAGE] = "";
    process_registry *opened = NULL;
    bool is_alone = false;
    LOCK();
    zval *found = zend_hash_str_find(&registries, wanted, wanted_len);
    if (found) {
        opened = Z_PTR_P(found);
    } else {
        const talea_registry *registry = NULL;
        talea_text text = { wanted, wanted_len };
        if (region_open(text, &registry, message) == TALEA_STATUS_OK) {
            const char *environment = getenv("TALEA_REGION");
            is_alone = wanted_len == 0 && (!environment || !*environment);
            mind_forks();
            opened = pemalloc(sizeof *opened, 1);
            opened->registry = registry;
            zend_hash_init(&opened->families, 16, NULL, NULL, 1);
            zend_hash_str_add_new_ptr(&registries, wanted, wanted_len, opened);
        }
    }
    UNLOCK();
    if (!opened) {
        failure_throw("%s", message);
    }
    if (is_alone) {
        private_region_opened();
    }
    return opened;
}

/* If the path is empty, the environment names the path and the group. */
static talea_status region_open(talea_text path, const talea_registry **opened,
    char message[MESSAGE]) {
    if (path.len == 0) {
        return talea_open_from_environment(opened, message, MESSAGE);
    }
    talea_open_options options = {
        .size = sizeof options,
        .path = path,
        .len = (uint64_t) TALEA_G(size),
    };
    if (TALEA_G(mode) == 0640) {
        options.flags = TALEA_OPEN_READ_BY_GROUP;
        if (!group_number(TALEA_G(group), &options.group, message)) {
            return TALEA_STATUS_CANNOT_OPEN;
        }
    }
    return talea_open(&options, opened, message, MESSAGE);
}

process_family *process_register(process_registry *registry, zend_string *name,
    const talea_family_options *options) {
    char message[MESSAGE] = "";
    bool is_registered = true, is_another = false, is_shared = false;
    LOCK();
    process_family *first = zend_hash_find_ptr(&registry->families, name);
    process_family *found = first;
    while (found && !is_defined_alike(&found->options, options)) {
        found = found->next;
    }
    if (found) {
        family_revive(found, options->help);
    } else {
        process_family asked = {
            .kind = options->kind,
            .label_count = (uint32_t) options->label_count,
            .registry = registry,
            .options = *options,
        };
        is_registered = family_register(&asked, message);
        if (is_registered && first) {
            asked.next = first->next;
            asked.options.name = first->options.name;
            first->next = found = family_remember(&asked, NULL);
            is_another = true;
        } else if (is_registered) {
            found = family_remember(&asked, name);
            is_shared = options->kind == TALEA_KIND_FLOAT_COUNTER && is_counter_of(registry, options->name);
        }
    }
    UNLOCK();
    if (!is_registered) {
        failure_throw("%s", message);
    }
    if (is_another) {
        another_definition_report(name);
    }
    if (is_shared) {
        shared_name_report(options->name);
    }
    return found;
}

/* Whether a counter has this name but for `_total`, with which both names end in the region. */
static bool is_counter_of(const process_registry *registry, talea_text name) {
    char other[MESSAGE];
    size_t end = sizeof TOTAL - 1;
    if (ends_with_total(name)) {
        name.len -= end;
    } else if (name.len + end <= sizeof other) {
        memcpy(other, name.data, name.len);
        memcpy(other + name.len, TOTAL, end);
        name = (talea_text) { other, name.len + end };
    }
    const process_family *found = zend_hash_str_find_ptr(&registry->families, name.data, name.len);
    return found && found->kind == TALEA_KIND_FLOAT_COUNTER;
}

static void shared_name_report(talea_text name) {
    char line[MESSAGE];
    snprintf(line, sizeof line, "talea: the counter %.*s is also registered %s " TOTAL "; the two are one metric. "
        "Give one of them another name", (int) name.len, name.data, ends_with_total(name) ? "without" : "with");
    php_log_err_with_severity(line, LOG_WARNING);
}

/* PHP might show a warning of its own to users, or turn it into an exception. */
static void another_definition_report(const zend_string *name) {
    char line[MESSAGE];
    snprintf(line, sizeof line, "talea: %s is defined in two ways by this process; each counts by itself. "
        "If a deploy changed it, reload the server; otherwise give one of the two another name",
        ZSTR_VAL(name));
    php_log_err_with_severity(line, LOG_WARNING);
}

void process_revive(process_family *family) {
    LOCK();
    family_revive(family, family->options.help);
    UNLOCK();
}

void process_note(process_family *family, process_family *notes) {
    LOCK();
    family->notes = notes;
    family_note(family);
    UNLOCK();
}

void process_ask_again(process_registry *registry) {
    process_family *family;
    LOCK();
    ZEND_HASH_FOREACH_PTR(&registry->families, family) {
        family->asked_at = 0;
    } ZEND_HASH_FOREACH_END();
    UNLOCK();
}

/* Registers an ended family again, with the present help: until it was ended, the process kept the
 * first one. If its name has another definition by now, the family stays ended. */
static void family_revive(process_family *family, talea_text help) {
    if (!talea_is_ended(family->family) || (!family->family && family->asked_at == now())) {
        return;
    }
    char message[MESSAGE] = "";
    talea_text before = family->options.help;
    if (help.len == before.len && memcmp(help.data, before.data, help.len) == 0) {
        family_register(family, message);
        return;
    }
    process_family asked = *family;
    asked.options.help = help;
    if (family_register(&asked, message)) {
        asked.options.help = text_remember(help);
        *family = asked;
        free((char *) before.data);
    }
}

static void family_note(const process_family *family) {
    process_family *notes = family->notes;
    family_revive(notes, notes->options.help);
    const talea_family *there = notes->family;
    if (there) {
        talea_record(there, &family->options.name, 1, TALEA_OPERATION_SET, talea_double(1));
    }
}

/* False, with the library's message, if it refuses the family. */
static bool family_register(process_family *family, char message[MESSAGE]) {
    const talea_family *registered = NULL;
    talea_status status =
        talea_register(family->registry->registry, &family->options, &registered, message, MESSAGE);
    if (status == TALEA_STATUS_OK) {
        family->family = registered;
        if (family->notes) {
            family_note(family);
        }
    }
    family->asked_at = now();
    /* A full region must not end a request. */
    return status == TALEA_STATUS_OK || status == TALEA_STATUS_NO_ROOM;
}

/* Copies a family to memory that stays, in one piece but for the help, which may be replaced. Adds
 * it to the registry by its name, unless that is null. */
static process_family *family_remember(const process_family *asked, zend_string *name) {
    talea_family_options options = asked->options;
    size_t doubles = options.bucket_count + options.quantile_count;
    size_t labels = options.label_count, bytes = 0;
    for (size_t i = 0; i < labels; i++) {
        bytes += options.label_names[i].len + 1;
    }
    size_t size = sizeof *asked + labels * sizeof(talea_text) + doubles * sizeof(double) + bytes;
    process_family *family = pemalloc(size, 1);
    talea_text *names = (talea_text *) (family + 1);
    double *buckets = (double *) (names + labels);
    double *quantiles = buckets + options.bucket_count;
    char *texts = (char *) (quantiles + options.quantile_count);
    for (size_t i = 0; i < labels; i++) {
        talea_text label = options.label_names[i];
        memcpy(texts, label.data, label.len);
        texts[label.len] = 0;
        names[i] = (talea_text) { texts, label.len };
        texts += label.len + 1;
    }
    if (options.bucket_count) {
        memcpy(buckets, options.buckets, options.bucket_count * sizeof *buckets);
    }
    if (options.quantile_count) {
        memcpy(quantiles, options.quantiles, options.quantile_count * sizeof *quantiles);
    }
    *family = *asked;
    family->options.label_names = labels ? names : NULL;
    family->options.buckets = options.bucket_count ? buckets : NULL;
    family->options.quantiles = options.quantile_count ? quantiles : NULL;
    family->options.help = text_remember(options.help);
    if (name) {
        zend_string *kept = zend_string_init(ZSTR_VAL(name), ZSTR_LEN(name), 1);
        ZSTR_H(kept) = ZSTR_H(name);
        family->options.name = text_of(kept);
        zend_hash_add_new_ptr(&asked->registry->families, kept, family);
        zend_string_release(kept);
    }
    return family;
}

/* A copy with a zero at its end. */
static talea_text text_remember(talea_text text) {
    return (talea_text) { zend_strndup(text.data, text.len), text.len };
}

static bool are_equal(const double *one, const double *other, size_t count) {
    return count == 0 || memcmp(one, other, count * sizeof *one) == 0;
}

/* Of families of one name. The help is not compared: a process that ran older code keeps its own. */
static bool is_defined_alike(const talea_family_options *one, const talea_family_options *other) {
    if (one->kind != other->kind || one->flags != other->flags || one->limit != other->limit
        || one->window_seconds != other->window_seconds || one->label_count != other->label_count
        || one->bucket_count != other->bucket_count
        || one->quantile_count != other->quantile_count
        || !are_equal(one->buckets, other->buckets, one->bucket_count)
        || !are_equal(one->quantiles, other->quantiles, one->quantile_count)) {
        return false;
    }
    for (size_t i = 0; i < one->label_count; i++) {
        talea_text label = one->label_names[i], wanted = other->label_names[i];
        if (label.len != wanted.len || memcmp(label.data, wanted.data, label.len) != 0) {
            return false;
        }
    }
    return true;
}
