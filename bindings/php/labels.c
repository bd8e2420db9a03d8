/* Label values: any scalar, null, and objects with a text. */
#include "php_talea.h"

static zend_string *made_of(zval *value);

bool labels_take_some(label_values *labels, const process_family *family, HashTable *given) {
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
    zval *value;
    ZEND_HASH_FOREACH_VAL(given, value) {
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
