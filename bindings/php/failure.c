/* Exceptions. */
#include "php_talea.h"
#include "zend_exceptions.h"
#include "ext/spl/spl_exceptions.h"

zend_class_entry *talea_exception;

void failure_throw(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    zend_string *message = zend_vstrpprintf(0, format, arguments);
    va_end(arguments);
    zend_throw_exception(talea_exception, ZSTR_VAL(message), 0);
    zend_string_release(message);
}

void failure_of_status(talea_status status) {
    zend_throw_exception(talea_exception, talea_status_text(status), status);
}

void failure_begin(void) {
    zend_class_entry class;
    INIT_CLASS_ENTRY(class, "Talea\\Exception", NULL);
    talea_exception = zend_register_internal_class_ex(&class, spl_ce_RuntimeException);
}
