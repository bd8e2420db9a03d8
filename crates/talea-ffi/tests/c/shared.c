// Unrelated processes share a file. A process with a number as its argument adds it, one with 0
// reads.

#include <unistd.h>

#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 3);
    static const talea_text LABEL = {"who", 3};
    const talea_registry *registry = opened(argv[1], 8 << 20);
    const talea_family *jobs = family_of(registry, TALEA_KIND_COUNTER, "jobs", &LABEL, 1);
    const talea_family *busy = family_of(registry, TALEA_KIND_UP_DOWN_COUNTER, "busy", NULL, 0);
    const int amount = atoi(argv[2]);
    if (amount > 0) {
        talea_text who[] = {talea_text_of(argv[2])}, all[] = {{"all", 3}};
        OK(talea_record(jobs, who, 1, ADD, talea_unsigned((uint64_t)amount)));
        for (int n = 0; n < amount; n++)
            OK(talea_record(jobs, all, 1, ADD, talea_unsigned(1)));
        OK(talea_record(busy, NULL, 0, ADD, talea_unsigned(1)));
        CHECK(shows(registry, "busy 1") || total_of(registry, "busy", NULL) == 2);
        return 0;
    }
    struct page page = rendered(registry, "");
    fputs(page.text, stdout);
    free(page.text);
    return 0;
}
