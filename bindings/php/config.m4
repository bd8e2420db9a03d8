dnl --with-talea=DIR: DIR/include/talea.h and DIR/lib/libtalea_ffi.a, which is linked in.
PHP_ARG_WITH([talea],
  [for metrics in shared memory],
  [AS_HELP_STRING([--with-talea=DIR], [Metrics in shared memory; DIR holds include/talea.h and lib/libtalea_ffi.a])])

if test "$PHP_TALEA" != "no"; then
  if test "$PHP_TALEA" = "yes"; then
    PHP_TALEA=/usr/local
  fi
  TALEA_LIBRARY="$PHP_TALEA/lib/libtalea_ffi.a"
  if test ! -r "$PHP_TALEA/include/talea.h" || test ! -r "$TALEA_LIBRARY"; then
    AC_MSG_ERROR([$PHP_TALEA has no include/talea.h, or no lib/libtalea_ffi.a; say --with-talea=DIR])
  fi

  PHP_ADD_INCLUDE([$PHP_TALEA/include])
  dnl The library's own names stay inside: another extension may bring another copy.
  TALEA_SHARED_LIBADD="$TALEA_LIBRARY -Wl,--exclude-libs,ALL -lpthread -ldl -lm -lgcc_s -lutil -lrt"
  PHP_SUBST([TALEA_SHARED_LIBADD])

  PHP_NEW_EXTENSION([talea],
    [talea.c registry.c recorder.c metrics.c process.c labels.c page.c families.c group.c private_region.c failure.c],
    [$ext_shared],,
    [-Wall -Wextra -Wno-unused-parameter -fvisibility=hidden -DZEND_ENABLE_STATIC_TSRMLS_CACHE=1])
fi
