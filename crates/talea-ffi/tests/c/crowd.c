// 16 processes create 500 label sets each at once, in one file: none is lost.

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PROCESSES = 16, SETS = 500 };

static const talea_text LABELS[] = {{"process", 7}, {"set", 3}};

static void counts(const char *path, int process) {
    // Each opens the file itself, as unrelated processes do.
    const talea_registry *registry = opened(path, 32 << 20);
    talea_family_options options = options_of(TALEA_KIND_COUNTER, "met", LABELS, 2);
    options.limit = PROCESSES * SETS + SETS + 1;
    const talea_family *met = registered(registry, &options);
    for (int set = 0; set < SETS; set++) {
        char who[16], which[64];
        talea_text values[] = {{who, (size_t)sprintf(who, "%d", process)},
                               {which, (size_t)sprintf(which, "a set of labels, number %d", set)}};
        OK(talea_record(met, values, 2, ADD, talea_unsigned(1)));
        // And one that all processes create.
        values[0] = talea_text_of("all");
        OK(talea_record(met, values, 2, ADD, talea_unsigned(1)));
    }
    CHECK(dropped_by(registry, "met_total") == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int go[2];
    CHECK(pipe(go) == 0);
    for (int process = 0; process < PROCESSES; process++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            char byte;
            close(go[1]);
            CHECK(read(go[0], &byte, 1) == 0);
            counts(argv[1], process);
            _exit(0);
        }
    }
    close(go[1]);
    for (int process = 0; process < PROCESSES; process++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    const talea_registry *registry = opened(argv[1], 32 << 20);
    size_t count;
    CHECK(total_of(registry, "met_total", &count) == 2 * PROCESSES * SETS);
    CHECK(count == PROCESSES * SETS + SETS);
    return 0;
}
