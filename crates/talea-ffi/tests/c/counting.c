// Each kind of metric records, by label values and kept, and is read as it was recorded.

#include <math.h>

#include "check.h"

static const talea_text LABELS[] = {{"method", 6}, {"country", 7}};

// The fewest digits that are read back as the same.
static int digits_of(double x) {
    char text[64];
    for (int digits = 1; digits < 17; digits++) {
        sprintf(text, "%.*g", digits, x);
        // As far as there is no exponent.
        if (strtod(text, NULL) == x && strchr(text, 'e') == NULL)
            return digits;
    }
    return 17;
}

// Every sample of a reading as a line of the text format, sorted as they come.
static void onto_lines(struct page *page, const talea_family_view *family) {
    char line[4096];
    for (size_t n = 0; n < family->series_count; n++) {
        const talea_series_view *series = &family->series[n];
        for (size_t s = 0; s < series->sample_count; s++) {
            const talea_sample *sample = &series->samples[s];
            size_t labels = series->label_count + (sample->label.name.len > 0);
            int at = sprintf(line, "%.*s", (int)sample->name.len, sample->name.data);
            for (size_t l = 0; l < labels; l++) {
                const talea_label *label = l < series->label_count ? &series->labels[l] : &sample->label;
                at += sprintf(line + at, "%s%.*s=\"%.*s\"", l == 0 ? "{" : ",",
                              (int)label->name.len, label->name.data, (int)label->value.len,
                              label->value.data);
            }
            at += sprintf(line + at, labels > 0 ? "} " : " ");
            const talea_number number = sample->number;
            const double value = talea_as_double(number);
            if (number.kind == TALEA_NUMBER_KIND_UNSIGNED)
                at += sprintf(line + at, "%llu\n", (unsigned long long)number.bits);
            else if (number.kind == TALEA_NUMBER_KIND_SIGNED)
                at += sprintf(line + at, "%lld\n", (long long)number.bits);
            else if (isnan(value))
                at += sprintf(line + at, "NaN\n");
            else
                at += sprintf(line + at, "%.*g\n", digits_of(value), value);
            onto(page, line, (size_t)at);
        }
    }
}

