/* Arguments of the metrics' methods, as in talea.stub.php. */

ZEND_BEGIN_ARG_INFO_EX(arginfo_metric_construct, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_metric_one, 0, 0, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_counter_incBy, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_MASK(0, count, MAY_BE_LONG | MAY_BE_DOUBLE, NULL)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_gauge_number, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_MASK(0, value, MAY_BE_LONG | MAY_BE_DOUBLE, NULL)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_observe, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, value, IS_DOUBLE, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_counter_noteName, 0, 1, IS_VOID, 0)
    ZEND_ARG_OBJ_INFO(0, gauge, Talea\\Gauge, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_summary_observe, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, value, IS_DOUBLE, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, time, IS_DOUBLE, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_remove, 0, 0, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, labels, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_METHOD(Talea_Counter, __construct);
ZEND_METHOD(Talea_Counter, remove);
ZEND_METHOD(Talea_Counter, inc);
ZEND_METHOD(Talea_Counter, incBy);
ZEND_METHOD(Talea_Counter, noteName);
ZEND_METHOD(Talea_Gauge, __construct);
ZEND_METHOD(Talea_Gauge, remove);
ZEND_METHOD(Talea_Gauge, set);
ZEND_METHOD(Talea_Gauge, inc);
ZEND_METHOD(Talea_Gauge, incBy);
ZEND_METHOD(Talea_Gauge, dec);
ZEND_METHOD(Talea_Gauge, decBy);
ZEND_METHOD(Talea_Histogram, __construct);
ZEND_METHOD(Talea_Histogram, remove);
ZEND_METHOD(Talea_Histogram, observe);
ZEND_METHOD(Talea_Summary, __construct);
ZEND_METHOD(Talea_Summary, remove);
ZEND_METHOD(Talea_Summary, observe);

static const zend_function_entry class_Talea_Counter_methods[] = {
    ZEND_ME(Talea_Counter, __construct, arginfo_metric_construct, ZEND_ACC_PRIVATE)
    ZEND_ME(Talea_Counter, remove, arginfo_remove, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Counter, inc, arginfo_metric_one, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Counter, incBy, arginfo_counter_incBy, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Counter, noteName, arginfo_counter_noteName, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};

static const zend_function_entry class_Talea_Gauge_methods[] = {
    ZEND_ME(Talea_Gauge, __construct, arginfo_metric_construct, ZEND_ACC_PRIVATE)
    ZEND_ME(Talea_Gauge, remove, arginfo_remove, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Gauge, set, arginfo_gauge_number, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Gauge, inc, arginfo_metric_one, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Gauge, incBy, arginfo_gauge_number, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Gauge, dec, arginfo_metric_one, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Gauge, decBy, arginfo_gauge_number, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};

static const zend_function_entry class_Talea_Histogram_methods[] = {
    ZEND_ME(Talea_Histogram, __construct, arginfo_metric_construct, ZEND_ACC_PRIVATE)
    ZEND_ME(Talea_Histogram, remove, arginfo_remove, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Histogram, observe, arginfo_observe, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};

static const zend_function_entry class_Talea_Summary_methods[] = {
    ZEND_ME(Talea_Summary, __construct, arginfo_metric_construct, ZEND_ACC_PRIVATE)
    ZEND_ME(Talea_Summary, remove, arginfo_remove, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Summary, observe, arginfo_summary_observe, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};
