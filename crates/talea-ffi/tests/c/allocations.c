// Recording in series that exist allocates nothing.

#include "check.h"

static unsigned long allocations;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    allocations++;
    return __libc_realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    allocations++;
    *memory = __libc_memalign(alignment, size);
    return *memory == NULL;
}

static const talea_text LABELS[] = {{"method", 6}, {"route", 5}};

int main(void) {
    const talea_registry *registry = opened(NULL, 4 << 20);
    // The library calls the functions above.
    CHECK(allocations > 0);
    const uint32_t kinds[] = {TALEA_KIND_COUNTER, TALEA_KIND_GAUGE, TALEA_KIND_HISTOGRAM};
    const char *names[] = {"orders", "depth", "drift"};
    const talea_family *families[3];
    const talea_series *kept[3];
    char route[200];
    memset(route, 'x', sizeof route);
    // Short values are found in the lookup cache; long ones are written as text, on the stack.
    talea_text values[][2] = {{{"GET", 3}, {"/items/{id}", 11}}, {{"GET", 3}, {route, sizeof route}}};
    for (int n = 0; n < 3; n++) {
        families[n] = family_of(registry, kinds[n], names[n], LABELS, 2);
        OK(talea_series_keep(families[n], values[0], 2, &kept[n]));
    }
    for (int round = 0; round < 2; round++) {
        const unsigned long before = allocations;
        for (int n = 0; n < 1000; n++) {
            for (int v = 0; v < 2; v++) {
                OK(talea_record(families[0], values[v], 2, ADD, talea_unsigned(1)));
                OK(talea_record(families[1], values[v], 2, SET, talea_double(n)));
                OK(talea_record(families[2], values[v], 2, OBSERVE, talea_double(n)));
            }
            OK(talea_series_record(kept[0], ADD, talea_unsigned(1)));
            OK(talea_series_record(kept[1], SET, talea_double(n)));
            OK(talea_series_record(kept[2], OBSERVE, talea_double(n)));
            // Nor do refused updates allocate.
            ANSWERS(TALEA_STATUS_WRONG_LABELS, talea_record(families[0], values[0], 1, ADD, talea_unsigned(1)));
            ANSWERS(TALEA_STATUS_WRONG_KIND, talea_record(families[0], values[0], 2, SET, talea_double(1)));
        }
        CHECK(round == 0 || allocations == before);
    }
    return 0;
}
