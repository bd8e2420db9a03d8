/* A server's processes that count each for itself, because no file was named: one line says so.
 *
 * Workers get the settings of their pool when they are forked, and are replaced often. So the line
 * is written by the first process that has opened memory of its own, and marked where the others see it. */
#include "php_talea.h"
#include "SAPI.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <syslog.h>
#include <unistd.h>

/* Shared with all that are forked later. Null where there is no memory for it. */
static atomic_flag *reported;

/* That which forks the others: what it opens, say while it preloads, they share. */
static pid_t first;

/* Whether requests of this server are answered by processes side by side. */
static bool has_processes(void) {
    static const char *const servers[] = { "fpm-fcgi", "apache2handler", "cgi-fcgi", "litespeed" };
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        if (strcmp(sapi_module.name, servers[i]) == 0) {
            return true;
        }
    }
    return false;
}

void private_region_begin(void) {
    if (reported || !has_processes()) {
        return;
    }
    first = getpid();
    void *page = mmap(NULL, sizeof *reported, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    reported = page == MAP_FAILED ? NULL : page;
}

void private_region_end(void) {
    if (reported) {
        munmap(reported, sizeof *reported);
        reported = NULL;
    }
}

/* A warning of PHP's would be shown to users, or made an exception of. */
void private_region_opened(void) {
    if (reported && getpid() != first && !atomic_flag_test_and_set(reported)) {
        php_log_err_with_severity("talea: no region is configured, so each process of this server "
            "counts for itself, and a scrape shows what one of them counted; set talea.region in "
            "php.ini or in the pool to a file on tmpfs, such as /dev/shm/shop.talea", LOG_WARNING);
    }
}
