// If there is no room for a series, updates count in the overflow series, and the caller gets no
// error.

#include "check.h"

static const talea_text LABEL = {"path", 4};

static void a_family_at_its_limit(void) {
    const talea_registry *registry = opened(NULL, 4 << 20);
    talea_family_options options = options_of(TALEA_KIND_COUNTER, "visits", &LABEL, 1);
    options.limit = 2;
    const talea_family *visits = registered(registry, &options);
    const char *paths[] = {"/", "/basket", "/made-up", "/too"};
    for (int n = 0; n < 4; n++) {
        talea_text path = talea_text_of(paths[n]);
        OK(talea_record(visits, &path, 1, ADD, talea_unsigned(10)));
    }
    CHECK(shows(registry, "visits_total{otel_metric_overflow=\"true\"} 20"));
    CHECK(shows(registry, "talea_series_dropped_total{family=\"visits_total\"} 2"));
    CHECK(dropped_by(registry, "visits_total") == 2);
    // A handle that is kept counts there too; once there is room, it is asked for again.
    talea_text path = talea_text_of("/made-up"), other = talea_text_of("/too");
    const talea_series *kept, *same, *own;
    OK(talea_series_keep(visits, &path, 1, &kept));
    OK(talea_series_keep(visits, &other, 1, &same));
    CHECK(kept == same);
    OK(talea_series_record(kept, ADD, talea_unsigned(1)));
    CHECK(shows(registry, "visits_total{otel_metric_overflow=\"true\"} 21"));
    talea_text root = talea_text_of("/");
    OK(talea_remove(visits, &root, 1, NULL));
    OK(talea_series_keep(visits, &path, 1, &own));
    CHECK(own != kept);
    OK(talea_series_record(own, ADD, talea_unsigned(3)));
    CHECK(shows(registry, "visits_total{path=\"/made-up\"} 3"));

    // A reader finds the overflow series by its label.
    talea_reading *reading;
    const talea_family_view *family;
    OK(talea_read_begin(registry, talea_text_of("visits_total"), &reading));
    OK(talea_read_next(reading, &family));
    bool found = false;
    for (size_t n = 0; n < family->series_count; n++)
        found |= is(family->series[n].labels[0].name, "otel_metric_overflow");
    CHECK(found && family->dropped == 4);
    talea_read_end(reading);
}

static void a_region_that_is_full(void) {
    const talea_registry *registry = opened(NULL, 512 << 10);
    talea_family_options options = options_of(TALEA_KIND_COUNTER, "visits", &LABEL, 1);
    options.limit = 1 << 20;
    const talea_family *visits = registered(registry, &options);
    enum { TIMES = 20000 };
    for (int n = 0; n < TIMES; n++) {
        char path[64];
        talea_text value = {path, (size_t)sprintf(path, "/a/path/that/clients/make/up/%d", n)};
        OK(talea_record(visits, &value, 1, ADD, talea_unsigned(1)));
    }
    size_t count;
    CHECK(total_of(registry, "visits_total", &count) == TIMES);
    CHECK(count < TIMES && dropped_by(registry, "visits_total") == TIMES - (count - 1));
    // A family without room is refused with a message; others keep working.
    talea_status status = TALEA_STATUS_OK;
    char message[256] = "";
    for (int n = 0; n < 5000 && status == TALEA_STATUS_OK; n++) {
        char name[128];
        sprintf(name, "a_family_of_a_long_name_so_that_the_region_is_full_at_last_%d", n);
        talea_family_options more = options_of(TALEA_KIND_COUNTER, name, &LABEL, 1);
        const talea_family *family;
        status = talea_register(registry, &more, &family, message, sizeof message);
    }
    CHECK(status == TALEA_STATUS_NO_ROOM && strstr(message, "full") != NULL);
    talea_text value = {"/a/path/that/clients/make/up/0", 30};
    OK(talea_record(visits, &value, 1, ADD, talea_unsigned(1)));
    CHECK(total_of(registry, "visits_total", NULL) == TIMES + 1);
}

int main(void) {
    a_family_at_its_limit();
    a_region_that_is_full();
    return 0;
}
