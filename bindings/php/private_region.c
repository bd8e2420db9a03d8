/* Processes of a server that have a region each, because no file is configured: one line reports it.
 *
 * Workers get the settings of their pool when they are forked, and are replaced often. So the first
 * process that opens private memory writes the line, and sets a flag that all others share. */
#include "php_talea.h"
#include "SAPI.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <syslog.h>
#include <unistd.h>

/* Shared with all processes that are forked later. Null if there is no memory for it. */
static atomic_flag *reported;

/* The process that forks the others: they share the regions that it opens, as in preloading. */
static pid_t first;

/* Whether several processes of this server answer requests. */
static bool has_processes(void) {
    static const char *const servers[] =
        { "fpm-fcgi", "apache2handler", "cgi-fcgi", "litespeed", "cli-server" };
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

/* PHP might show a warning of its own to users, or turn it into an exception. */
void private_region_opened(void) {
    if (reported && getpid() != first && !atomic_flag_test_and_set(reported)) {
        php_log_err_with_severity("talea: no region is configured, so each process of this server "
            "counts for itself, and a scrape shows what one of them counted; set talea.region in "
            "php.ini or in the pool to a file on tmpfs, such as /dev/shm/shop.talea", LOG_WARNING);
    }
}
