/* Label values: any scalar, null, and objects with a text. */
#include "php_talea.h"

static zend_string *made_of(zval *value);
static bool are_keys_names(HashTable *given);
static void fail_without(const process_family *family, talea_text name, HashTable *given);

bool labels_take_some(label_values *labels, const process_family *family, HashTable *given,
    label_order order) {
    uint32_t count = given ? zend_hash_num_elements(given) : 0;
    labels->count = 0;
    labels->values = labels->values_in_place;
    labels->made = labels->made_in_place;
    if (UNEXPECTED(count != family->label_count)) {
        failure_throw("%s has %u label%s, and %u label value%s given", family->options.name.data,
            family->label_count, family->label_count == 1 ? "" : "s", count,
            count == 1 ? " was" : "s were");
        return false;
    }
    if (UNEXPECTED(count > LABELS_IN_PLACE)) {
        labels->values = safe_emalloc(count, sizeof(talea_text), 0);
        labels->made = safe_emalloc(count, sizeof(zend_string *), 0);
    }
    bool are_named = order == LABELS_BY_NAME && are_keys_names(given);
    zval *value;
    ZEND_HASH_FOREACH_VAL(given, value) {
        if (UNEXPECTED(are_named)) {
            talea_text name = family->options.label_names[labels->count];
            value = zend_hash_str_find(given, name.data, name.len);
            if (!value) {
                fail_without(family, name, given);
                labels_free_some(labels);
                return false;
            }
        }
        ZVAL_DEREF(value);
        zend_string *string =
            Z_TYPE_P(value) == IS_STRING ? zend_string_copy(Z_STR_P(value)) : made_of(value);
        if (UNEXPECTED(string == NULL)) {
            if (!EG(exception)) {
                failure_throw("the label %s of %s is of the type %s; expected a string, a number, "
                    "a boolean or null", family->options.label_names[labels->count].data,
                    family->options.name.data, zend_zval_type_name(value));
            }
            labels_free_some(labels);
            return false;
        }
        labels->made[labels->count] = string;
        labels->values[labels->count] = text_of(string);
        labels->count++;
    } ZEND_HASH_FOREACH_END();
    return true;
}

/* Whether values are given by names: a list, and what is left of one by a filter, has numbers. */
static bool are_keys_names(HashTable *given) {
    zend_string *key;
    if (HT_IS_PACKED(given)) {
        return false;
    }
    ZEND_HASH_FOREACH_STR_KEY(given, key) {
        if (key) {
            return true;
        }
    } ZEND_HASH_FOREACH_END();
    return false;
}

/* There are as many values as labels, but none for this name: a key is no label, or a number. */
static void fail_without(const process_family *family, talea_text name, HashTable *given) {
    zend_string *key;
    zend_ulong number;
    ZEND_HASH_FOREACH_KEY(given, number, key) {
        bool is_label = false;
        for (uint32_t i = 0; key && i < family->label_count && !is_label; i++) {
            talea_text label = family->options.label_names[i];
            is_label = ZSTR_LEN(key) == label.len && memcmp(ZSTR_VAL(key), label.data, label.len) == 0;
        }
        if (!key) {
            failure_throw("a label value of %s has the key " ZEND_ULONG_FMT ", and another one has a name; "
                "give all values by label names, or all in the labels' order", family->options.name.data, number);
            return;
        }
        if (!is_label) {
            failure_throw("%s has no label %s; the label %s has no value", family->options.name.data,
                ZSTR_VAL(key), name.data);
            return;
        }
    } ZEND_HASH_FOREACH_END();
}

void labels_free_some(label_values *labels) {
    for (uint32_t i = 0; i < labels->count; i++) {
        zend_string_release(labels->made[i]);
    }
    if (UNEXPECTED(labels->values != labels->values_in_place)) {
        efree(labels->values);
        efree(labels->made);
    }
}

/* The text of a value. Null, false and the empty string differ; so do true and 1. Null if the type
 * has no text. */
static zend_string *made_of(zval *value) {
    switch (Z_TYPE_P(value)) {
        case IS_NULL:
            return zend_string_init("null", 4, 0);
        case IS_FALSE:
            return zend_string_init("false", 5, 0);
        case IS_TRUE:
            return zend_string_init("true", 4, 0);
        case IS_LONG:
        case IS_DOUBLE:
            return zval_get_string(value);
        case IS_OBJECT:
            return Z_OBJCE_P(value)->__tostring ? zval_try_get_string(value) : NULL;
        default:
            return NULL;
    }
}
