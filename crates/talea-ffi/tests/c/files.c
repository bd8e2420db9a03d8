// The options or the environment set the limits of a file and the group that may read it.

#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static void counts(const talea_registry *registry, double total) {
    const talea_family *opened = family_of(registry, TALEA_KIND_COUNTER, "opened", NULL, 0);
    OK(talea_record(opened, NULL, 0, ADD, talea_unsigned(1)));
    CHECK(total_of(registry, "opened_total", NULL) == total);
}

// Without the option there would be room for all of them.
static void has_room_for_a_thousand_series(const talea_registry *registry) {
    static const talea_text LABEL = {"n", 1};
    talea_family_options options = options_of(TALEA_KIND_COUNTER, "many", &LABEL, 1);
    options.limit = 2000;
    const talea_family *many = registered(registry, &options);
    for (int n = 0; n < 2000; n++) {
        char text[8];
        const talea_text value = {text, (size_t)sprintf(text, "%d", n)};
        OK(talea_record(many, &value, 1, ADD, talea_unsigned(1)));
    }
    size_t count;
    CHECK(total_of(registry, "many_total", &count) == 2000 && count > 990 && count < 1100);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    const talea_registry *registry;
    char message[512];
    struct stat file;
    talea_open_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.path = talea_text_of(argv[1]);
    options.len = 2 << 20;
    options.series = 1000;
    options.flags = TALEA_OPEN_READ_BY_GROUP;
    options.group = getgid();
    OK(talea_open(&options, &registry, message, sizeof message));
    CHECK(stat(argv[1], &file) == 0 && (file.st_mode & 0777) == 0640);
    CHECK(file.st_size == 2 << 20 && file.st_gid == getgid());
    const talea_registry *first = registry;
    counts(registry, 1);

    // The environment names the same file, another one, and none.
    setenv("TALEA_REGION", argv[1], 1);
    OK(talea_open_from_environment(&registry, message, sizeof message));
    CHECK(message[0] == 0);
    counts(registry, 2);
    setenv("TALEA_REGION", argv[2], 1);
    OK(talea_open_from_environment(&registry, message, sizeof message));
    CHECK(stat(argv[2], &file) == 0 && (file.st_mode & 0777) == 0600);
    counts(registry, 1);
    setenv("TALEA_REGION", "", 1);
    OK(talea_open_from_environment(&registry, message, sizeof message));
    counts(registry, 1);
    has_room_for_a_thousand_series(first);
    return 0;
}
