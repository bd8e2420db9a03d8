/* Arguments of the registry's methods, as in talea.stub.php. */

ZEND_BEGIN_ARG_INFO_EX(arginfo_registry_construct, 0, 0, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, path, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_registerCounter, 0, 3, Talea\\Counter, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, help, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_getCounter, 0, 2, Talea\\Counter, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_registerGauge, 0, 3, Talea\\Gauge, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, help, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_getGauge, 0, 2, Talea\\Gauge, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_registerHistogram, 0, 3, Talea\\Histogram, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, help, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, buckets, IS_ARRAY, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_getHistogram, 0, 2, Talea\\Histogram, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_registerSummary, 0, 3, Talea\\Summary, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, help, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, maxAgeSeconds, IS_LONG, 0, "600")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, quantiles, IS_ARRAY, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_getSummary, 0, 2, Talea\\Summary, 0)
    ZEND_ARG_TYPE_INFO(0, namespace, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_for_accept, 0, 0, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, accept, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_families, 0, 0, IS_ARRAY, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, now, IS_DOUBLE, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_eachFamily, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, take, IS_CALLABLE, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, now, IS_DOUBLE, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, name, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_wipe, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_unregister, 0, 0, IS_LONG, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, name, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_METHOD(Talea_Registry, __construct);
ZEND_METHOD(Talea_Registry, registerCounter);
ZEND_METHOD(Talea_Registry, getOrRegisterCounter);
ZEND_METHOD(Talea_Registry, getCounter);
ZEND_METHOD(Talea_Registry, registerGauge);
ZEND_METHOD(Talea_Registry, getOrRegisterGauge);
ZEND_METHOD(Talea_Registry, getGauge);
ZEND_METHOD(Talea_Registry, registerHistogram);
ZEND_METHOD(Talea_Registry, getOrRegisterHistogram);
ZEND_METHOD(Talea_Registry, getHistogram);
ZEND_METHOD(Talea_Registry, registerSummary);
ZEND_METHOD(Talea_Registry, getOrRegisterSummary);
ZEND_METHOD(Talea_Registry, getSummary);
ZEND_METHOD(Talea_Registry, render);
ZEND_METHOD(Talea_Registry, contentType);
ZEND_METHOD(Talea_Registry, families);
ZEND_METHOD(Talea_Registry, eachFamily);
ZEND_METHOD(Talea_Registry, wipe);
ZEND_METHOD(Talea_Registry, unregister);

static const zend_function_entry class_Talea_Registry_methods[] = {
    ZEND_ME(Talea_Registry, __construct, arginfo_registry_construct, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, registerCounter, arginfo_registerCounter, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getOrRegisterCounter, arginfo_registerCounter, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getCounter, arginfo_getCounter, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, registerGauge, arginfo_registerGauge, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getOrRegisterGauge, arginfo_registerGauge, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getGauge, arginfo_getGauge, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, registerHistogram, arginfo_registerHistogram, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getOrRegisterHistogram, arginfo_registerHistogram, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getHistogram, arginfo_getHistogram, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, registerSummary, arginfo_registerSummary, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getOrRegisterSummary, arginfo_registerSummary, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, getSummary, arginfo_getSummary, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, render, arginfo_for_accept, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, contentType, arginfo_for_accept, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    ZEND_ME(Talea_Registry, families, arginfo_families, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, eachFamily, arginfo_eachFamily, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, wipe, arginfo_wipe, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Registry, unregister, arginfo_unregister, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};
