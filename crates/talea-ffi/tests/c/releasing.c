// A series that is released as often as it was kept leaves its place to others.

#include "check.h"

static const talea_text LABEL = {"path", 4};

static const talea_series *kept_of(const talea_family *family, talea_text value) {
    const talea_series *series;
    OK(talea_series_keep(family, &value, 1, &series));
    return series;
}

// Many label sets one after the other, in a family for two.
static void its_place_is_free(const talea_registry *registry, uint32_t kind, const char *name,
                              uint32_t operation, bool removes) {
    talea_family_options options = options_of(kind, name, &LABEL, 1);
    options.limit = 2;
    const talea_family *family = registered(registry, &options);
    for (int n = 0; n < 1000; n++) {
        char path[64];
        talea_text value = {path, (size_t)sprintf(path, "/made-up/%d", n)};
        const talea_series *series = kept_of(family, value);
        CHECK(kept_of(family, value) == series);
        OK(talea_series_record(series, operation, talea_double(1)));
        talea_series_release(series);
        OK(talea_series_record(series, operation, talea_double(1)));
        if (removes)
            OK(talea_remove(family, &value, 1, NULL));
        talea_series_release(series);
        if (!removes) {
            bool removed = false;
            OK(talea_remove(family, &value, 1, &removed));
            CHECK(removed);
        }
    }
    char shown[64];
    sprintf(shown, "%s%s", name, kind == TALEA_KIND_COUNTER ? "_total" : "");
    size_t count;
    CHECK(total_of(registry, shown, &count) == 0 && count == 0);
    CHECK(dropped_by(registry, shown) == 0);
}

// A series stays with its value when it is released, and counts on when it is kept again.
static void its_value_stays(const talea_registry *registry) {
    const talea_family *orders = family_of(registry, TALEA_KIND_COUNTER, "orders", &LABEL, 1);
    for (int n = 1; n < 4; n++) {
        const talea_series *series = kept_of(orders, talea_text_of("/"));
        OK(talea_series_record(series, ADD, talea_unsigned(5)));
        talea_series_release(series);
        char line[64];
        sprintf(line, "orders_total{path=\"/\"} %d", 5 * n);
        CHECK(shows(registry, line));
    }
}

// The series that never go: the overflow series, and that of a family without labels.
static void some_stay(const talea_registry *registry) {
    const talea_family *all = family_of(registry, TALEA_KIND_COUNTER, "all", NULL, 0);
    talea_family_options options = options_of(TALEA_KIND_COUNTER, "few", &LABEL, 1);
    options.limit = 1;
    const talea_family *few = registered(registry, &options);
    const talea_series *first = kept_of(few, talea_text_of("/"));
    for (int n = 1; n < 4; n++) {
        const talea_series *only, *overflow = kept_of(few, talea_text_of("/too"));
        OK(talea_series_keep(all, NULL, 0, &only));
        CHECK(overflow != first);
        OK(talea_series_record(only, ADD, talea_unsigned(1)));
        OK(talea_series_record(overflow, ADD, talea_unsigned(1)));
        talea_series_release(only);
        talea_series_release(overflow);
        char line[64];
        sprintf(line, "all_total %d", n);
        CHECK(shows(registry, line));
        sprintf(line, "few_total{otel_metric_overflow=\"true\"} %d", n);
        CHECK(shows(registry, line));
    }
}

int main(void) {
    const talea_registry *registry = opened(NULL, 4 << 20);
    for (int removes = 0; removes < 2; removes++) {
        its_place_is_free(registry, TALEA_KIND_COUNTER, removes ? "a" : "b", ADD, removes);
        its_place_is_free(registry, TALEA_KIND_GAUGE, removes ? "c" : "d", SET, removes);
        its_place_is_free(registry, TALEA_KIND_HISTOGRAM, removes ? "e" : "f", OBSERVE, removes);
    }
    its_value_stays(registry);
    some_stay(registry);
    talea_series_release(NULL);
    return 0;
}
