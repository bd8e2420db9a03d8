/* The text of a scrape: from the region into blocks, from the blocks into one string.
 *
 * A string that grows would be copied, and so exist twice. So the text waits in blocks outside of
 * PHP's memory, and each block is freed as soon as it is copied: at most the page and one block exist
 * at once. The first few blocks are kept for the next scrape, to save system calls. */
#include "php_talea.h"

#include <sys/mman.h>

enum { BLOCK = 1 << 18, KEPT = 16 };

typedef struct block {
    struct block *next;
    size_t used;
    char text[];
} block;

enum { BLOCK_TEXT = BLOCK - sizeof(block) };

/* Blocks that wait for the next scrape of this thread. */
ZEND_TLS block *kept;
ZEND_TLS int kept_count;

typedef struct {
    block *first;
    block *last;
    size_t len;
} page;

static bool page_append(page *page, talea_text piece);
static zend_string *string_for(page *page);
static talea_status page_render(page *page, talea_rendering *rendering, bool *is_full);
static block *block_new(void);
static void page_drop_first(page *page);

zend_string *page_of(const talea_registry *registry, talea_text accept) {
    page page = { NULL, NULL, 0 };
    bool is_full = false;
    talea_rendering *rendering = NULL;
    talea_status status = talea_render_begin(registry, accept, &rendering);
    if (status == TALEA_STATUS_OK) {
        status = page_render(&page, rendering, &is_full);
        talea_render_end(rendering);
    }
    zend_string *string = status == TALEA_STATUS_OK && !is_full ? string_for(&page) : NULL;
    size_t copied = 0;
    while (page.first) {
        if (string) {
            memcpy(ZSTR_VAL(string) + copied, page.first->text, page.first->used);
            copied += page.first->used;
        }
        page_drop_first(&page);
    }
    if (string) {
        ZSTR_VAL(string)[copied] = '\0';
    } else if (is_over_limit()) {
        /* PHP ends the request. */
    } else if (is_full) {
        failure_throw("there is no memory for the text of the metrics");
    } else {
        failure_of_status(status);
    }
    return string;
}

/* Room for the text, or null beyond the memory limit, where it may also jump out of here. */
static zend_string *string_for(page *page) {
    zend_string *volatile string = NULL;
    zend_try {
        string = string_alloc(page->len);
    } zend_catch {
        while (page->first) {
            page_drop_first(page);
        }
        zend_bailout();
    } zend_end_try();
    return string;
}

static talea_status page_render(page *page, talea_rendering *rendering, bool *is_full) {
    talea_text piece;
    talea_status status;
    while ((status = talea_render_next(rendering, &piece)) == TALEA_STATUS_OK && piece.len > 0) {
        if (!page_append(page, piece)) {
            *is_full = true;
            break;
        }
    }
    return status;
}

/* False if there is no memory. */
static bool page_append(page *page, talea_text piece) {
    while (piece.len > 0) {
        if (!page->last || page->last->used == BLOCK_TEXT) {
            block *block = block_new();
            if (!block) {
                return false;
            }
            *(page->last ? &page->last->next : &page->first) = block;
            page->last = block;
        }
        block *into = page->last;
        size_t part = MIN(piece.len, BLOCK_TEXT - into->used);
        memcpy(into->text + into->used, piece.data, part);
        into->used += part;
        page->len += part;
        piece.data += part;
        piece.len -= part;
    }
    return true;
}

/* Null if there is no memory. */
static block *block_new(void) {
    block *new = kept;
    if (new) {
        kept = new->next;
        kept_count--;
        new->next = NULL;
        new->used = 0;
        return new;
    }
    new = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return new == MAP_FAILED ? NULL : new;
}

void page_end(void) {
    while (kept) {
        block *first = kept;
        kept = first->next;
        munmap(first, BLOCK);
    }
    kept_count = 0;
}

static void page_drop_first(page *page) {
    block *first = page->first;
    page->first = first->next;
    if (kept_count < KEPT) {
        first->next = kept;
        kept = first;
        kept_count++;
    } else {
        munmap(first, BLOCK);
    }
}
