// Code that adds to the words of a series by its own atomic instructions, as another language does, and
// beside it threads that record by calls, and children: nothing is lost.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 20000, CPUS = 8 };

static const talea_series *orders, *paid, *depth, *level, *open_baskets;

static uint64_t words_of(const talea_series *series, uint64_t **words, size_t capacity) {
    size_t count = 0;
    OK(talea_series_words(series, words, capacity, &count));
    CHECK(count <= capacity);
    for (size_t n = 0; n < count; n++)
        CHECK((uintptr_t)words[n] % 8 == 0);
    return count;
}

static void add_whole(uint64_t *word, uint64_t amount) {
    __atomic_fetch_add(word, amount, __ATOMIC_RELAXED);
}

static void add_double(uint64_t *word, double amount) {
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
    do {
        double sum;
        memcpy(&sum, &before, 8);
        sum += amount;
        memcpy(&after, &sum, 8);
    } while (!__atomic_compare_exchange_n(word, &before, after, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void *adds_to_words(void *argument) {
    uint64_t *counter[CPUS], *floats[CPUS], *gauge[1], *baskets[1];
    uint64_t counters = words_of(orders, counter, CPUS), amounts = words_of(paid, floats, CPUS);
    // A word for each CPU.
    CHECK(counters == CPUS && amounts == CPUS);
    CHECK(words_of(depth, gauge, 1) == 1 && words_of(open_baskets, baskets, 1) == 1);
    uint64_t first = (uint64_t)(uintptr_t)argument;
    for (uint64_t n = first; n < first + ROUNDS; n++) {
        add_whole(counter[n % counters], 1);
        add_double(floats[n % amounts], 0.5);
        add_whole(gauge[0], 1);
        add_whole(baskets[0], (uint64_t)(n % 2 ? 1 : -1));
    }
    return NULL;
}

static void *records(void *argument) {
    (void)argument;
    for (int n = 0; n < ROUNDS; n++) {
        OK(talea_series_record(orders, ADD, talea_unsigned(1)));
        OK(talea_series_record(paid, ADD, talea_double(0.5)));
        OK(talea_series_record(depth, ADD, talea_signed(1)));
    }
    return NULL;
}

static const talea_series *kept(const talea_registry *registry, uint32_t kind, const char *name) {
    const talea_series *series;
    OK(talea_series_keep(family_of(registry, kind, name, NULL, 0), NULL, 0, &series));
    return series;
}

// Words stay those of their series.
static void words_count_from_nothing_after_a_removal_a_wipe_and_an_end(const talea_registry *registry) {
    const talea_text label = {"n", 1}, value = {"a", 1};
    const talea_family *jobs = family_of(registry, TALEA_KIND_COUNTER, "jobs", &label, 1);
    const talea_series *series;
    OK(talea_series_keep(jobs, &value, 1, &series));
    uint64_t *word, *again;
    CHECK(words_of(series, &word, 1) == 1);
    add_whole(word, 5);
    OK(talea_remove(jobs, &value, 1, NULL));
    CHECK(total_of(registry, "jobs_total", NULL) == 0);
    // What is added to a series that was removed is discarded.
    add_whole(word, 100);
    CHECK(total_of(registry, "jobs_total", NULL) == 0);
    const talea_series *anew;
    OK(talea_series_keep(jobs, &value, 1, &anew));
    CHECK(anew != series);
    talea_series_release(series);
    series = anew;
    CHECK(words_of(series, &word, 1) == 1);
    add_whole(word, 7);
    CHECK(shows(registry, "jobs_total{n=\"a\"} 7"));
    OK(talea_wipe(registry, talea_text_of("jobs_total")));
    add_whole(word, 3);
    CHECK(shows(registry, "jobs_total{n=\"a\"} 3"));
    OK(talea_unregister(registry, talea_text_of("jobs_total"), NULL));
    add_whole(word, 100);
    CHECK(family_of(registry, TALEA_KIND_COUNTER, "jobs", &label, 1) == jobs);
    add_whole(word, 2);
    OK(talea_record(jobs, &value, 1, ADD, talea_unsigned(20)));
    CHECK(shows(registry, "jobs_total{n=\"a\"} 22"));
    CHECK(words_of(series, &again, 1) == 1 && again == word);
}

int main(void) {
    const talea_registry *registry = opened(NULL, 4 << 20);
    words_count_from_nothing_after_a_removal_a_wipe_and_an_end(registry);
    orders = kept(registry, TALEA_KIND_COUNTER, "orders");
    paid = kept(registry, TALEA_KIND_FLOAT_COUNTER, "paid");
    depth = kept(registry, TALEA_KIND_INTEGER_GAUGE, "depth");
    level = kept(registry, TALEA_KIND_GAUGE, "level");
    open_baskets = kept(registry, TALEA_KIND_UP_DOWN_COUNTER, "open_baskets");
    pthread_t threads[4];
    for (uintptr_t n = 0; n < 4; n++)
        CHECK(pthread_create(&threads[n], NULL, n % 2 ? records : adds_to_words, (void *)n) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        adds_to_words(NULL);
        _exit(0);
    }
    for (int n = 0; n < 4; n++)
        CHECK(pthread_join(threads[n], NULL) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    uint64_t *word;
    CHECK(words_of(level, &word, 1) == 1);
    double stored = 2.5;
    memcpy(word, &stored, 8);

    size_t count = 9;
    OK(talea_series_words(orders, NULL, 0, &count));
    CHECK(count == 0);
    ANSWERS(TALEA_STATUS_NULL, talea_series_words(NULL, &word, 1, &count));
    ANSWERS(TALEA_STATUS_NULL, talea_series_words(orders, NULL, 1, &count));
    ANSWERS(TALEA_STATUS_NULL, talea_series_words(orders, &word, 1, NULL));
    ANSWERS(TALEA_STATUS_WRONG_KIND,
            talea_series_words(kept(registry, TALEA_KIND_HISTOGRAM, "drift"), &word, 1, &count));

    CHECK(shows(registry, "orders_total 100000"));
    CHECK(shows(registry, "paid_total 50000"));
    CHECK(shows(registry, "depth 100000"));
    CHECK(shows(registry, "level 2.5"));
    CHECK(shows(registry, "open_baskets 0"));
    return 0;
}
