// Threads count by label values and kept, register, read and remove at once; nothing is lost.

#include <pthread.h>

#include "check.h"

enum { THREADS = 8, TIMES = 50000, SERIES = 16 };

static const talea_registry *registry;
static const talea_text LABELS[] = {{"thread", 6}, {"n", 1}};

static void *counts(void *argument) {
    const int thread = (int)(size_t)argument;
    const talea_family *orders = family_of(registry, TALEA_KIND_COUNTER, "orders", LABELS, 2);
    const talea_family *all = family_of(registry, TALEA_KIND_COUNTER, "all", NULL, 0);
    talea_family_options options = options_of(TALEA_KIND_HISTOGRAM, "size", LABELS + 1, 1);
    options.unit = TALEA_UNIT_BYTES;
    const talea_family *size = registered(registry, &options);
    const talea_series *kept;
    OK(talea_series_keep(all, NULL, 0, &kept));
    for (int n = 0; n < TIMES; n++) {
        char who[8], which[8];
        talea_text values[] = {{who, (size_t)sprintf(who, "%d", thread % 2)},
                               {which, (size_t)sprintf(which, "%d", n % SERIES)}};
        OK(talea_record(orders, values, 2, ADD, talea_unsigned(1)));
        OK(talea_record(size, values + 1, 1, OBSERVE, talea_unsigned((uint64_t)n)));
        OK(talea_series_record(kept, ADD, talea_unsigned(1)));
        if (n % 5000 == 0) {
            const talea_series *one;
            OK(talea_series_keep(orders, values, 2, &one));
            OK(talea_series_record(one, ADD, talea_unsigned(1)));
            CHECK(registered(registry, &options) == size);
            struct page page = rendered(registry, "");
            CHECK(strstr(page.text, "all_total ") != NULL);
            free(page.text);
        }
    }
    return NULL;
}

static pthread_barrier_t together;

// Registers one of two definitions of a name. Its pointer, or null if it was refused.
static void *defines(void *argument) {
    const size_t n = (size_t)argument;
    char name[32];
    snprintf(name, sizeof name, "rival_%zu", n / 4);
    pthread_barrier_wait(&together);
    talea_family_options options = options_of(TALEA_KIND_GAUGE, name, LABELS, 1 + n % 2);
    const talea_family *family = NULL;
    char message[256];
    talea_status status = talea_register(registry, &options, &family, message, sizeof message);
    CHECK(status == TALEA_STATUS_OK
          || (status == TALEA_STATUS_CANNOT_REGISTER && family == NULL && strstr(message, "labels")));
    return (void *)family;
}

static void one_of_two_definitions_holds(void) {
    CHECK(pthread_barrier_init(&together, NULL, 4) == 0);
    for (size_t round = 0; round < 100; round++) {
        pthread_t threads[4];
        void *families[4];
        for (size_t n = 0; n < 4; n++)
            CHECK(pthread_create(&threads[n], NULL, defines, (void *)(4 * round + n)) == 0);
        for (size_t n = 0; n < 4; n++)
            CHECK(pthread_join(threads[n], &families[n]) == 0);
        CHECK(families[0] == families[2] && families[1] == families[3]);
        CHECK((families[0] == NULL) != (families[1] == NULL));
    }
}

int main(void) {
    registry = opened(NULL, 16 << 20);
    one_of_two_definitions_holds();
    pthread_t threads[THREADS];
    for (size_t n = 0; n < THREADS; n++)
        CHECK(pthread_create(&threads[n], NULL, counts, (void *)n) == 0);
    for (size_t n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    size_t count;
    CHECK(total_of(registry, "orders_total", &count) == THREADS * (TIMES + TIMES / 5000));
    CHECK(count == 2 * SERIES);
    CHECK(total_of(registry, "all_total", NULL) == THREADS * TIMES);
    talea_reading *reading;
    const talea_family_view *family;
    OK(talea_read_begin(registry, talea_text_of("size_bytes"), &reading));
    OK(talea_read_next(reading, &family));
    uint64_t observed = 0;
    for (size_t n = 0; n < family->series_count; n++)
        observed += family->series[n].samples[family->series[n].sample_count - 1].number.bits;
    CHECK(observed == THREADS * TIMES);
    talea_read_end(reading);
    return 0;
}
