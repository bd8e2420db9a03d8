/* The group that may read a region. */
#include "php_talea.h"

#include <errno.h>
#include <grp.h>
#include <unistd.h>

/* The limit for an entry: groups have long lists of members. */
enum { ENTRY_AT_FIRST = 1024, ENTRY_AT_MOST = 1024 * 1024 };

static bool number_in(const char *text, uint32_t *number);

bool group_number(const char *group, uint32_t *number, char message[MESSAGE]) {
    if (!group || !*group) {
        *number = getegid();
        return true;
    }
    if (number_in(group, number)) {
        return true;
    }
    struct group entry, *found = NULL;
    int error = ERANGE;
    for (size_t size = ENTRY_AT_FIRST; error == ERANGE && size <= ENTRY_AT_MOST; size *= 4) {
        char *text = pemalloc(size, 1);
        error = getgrnam_r(group, &entry, text, size, &found);
        pefree(text, 1);
    }
    if (!found) {
        snprintf(message, MESSAGE, "talea.group names the group %s, which cannot be found%s%s; "
            "create it, or name another by its name or its number", group,
            error ? ": " : "", error ? strerror(error) : "");
        return false;
    }
    *number = entry.gr_gid;
    return true;
}

static bool number_in(const char *text, uint32_t *number) {
    char *end;
    errno = 0;
    unsigned long long read = strtoull(text, &end, 10);
    *number = (uint32_t) read;
    return *text >= '0' && *text <= '9' && !*end && errno == 0 && read < UINT32_MAX;
}
