/* Arguments of the recorder's methods, as in talea.stub.php. */

ZEND_BEGIN_ARG_INFO_EX(arginfo_recorder_construct, 0, 0, 1)
    ZEND_ARG_OBJ_INFO(0, registry, Talea\\Registry, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_record, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, data, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_record_at, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, data, IS_ARRAY, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, time, IS_DOUBLE, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_forget, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

ZEND_METHOD(Talea_Recorder, __construct);
ZEND_METHOD(Talea_Recorder, counter);
ZEND_METHOD(Talea_Recorder, gauge);
ZEND_METHOD(Talea_Recorder, histogram);
ZEND_METHOD(Talea_Recorder, summary);
ZEND_METHOD(Talea_Recorder, forget);

static const zend_function_entry class_Talea_Recorder_methods[] = {
    ZEND_ME(Talea_Recorder, __construct, arginfo_recorder_construct, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Recorder, counter, arginfo_record, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Recorder, gauge, arginfo_record, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Recorder, histogram, arginfo_record, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Recorder, summary, arginfo_record_at, ZEND_ACC_PUBLIC)
    ZEND_ME(Talea_Recorder, forget, arginfo_forget, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};
