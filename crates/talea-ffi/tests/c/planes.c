// Threads and children that borrow planes and add to words there by plain loads and stores, beside others that record
// by calls: nothing is lost.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 20000, PLANES = 3 };

static const talea_registry *registry;
static const talea_series *orders, *paid, *by_country;

static void *adds_plainly(void *argument) {
    (void)argument;
    talea_plane *plane;
    OK(talea_plane_borrow(registry, &plane));
    uint64_t *whole, *real, *labelled;
    OK(talea_plane_word(plane, orders, &whole));
    OK(talea_plane_word(plane, paid, &real));
    OK(talea_plane_word(plane, by_country, &labelled));
    for (int n = 0; n < ROUNDS; n++) {
        *(volatile uint64_t *)whole += 1;
        *(volatile double *)real += 0.5;
        *(volatile uint64_t *)labelled += 1;
    }
    talea_plane_return(plane);
    return NULL;
}

static void *records(void *argument) {
    (void)argument;
    for (int n = 0; n < ROUNDS; n++) {
        OK(talea_series_add_u64(orders, 1));
        OK(talea_series_add_f64(paid, 0.5));
        OK(talea_series_add_u64(by_country, 1));
    }
    return NULL;
}

static const talea_series *kept(const talea_family *family, const talea_text *values, size_t count) {
    const talea_series *series;
    OK(talea_series_keep(family, values, count, &series));
    return series;
}

int main(void) {
    char message[256];
    talea_open_options opening = {0};
    opening.size = sizeof opening;
    opening.len = 4 << 20;
    opening.lent_planes = PLANES;
    OK(talea_open(&opening, &registry, message, sizeof message));
    const talea_text country = {"country", 7}, peru = {"pe", 2};
    talea_family_options options = {0};
    options.size = sizeof options;
    options.kind = TALEA_KIND_COUNTER;
    options.flags = TALEA_FAMILY_STRIPED;
    options.name = talea_text_of("sales");
    options.help = talea_text_of("Sales.");
    options.label_names = &country;
    options.label_count = 1;
    const talea_family *sales;
    OK(talea_register(registry, &options, &sales, message, sizeof message));
    by_country = kept(sales, &peru, 1);
    orders = kept(family_of(registry, TALEA_KIND_COUNTER, "orders", NULL, 0), NULL, 0);
    paid = kept(family_of(registry, TALEA_KIND_FLOAT_COUNTER, "paid", NULL, 0), NULL, 0);

    pthread_t threads[4];
    for (uintptr_t n = 0; n < 4; n++)
        CHECK(pthread_create(&threads[n], NULL, n % 2 ? records : adds_plainly, NULL) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        adds_plainly(NULL);
        _exit(0);
    }
    for (int n = 0; n < 4; n++)
        CHECK(pthread_join(threads[n], NULL) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(shows(registry, "orders_total 100000"));
    CHECK(shows(registry, "paid_total 50000"));
    CHECK(shows(registry, "sales_total{country=\"pe\"} 100000"));

    talea_plane *planes[PLANES], *more;
    for (int n = 0; n < PLANES; n++)
        OK(talea_plane_borrow(registry, &planes[n]));
    ANSWERS(TALEA_STATUS_NO_ROOM, talea_plane_borrow(registry, &more));
    uint64_t *word;
    ANSWERS(TALEA_STATUS_WRONG_KIND,
            talea_plane_word(planes[0], kept(family_of(registry, TALEA_KIND_GAUGE, "level", NULL, 0), NULL, 0), &word));
    ANSWERS(TALEA_STATUS_NULL, talea_plane_borrow(NULL, &more));
    ANSWERS(TALEA_STATUS_NULL, talea_plane_borrow(registry, NULL));
    ANSWERS(TALEA_STATUS_NULL, talea_plane_word(NULL, orders, &word));
    ANSWERS(TALEA_STATUS_NULL, talea_plane_word(planes[0], NULL, &word));
    ANSWERS(TALEA_STATUS_NULL, talea_plane_word(planes[0], orders, NULL));
    talea_plane_return(NULL);
    for (int n = 0; n < PLANES; n++)
        talea_plane_return(planes[n]);
    OK(talea_plane_borrow(registry, &more));
    talea_plane_return(more);
    return 0;
}
