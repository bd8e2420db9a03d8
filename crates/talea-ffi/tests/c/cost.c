// The cost of calls: `cost <what> <times>` repeats one and prints its nanoseconds.

#include <time.h>

#include "check.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#define COSTS(call)                                                 \
    do {                                                            \
        for (long n = 0; n < times; n++)                            \
            OK(call);                                               \
    } while (0)

int main(int argc, char **argv) {
    CHECK(argc == 3);
    static const talea_text LABELS[] = {{"method", 6}, {"country", 7}};
    const talea_text values[] = {{"card", 4}, {"pe", 2}};
    const char *what = argv[1];
    const long times = atol(argv[2]);
    const talea_registry *registry = opened(NULL, 4 << 20);
    const talea_family *orders = family_of(registry, TALEA_KIND_COUNTER, "orders", LABELS, 2);
    const talea_family *all = family_of(registry, TALEA_KIND_COUNTER, "all", NULL, 0);
    talea_family_options options = options_of(TALEA_KIND_HISTOGRAM, "pricing", LABELS, 2);
    options.unit = TALEA_UNIT_SECONDS;
    const talea_family *pricing = registered(registry, &options);
    const talea_series *order, *any, *price;
    OK(talea_series_keep(orders, values, 2, &order));
    OK(talea_series_keep(all, NULL, 0, &any));
    OK(talea_series_keep(pricing, values, 2, &price));
    OK(talea_record(orders, values, 2, ADD, talea_unsigned(1)));
    OK(talea_series_record(price, OBSERVE, talea_double(0.02)));
    const double began = now();
    if (strcmp(what, "kept") == 0)
        COSTS(talea_series_record(order, ADD, talea_unsigned(1)));
    else if (strcmp(what, "kept-striped") == 0)
        COSTS(talea_series_record(any, ADD, talea_unsigned(1)));
    else if (strcmp(what, "two-values") == 0)
        COSTS(talea_record(orders, values, 2, ADD, talea_unsigned(1)));
    else if (strcmp(what, "observe-kept") == 0)
        COSTS(talea_series_record(price, OBSERVE, talea_unsigned(20000000)));
    else if (strcmp(what, "observe-double") == 0)
        COSTS(talea_series_record(price, OBSERVE, talea_double(0.02)));
    else if (strcmp(what, "observe-two-values") == 0)
        COSTS(talea_record(pricing, values, 2, OBSERVE, talea_unsigned(20000000)));
    else
        return 2;
    printf("%.3f\n", (now() - began) / (double)times);
    return 0;
}
