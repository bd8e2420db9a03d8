// A host that loads a library with Talea inside, closes it, and has a thread that goes on in it.

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static talea_status (*record)(const talea_series *, uint32_t, talea_number);
static volatile int closed, stop;
static const talea_series *kept;
static uint64_t counted;
static volatile uint64_t counted_after;

static void *function(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(found != NULL);
    return found;
}

static bool adds_one(void) {
    return record(kept, TALEA_OPERATION_ADD, talea_unsigned(1)) == TALEA_STATUS_OK;
}

static void *counts(void *argument) {
    (void)argument;
    while (!stop) {
        for (int n = 0; n < 1000; n++)
            CHECK(adds_one());
        counted += 1000;
        counted_after += closed ? 1000 : 0;
    }
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    talea_status (*open)(const talea_open_options *, const talea_registry **, char *, size_t);
    talea_status (*regist)(const talea_registry *, const talea_family_options *,
                           const talea_family **, char *, size_t);
    talea_status (*keep)(const talea_family *, const talea_text *, size_t, const talea_series **);
    talea_status (*begin)(const talea_registry *, talea_text, talea_rendering **);
    talea_status (*next)(talea_rendering *, talea_text *);
    *(void **)&open = function(library, "talea_open");
    *(void **)&regist = function(library, "talea_register");
    *(void **)&keep = function(library, "talea_series_keep");
    *(void **)&record = function(library, "talea_series_record");
    *(void **)&begin = function(library, "talea_render_begin");
    *(void **)&next = function(library, "talea_render_next");

    const talea_registry *registry;
    const talea_family *family;
    CHECK(open(NULL, &registry, NULL, 0) == TALEA_STATUS_OK);
    talea_family_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.kind = TALEA_KIND_COUNTER;
    options.name = (talea_text){"orders", 6};
    options.help = (talea_text){"Orders.", 7};
    CHECK(regist(registry, &options, &family, NULL, 0) == TALEA_STATUS_OK);
    CHECK(keep(family, NULL, 0, &kept) == TALEA_STATUS_OK);

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, counts, NULL) == 0);
    usleep(20000);
    CHECK(dlclose(library) == 0);
    closed = 1;
    while (counted_after == 0)
        usleep(1000);
    // The fork handlers are loaded too.
    pid_t child = fork();
    if (child == 0) {
        CHECK(adds_one());
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    stop = 1;
    pthread_join(thread, NULL);
    struct page page = {NULL, 0, 0};
    talea_rendering *rendering;
    talea_text piece;
    CHECK(begin(registry, (talea_text){NULL, 0}, &rendering) == TALEA_STATUS_OK);
    CHECK(next(rendering, &piece) == TALEA_STATUS_OK);
    onto(&page, piece.data, piece.len);
    char line[64];
    sprintf(line, "orders_total %llu\n", (unsigned long long)counted + 1);
    if (strstr(page.text, line) == NULL)
        fprintf(stderr, "%s is not in\n%s", line, page.text);
    CHECK(strstr(page.text, line) != NULL);

    // Loaded again it is the same one.
    void *again = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    CHECK(again != NULL && function(again, "talea_series_record") == *(void **)&record);
    return 0;
}
