// Shared by the programs here.

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "talea.h"

#define CHECK(claim)                                                                \
    do {                                                                            \
        if (!(claim)) {                                                             \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #claim); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

// A text that grows.
struct page {
    char *text;
    size_t len;
    size_t longest_piece;
};

static inline void onto(struct page *page, const char *piece, size_t len) {
    char *text = (char *)realloc(page->text, page->len + len + 1);
    CHECK(text != NULL);
    memcpy(text + page->len, piece, len);
    page->text = text;
    page->len += len;
    page->text[page->len] = 0;
    if (len > page->longest_piece)
        page->longest_piece = len;
}

// Calls by name, which a program that loads the library cannot make.
#ifndef TALEA_LOADED

#define OK(call)                                                                    \
    do {                                                                            \
        talea_status answered = (call);                                             \
        if (answered != TALEA_STATUS_OK) {                                          \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,           \
                    talea_status_text(answered));                                   \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

#define ANSWERS(status, call) CHECK((call) == (status))

static const talea_text NONE = {NULL, 0};

enum { ADD = TALEA_OPERATION_ADD, SET = TALEA_OPERATION_SET, OBSERVE = TALEA_OPERATION_OBSERVE };

// A registry in a file, or in memory of the process where there is no path.
static inline const talea_registry *opened(const char *path, uint64_t len) {
    char message[512];
    talea_open_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.path = talea_text_of(path);
    options.len = len;
    const talea_registry *registry;
    if (talea_open(&options, &registry, message, sizeof message) != TALEA_STATUS_OK) {
        fprintf(stderr, "%s\n", message);
        exit(1);
    }
    return registry;
}

static inline talea_family_options options_of(uint32_t kind, const char *name,
                                              const talea_text *labels, size_t count) {
    talea_family_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.kind = kind;
    options.name = talea_text_of(name);
    options.help = talea_text_of("Help.");
    options.label_names = labels;
    options.label_count = count;
    return options;
}

static inline const talea_family *registered(const talea_registry *registry,
                                             const talea_family_options *options) {
    char message[512];
    const talea_family *family;
    if (talea_register(registry, options, &family, message, sizeof message) != TALEA_STATUS_OK) {
        fprintf(stderr, "%s\n", message);
        exit(1);
    }
    CHECK(message[0] == 0);
    return family;
}

static inline const talea_family *family_of(const talea_registry *registry, uint32_t kind,
                                            const char *name, const talea_text *labels,
                                            size_t count) {
    talea_family_options options = options_of(kind, name, labels, count);
    return registered(registry, &options);
}

// The page of a scrape; the caller frees its text.
static inline struct page rendered(const talea_registry *registry, const char *accept) {
    struct page page = {NULL, 0, 0};
    talea_rendering *rendering;
    talea_text piece;
    OK(talea_render_begin(registry, talea_text_of(accept), &rendering));
    do {
        OK(talea_render_next(rendering, &piece));
        onto(&page, piece.data, piece.len);
    } while (piece.len > 0);
    OK(talea_render_next(rendering, &piece));
    CHECK(piece.len == 0);
    talea_render_end(rendering);
    return page;
}

// Whether the text format shows such a line.
static inline bool shows(const talea_registry *registry, const char *line) {
    struct page page = rendered(registry, "");
    size_t len = strlen(line);
    bool found = false;
    for (const char *at = page.text; !found && (at = strstr(at, line)) != NULL; at += 1)
        found = (at == page.text || at[-1] == '\n') && at[len] == '\n';
    if (!found)
        fprintf(stderr, "%s\nis not in\n%s\n", line, page.text);
    free(page.text);
    return found;
}

static inline bool is(talea_text text, const char *other) {
    return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

// The sum over a family's series, and how many of them there are.
static inline double total_of(const talea_registry *registry, const char *name, size_t *count) {
    talea_reading *reading;
    const talea_family_view *family;
    double total = 0;
    if (count != NULL)
        *count = 0;
    OK(talea_read_begin(registry, talea_text_of(name), &reading));
    for (;;) {
        OK(talea_read_next(reading, &family));
        if (family == NULL)
            break;
        for (size_t n = 0; n < family->series_count; n++)
            total += talea_as_double(family->series[n].samples[0].number);
        if (count != NULL)
            *count += family->series_count;
    }
    talea_read_end(reading);
    return total;
}

// How often label values counted in the overflow series of a family.
static inline uint64_t dropped_by(const talea_registry *registry, const char *name) {
    talea_reading *reading;
    const talea_family_view *family;
    OK(talea_read_begin(registry, talea_text_of(name), &reading));
    OK(talea_read_next(reading, &family));
    const uint64_t dropped = family->dropped;
    talea_read_end(reading);
    return dropped;
}

#endif
#endif
