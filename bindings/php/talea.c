/* The module: its settings, its begin and its end. */
#ifdef HAVE_CONFIG_H
# include "config.h"
#endif

#include "php_talea.h"
#include "php_ini.h"
#include "ext/standard/info.h"
#include "ext/spl/spl_exceptions.h"

ZEND_DECLARE_MODULE_GLOBALS(talea)

#if defined(ZTS) && defined(COMPILE_DL_TALEA)
ZEND_TSRMLS_CACHE_DEFINE()
#endif

static ZEND_INI_MH(on_max_series) {
    zend_long wanted = ZEND_STRTOL(ZSTR_VAL(new_value), NULL, 10);
    if (wanted < 1) {
        zend_error(E_WARNING, "talea.max_series is %s; expected 1 or more", ZSTR_VAL(new_value));
        return FAILURE;
    }
    return OnUpdateLong(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
}

static ZEND_INI_MH(on_size) {
    zend_long *size = (zend_long *) ZEND_INI_GET_ADDR();
    zend_result result = OnUpdateLong(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
    if (*size < 0) {
        zend_error(E_WARNING, "talea.size is %s; expected bytes, such as 256M, or 0",
            ZSTR_VAL(new_value));
        *size = 0;
        return FAILURE;
    }
    return result;
}

/* The modes that the library can give to a new file. */
static ZEND_INI_MH(on_mode) {
    char *end;
    zend_long wanted = ZEND_STRTOL(ZSTR_VAL(new_value), &end, 8);
    if (*end || (wanted != 0600 && wanted != 0640)) {
        zend_error(E_WARNING, "talea.mode is %s; expected 0600, or 0640 for a group that reads",
            ZSTR_VAL(new_value));
        return FAILURE;
    }
    *(zend_long *) ZEND_INI_GET_ADDR() = wanted;
    return SUCCESS;
}

PHP_INI_BEGIN()
    STD_PHP_INI_ENTRY("talea.region", "", PHP_INI_SYSTEM, OnUpdateString, region,
        zend_talea_globals, talea_globals)
    STD_PHP_INI_ENTRY("talea.size", "0", PHP_INI_SYSTEM, on_size, size,
        zend_talea_globals, talea_globals)
    STD_PHP_INI_ENTRY("talea.mode", "0600", PHP_INI_SYSTEM, on_mode, mode,
        zend_talea_globals, talea_globals)
    STD_PHP_INI_ENTRY("talea.group", "", PHP_INI_SYSTEM, OnUpdateString, group,
        zend_talea_globals, talea_globals)
    STD_PHP_INI_ENTRY("talea.max_series", "10000", PHP_INI_SYSTEM, on_max_series, max_series,
        zend_talea_globals, talea_globals)
PHP_INI_END()

static PHP_GINIT_FUNCTION(talea) {
#if defined(ZTS) && defined(COMPILE_DL_TALEA)
    ZEND_TSRMLS_CACHE_UPDATE();
#endif
    talea_globals->region = talea_globals->group = NULL;
    talea_globals->size = talea_globals->mode = 0;
    talea_globals->max_series = 0;
}

static PHP_GSHUTDOWN_FUNCTION(talea) {
    (void) talea_globals;
    page_end();
}

static PHP_MINIT_FUNCTION(talea) {
    if (talea_abi_version() != TALEA_ABI_VERSION) {
        zend_error(E_CORE_ERROR, "talea was built with the header of another library: ABI %u, "
            "expected %u", talea_abi_version(), TALEA_ABI_VERSION);
        return FAILURE;
    }
    REGISTER_INI_ENTRIES();
    private_region_begin();
    process_begin();
    failure_begin();
    metrics_begin();
    registry_begin();
    recorder_begin();
    families_begin();
    return SUCCESS;
}

static PHP_MSHUTDOWN_FUNCTION(talea) {
    process_end();
    private_region_end();
    UNREGISTER_INI_ENTRIES();
    return SUCCESS;
}

static PHP_RINIT_FUNCTION(talea) {
#if defined(ZTS) && defined(COMPILE_DL_TALEA)
    ZEND_TSRMLS_CACHE_UPDATE();
#endif
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(talea) {
    php_info_print_table_start();
    php_info_print_table_row(2, "talea", "enabled");
    php_info_print_table_row(2, "version", PHP_TALEA_VERSION);
    php_info_print_table_end();
    DISPLAY_INI_ENTRIES();
}

static const zend_module_dep dependencies[] = {
    ZEND_MOD_REQUIRED("spl")
    ZEND_MOD_END
};

zend_module_entry talea_module_entry = {
    STANDARD_MODULE_HEADER_EX,
    NULL,
    dependencies,
    "talea",
    NULL,
    PHP_MINIT(talea),
    PHP_MSHUTDOWN(talea),
    PHP_RINIT(talea),
    NULL,
    PHP_MINFO(talea),
    PHP_TALEA_VERSION,
    PHP_MODULE_GLOBALS(talea),
    PHP_GINIT(talea),
    PHP_GSHUTDOWN(talea),
    NULL,
    STANDARD_MODULE_PROPERTIES_EX,
};

#ifdef COMPILE_DL_TALEA
ZEND_GET_MODULE(talea)
#endif