// Readers and the text format have the same samples, line by line, without metadata.
static void is_read_as_it_is_rendered(const talea_registry *registry) {
    struct page read = {NULL, 0, 0};
    talea_reading *reading;
    const talea_family_view *family;
    OK(talea_read_begin(registry, NONE, &reading));
    do {
        OK(talea_read_next(reading, &family));
        if (family != NULL)
            onto_lines(&read, family);
    } while (family != NULL);
    talea_read_end(reading);
    struct page page = rendered(registry, "");
    size_t lines = 0, found = 0;
    for (char *line = strtok(page.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (line[0] == '#')
            continue;
        lines++;
        char wanted[4096];
        sprintf(wanted, "%s\n", line);
        if (strstr(read.text, wanted) == NULL)
            fprintf(stderr, "%s is not in\n%s\n", line, read.text);
        else
            found++;
    }
    size_t read_lines = 0;
    for (const char *at = read.text; *at; at++)
        read_lines += *at == '\n';
    CHECK(lines > 20 && found == lines && read_lines == lines);
    free(page.text);
    free(read.text);
}

static void counters(const talea_registry *registry) {
    const talea_family *orders = family_of(registry, TALEA_KIND_COUNTER, "orders", LABELS, 2);
    CHECK(family_of(registry, TALEA_KIND_COUNTER, "orders", LABELS, 2) == orders);
    CHECK(!talea_is_ended(orders) && talea_is_ended(NULL));
    talea_text sale[] = {{"card", 4}, {"pe", 2}};
    OK(talea_record(orders, sale, 2, ADD, talea_unsigned(1)));
    OK(talea_record(orders, sale, 2, ADD, talea_double(2.0)));
    OK(talea_record(orders, sale, 2, ADD, talea_signed(3)));
    const talea_series *kept, *again;
    OK(talea_series_keep(orders, sale, 2, &kept));
    OK(talea_series_keep(orders, sale, 2, &again));
    CHECK(kept == again);
    OK(talea_series_record(kept, ADD, talea_unsigned(4)));
    CHECK(shows(registry, "orders_total{method=\"card\",country=\"pe\"} 10"));

    // Any bytes that are UTF-8, zeros among them.
    talea_text odd[] = {{"a\0\"b\\\n", 6}, {"\xc3\xbc\xf0\x9f\x92\xa1", 6}};
    OK(talea_record(orders, odd, 2, ADD, talea_unsigned(18446744073709551615u)));
    talea_reading *reading;
    const talea_family_view *family;
    OK(talea_read_begin(registry, talea_text_of("orders_total"), &reading));
    OK(talea_read_next(reading, &family));
    CHECK(is(family->name, "orders_total") && is(family->kind, "counter"));
    CHECK(is(family->help, "Help.") && family->series_count == 2 && family->dropped == 0);
    const talea_series_view *second = &family->series[1];
    CHECK(second->label_count == 2 && is(second->labels[0].name, "method"));
    CHECK(second->labels[0].value.len == 6 && memcmp(second->labels[0].value.data, odd[0].data, 6) == 0);
    CHECK(second->sample_count == 1 && second->samples[0].number.bits == 18446744073709551615u);
    OK(talea_read_next(reading, &family));
    CHECK(family == NULL);
    OK(talea_read_next(reading, &family));
    CHECK(family == NULL);
    talea_read_end(reading);
    bool removed = false;
    OK(talea_remove(orders, odd, 2, &removed));
    CHECK(removed);
    OK(talea_remove(orders, odd, 2, &removed));
    CHECK(!removed);
    OK(talea_remove(orders, odd, 2, NULL));

    const talea_family *seconds = family_of(registry, TALEA_KIND_FLOAT_COUNTER, "busy_seconds", NULL, 0);
    OK(talea_record(seconds, NULL, 0, ADD, talea_double(0.125)));
    OK(talea_record(seconds, NULL, 0, ADD, talea_unsigned(1)));
    OK(talea_record(seconds, NULL, 0, ADD, talea_signed(2)));
    CHECK(shows(registry, "busy_seconds_total 3.125"));
}

static void gauges(const talea_registry *registry) {
    const talea_family *degrees = family_of(registry, TALEA_KIND_GAUGE, "degrees", NULL, 0);
    OK(talea_record(degrees, NULL, 0, SET, talea_double(-1.5)));
    OK(talea_record(degrees, NULL, 0, ADD, talea_double(0.25)));
    OK(talea_record(degrees, NULL, 0, ADD, talea_signed(-2)));
    CHECK(shows(registry, "degrees -3.25"));
    OK(talea_record(degrees, NULL, 0, SET, talea_signed(7)));
    OK(talea_record(degrees, NULL, 0, ADD, talea_unsigned(1)));
    CHECK(shows(registry, "degrees 8"));

    const talea_family *depth = family_of(registry, TALEA_KIND_INTEGER_GAUGE, "depth", LABELS, 1);
    talea_text queue[] = {{"mail", 4}};
    const talea_series *kept;
    OK(talea_series_keep(depth, queue, 1, &kept));
    OK(talea_series_record(kept, SET, talea_signed(INT64_MIN)));
    CHECK(shows(registry, "depth{method=\"mail\"} -9223372036854775808"));
    OK(talea_series_record(kept, SET, talea_double(3.0)));
    OK(talea_series_record(kept, ADD, talea_double(-5.0)));
    OK(talea_series_record(kept, ADD, talea_signed(1)));
    OK(talea_series_record(kept, ADD, talea_unsigned(2)));
    CHECK(shows(registry, "depth{method=\"mail\"} 1"));

    const uint32_t ways[] = {TALEA_COMBINING_SUM, TALEA_COMBINING_MAX, TALEA_COMBINING_MIN,
                             TALEA_COMBINING_EACH};
    const char *names[] = {"sum", "max", "min", "each"};
    for (size_t n = 0; n < 4; n++) {
        talea_family_options options = options_of(TALEA_KIND_GAUGE, names[n], NULL, 0);
        options.combining = ways[n];
        OK(talea_record(registered(registry, &options), NULL, 0, SET, talea_double(2.5)));
    }
    CHECK(shows(registry, "sum 2.5") && shows(registry, "max 2.5") && shows(registry, "min 2.5"));
    size_t count;
    CHECK(total_of(registry, "each", &count) == 2.5 && count == 1);

    const talea_family *open = family_of(registry, TALEA_KIND_UP_DOWN_COUNTER, "open", NULL, 0);
    OK(talea_record(open, NULL, 0, ADD, talea_unsigned(3)));
    OK(talea_record(open, NULL, 0, ADD, talea_signed(-1)));
    OK(talea_record(open, NULL, 0, ADD, talea_double(-1.0)));
    CHECK(shows(registry, "open 1"));
}

static void histograms(const talea_registry *registry) {
    static const double THRESHOLDS[] = {-1, 0, 0.0001, 0.00001, 0.5, 1, 1e5, 1e6, 2.5e7, 1e300};
    const double ascending[] = {-1, 0, 0.00001, 0.0001, 0.5, 1, 1e5, 1e6, 2.5e7, 1e300};
    talea_family_options options = options_of(TALEA_KIND_HISTOGRAM, "drift", LABELS, 1);
    char message[256];
    const talea_family *drift;
    options.buckets = THRESHOLDS;
    options.bucket_count = 10;
    ANSWERS(TALEA_STATUS_CANNOT_REGISTER,
            talea_register(registry, &options, &drift, message, sizeof message));
    CHECK(strstr(message, "ascending") != NULL);
    options.buckets = ascending;
    drift = registered(registry, &options);
    CHECK(registered(registry, &options) == drift);
    talea_text up[] = {{"up", 2}};
    OK(talea_record(drift, up, 1, OBSERVE, talea_double(-0.25)));
    OK(talea_record(drift, up, 1, OBSERVE, talea_double(0.75)));
    OK(talea_record(drift, up, 1, OBSERVE, talea_unsigned(3)));
    CHECK(shows(registry, "drift_sum{method=\"up\"} 3.5"));
    CHECK(shows(registry, "drift_bucket{method=\"up\",le=\"0.0\"} 1"));
    CHECK(shows(registry, "drift_bucket{method=\"up\",le=\"1e+06\"} 3"));

    options = options_of(TALEA_KIND_HISTOGRAM, "pricing", NULL, 0);
    options.unit = TALEA_UNIT_SECONDS;
    options.flags = TALEA_FAMILY_SCHEMA | TALEA_FAMILY_QUANTILES;
    options.schema = 5;
    const double half[] = {0.5};
    options.quantiles = half;
    options.quantile_count = 1;
    const talea_family *pricing = registered(registry, &options);
    const talea_series *kept;
    OK(talea_series_keep(pricing, NULL, 0, &kept));
    OK(talea_series_record(kept, OBSERVE, talea_double(0.0105)));
    OK(talea_series_record(kept, OBSERVE, talea_unsigned(10500000)));
    CHECK(shows(registry, "pricing_seconds_sum 0.021"));
    CHECK(shows(registry, "pricing_seconds_bucket{le=\"0.01\"} 0"));
    CHECK(shows(registry, "pricing_seconds_bucket{le=\"0.025\"} 2"));
    CHECK(total_of(registry, "pricing_recent_seconds", NULL) > 0.0103);

    const uint32_t units[] = {TALEA_UNIT_BYTES, TALEA_UNIT_THINGS};
    const char *names[] = {"page_bytes", "page_things"};
    for (size_t n = 0; n < 2; n++) {
        options = options_of(TALEA_KIND_HISTOGRAM, names[n], NULL, 0);
        options.unit = units[n];
        options.bucketing = n == 0 ? TALEA_BUCKETS_CLASSIC : TALEA_BUCKETS_NATIVE;
        const talea_family *page = registered(registry, &options);
        OK(talea_record(page, NULL, 0, OBSERVE, talea_double(99.6)));
        OK(talea_record(page, NULL, 0, OBSERVE, talea_unsigned(1000)));
    }
    CHECK(shows(registry, "page_bytes_sum 1100") && shows(registry, "page_things_sum 1100"));
    struct page protobuf = rendered(
        registry, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited");
    CHECK(protobuf.len > 500);
    free(protobuf.text);

    const uint32_t all[] = {TALEA_UNIT_NONE, TALEA_UNIT_SECONDS, TALEA_UNIT_BYTES, TALEA_UNIT_THINGS};
    const char *summaries[] = {"plain", "time", "size", "number"};
    for (size_t n = 0; n < 4; n++) {
        options = options_of(TALEA_KIND_SUMMARY, summaries[n], LABELS, 1);
        options.unit = all[n];
        options.window_seconds = 60;
        const talea_family *summary = registered(registry, &options);
        for (int i = 1; i <= 100; i++)
            OK(talea_record(summary, up, 1, OBSERVE, talea_double(i)));
        OK(talea_series_keep(summary, up, 1, &kept));
        OK(talea_series_record(kept, OBSERVE, talea_unsigned(0)));
    }
    CHECK(shows(registry, "plain_count{method=\"up\"} 101"));
    CHECK(shows(registry, "time_seconds_sum{method=\"up\"} 5050"));
    const double median = total_of(registry, "plain", NULL);
    CHECK(fabs(median / 50 - 1) < 0.0434);
}

static void formats(const talea_registry *registry) {
    char type[256];
    size_t len;
    OK(talea_content_type(NONE, type, sizeof type, &len));
    CHECK(strcmp(type, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores") == 0);
    CHECK(len == strlen(type));
    const char *accept = "application/openmetrics-text;version=1.0.0";
    OK(talea_content_type(talea_text_of(accept), type, sizeof type, &len));
    CHECK(strncmp(type, accept, 28) == 0);
    // A header that is not UTF-8 counts as empty.
    talea_text bad = {"\xff", 1};
    OK(talea_content_type(bad, type, sizeof type, &len));
    CHECK(strncmp(type, "text/plain", 10) == 0);
    struct page page = rendered(registry, accept);
    CHECK(strcmp(page.text + page.len - 6, "# EOF\n") == 0);
    free(page.text);
}

// A page of some megabytes leaves in pieces.
static void large_page(void) {
    const talea_registry *registry = opened(NULL, 64 << 20);
    talea_family_options options = options_of(TALEA_KIND_COUNTER, "visits", LABELS, 2);
    options.limit = 50000;
    const talea_family *visits = registered(registry, &options);
    char path[64];
    for (int n = 0; n < 20000; n++) {
        sprintf(path, "/a/path/that/is/as/long/as/paths/are/%d", n);
        talea_text values[] = {{"GET", 3}, {path, strlen(path)}};
        OK(talea_record(visits, values, 2, ADD, talea_unsigned(1)));
    }
    struct page page = rendered(registry, "");
    CHECK(page.len > 1 << 20 && page.longest_piece < 80 << 10);
    free(page.text);
    size_t count;
    CHECK(total_of(registry, "visits_total", &count) == 20000 && count == 20000);
}

static void wiping(const talea_registry *registry) {
    const talea_family *orders = family_of(registry, TALEA_KIND_COUNTER, "orders", LABELS, 2);
    talea_text sale[] = {{"card", 4}, {"pe", 2}}, other[] = {{"cash", 4}, {"pe", 2}};
    const talea_series *kept;
    OK(talea_series_keep(orders, sale, 2, &kept));
    OK(talea_record(orders, other, 2, ADD, talea_unsigned(1)));
    OK(talea_wipe(registry, talea_text_of("orders_total")));
    size_t count;
    CHECK(total_of(registry, "orders_total", &count) == 0);
    CHECK(shows(registry, "busy_seconds_total 3.125"));
    OK(talea_series_record(kept, ADD, talea_unsigned(2)));
    CHECK(shows(registry, "orders_total{method=\"card\",country=\"pe\"} 2"));
    OK(talea_wipe(registry, NONE));
    CHECK(shows(registry, "busy_seconds_total 0"));
    CHECK(total_of(registry, "orders_total", NULL) == 0);

    // Ended, its name is free for another definition; registered as it was, it goes on.
    size_t ended;
    OK(talea_unregister(registry, talea_text_of("orders_total"), &ended));
    CHECK(ended == 1 && talea_is_ended(orders));
    OK(talea_record(orders, sale, 2, ADD, talea_unsigned(5)));
    OK(talea_unregister(registry, talea_text_of("orders_total"), NULL));
    CHECK(total_of(registry, "orders_total", &count) == 0 && count == 0);
    CHECK(family_of(registry, TALEA_KIND_COUNTER, "orders", LABELS, 2) == orders);
    OK(talea_record(orders, sale, 2, ADD, talea_unsigned(7)));
    CHECK(shows(registry, "orders_total{method=\"card\",country=\"pe\"} 7"));
    OK(talea_unregister(registry, talea_text_of("orders_total"), &ended));
    const talea_family *fewer = family_of(registry, TALEA_KIND_COUNTER, "orders", LABELS, 1);
    CHECK(fewer != orders);
    OK(talea_record(fewer, sale, 1, ADD, talea_unsigned(1)));
    CHECK(shows(registry, "orders_total{method=\"card\"} 1"));
    OK(talea_unregister(registry, NONE, &ended));
    CHECK(ended > 10);
    struct page page = rendered(registry, "");
    CHECK(page.len == 0);
    free(page.text);
}

// The calls for languages that cannot pass a struct by value.
static void plain_numbers(const talea_registry *registry) {
    static const struct {
        const char *name;
        uint32_t kind;
    } FAMILIES[] = {{"plain_sold", TALEA_KIND_COUNTER},       {"plain_paid", TALEA_KIND_FLOAT_COUNTER},
                    {"plain_depth", TALEA_KIND_INTEGER_GAUGE}, {"plain_level", TALEA_KIND_GAUGE},
                    {"plain_size", TALEA_KIND_SUMMARY}};
    const talea_series *kept[5];
    for (int n = 0; n < 5; n++)
        OK(talea_series_keep(family_of(registry, FAMILIES[n].kind, FAMILIES[n].name, NULL, 0), NULL, 0, &kept[n]));
    OK(talea_series_add_u64(kept[0], 18446744073709551610u));
    OK(talea_series_add_i64(kept[0], 5));
    CHECK(shows(registry, "plain_sold_total 18446744073709551615"));
    OK(talea_series_add_f64(kept[1], 0.5));
    CHECK(shows(registry, "plain_paid_total 0.5"));
    OK(talea_series_set_i64(kept[2], -9223372036854775807));
    OK(talea_series_add_i64(kept[2], -1));
    CHECK(shows(registry, "plain_depth -9223372036854775808"));
    OK(talea_series_set_f64(kept[3], 1.25));
    OK(talea_series_add_f64(kept[3], -0.5));
    CHECK(shows(registry, "plain_level 0.75"));
    OK(talea_series_observe_f64(kept[4], 0.5));
    OK(talea_series_observe_u64(kept[4], 2));
    CHECK(shows(registry, "plain_size_sum 2.5") && shows(registry, "plain_size_count 2"));
    ANSWERS(TALEA_STATUS_NULL, talea_series_add_u64(NULL, 1));
    ANSWERS(TALEA_STATUS_WRONG_VALUE, talea_series_add_i64(kept[0], -1));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_series_set_f64(kept[0], 1));
    ANSWERS(TALEA_STATUS_WRONG_KIND, talea_series_observe_u64(kept[3], 1));
}

int main(void) {
    CHECK(talea_abi_version() == TALEA_ABI_VERSION);
    const talea_registry *registry;
    OK(talea_open(NULL, &registry, NULL, 0));
    counters(registry);
    gauges(registry);
    histograms(registry);
    plain_numbers(registry);
    is_read_as_it_is_rendered(registry);
    formats(registry);
    wiping(registry);
    large_page();
    return 0;
}
