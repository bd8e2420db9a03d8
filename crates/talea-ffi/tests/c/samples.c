// Summaries that keep samples: their window at a time, also in a child that did not observe.

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const uint64_t BEGAN = 1000000000000;

// The window of the only series at so many milliseconds since the beginning, and its median.
static uint64_t window_at(const talea_registry *registry, uint64_t millis, double *median,
                          double *sum) {
    talea_reading *reading;
    const talea_family_view *family;
    OK(talea_read_begin(registry, NONE, &reading));
    OK(talea_reading_at(reading, BEGAN + millis));
    OK(talea_read_next(reading, &family));
    CHECK(family != NULL && is(family->name, "took") && family->series_count == 1);
    const talea_series_view series = family->series[0];
    CHECK(series.is_sampled && series.sample_count == 3);
    CHECK(is(series.samples[0].label.name, "quantile") && series.samples[0].bound == 0.5);
    *median = talea_as_double(series.samples[0].number);
    *sum = series.window_sum;
    OK(talea_read_next(reading, &family));
    CHECK(family == NULL);
    talea_read_end(reading);
    return series.window_count;
}

int main(void) {
    static const talea_text LABEL = {"job", 3};
    talea_text job = {"mail", 4};
    const double quantile = 0.5;
    const talea_registry *registry = opened("", 8 << 20);
    talea_family_options options = options_of(TALEA_KIND_SUMMARY, "took", &LABEL, 1);
    options.flags = TALEA_FAMILY_SAMPLED | TALEA_FAMILY_QUANTILES;
    options.quantiles = &quantile;
    options.quantile_count = 1;
    options.window_seconds = 10;
    const talea_family *took = registered(registry, &options);
    for (int n = 1; n <= 9; n++)
        OK(talea_record_at(took, &job, 1, OBSERVE, talea_double(n), BEGAN + 1000 * (uint64_t)n));

    double median, sum;
    CHECK(window_at(registry, 9000, &median, &sum) == 9 && median == 5 && sum == 45);
    CHECK(window_at(registry, 15500, &median, &sum) == 4 && median == 7 && sum == 30);
    CHECK(window_at(registry, 19500, &median, &sum) == 0 && median != median && sum == 0);
    CHECK(shows(registry, "took_count{job=\"mail\"} 9"));

    // Now, by each call.
    const talea_series *kept;
    OK(talea_series_keep(took, &job, 1, &kept));
    OK(talea_record(took, &job, 1, OBSERVE, talea_double(0.25)));
    OK(talea_record(took, &job, 1, OBSERVE, talea_unsigned(1)));
    OK(talea_series_record(kept, OBSERVE, talea_double(1.5)));
    OK(talea_series_record(kept, OBSERVE, talea_unsigned(4)));
    CHECK(shows(registry, "took{job=\"mail\",quantile=\"0.5\"} 1"));
    CHECK(shows(registry, "took_count{job=\"mail\"} 13"));

    // A child shows the same, and its observations stay.
    pid_t child = fork();
    if (child == 0) {
        OK(talea_record(took, &job, 1, OBSERVE, talea_double(0.5)));
        CHECK(shows(registry, "took{job=\"mail\",quantile=\"0.5\"} 1"));
        OK(talea_series_record(kept, OBSERVE, talea_double(0.5)));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(shows(registry, "took{job=\"mail\",quantile=\"0.5\"} 0.5"));

    OK(talea_wipe(registry, talea_text_of("took")));
    OK(talea_record(took, &job, 1, OBSERVE, talea_double(3)));
    CHECK(shows(registry, "took_count{job=\"mail\"} 1"));
    CHECK(shows(registry, "took{job=\"mail\",quantile=\"0.5\"} 3"));
    bool removed;
    OK(talea_remove(took, &job, 1, &removed));
    CHECK(removed);

    // Other kinds keep no samples.
    char message[256];
    options = options_of(TALEA_KIND_HISTOGRAM, "sizes", NULL, 0);
    options.flags = TALEA_FAMILY_SAMPLED;
    ANSWERS(TALEA_STATUS_WRONG_OPTION,
            talea_register(registry, &options, &took, message, sizeof message));
    CHECK(strstr(message, "Histogram") != NULL);
    return 0;
}
