/* The distinct texts of a column, numbered in order of first appearance. */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "csv_number.h"

#define MOST_PROBES 1000

typedef struct {
    uint32_t hash;
    int32_t next; /* the code that came after this one: rows of a fleet come round after round */
} known;

typedef struct {
    int32_t *starts, *lengths; /* by code where its text lies, and how long it is */
    int32_t *slots;            /* a hash table: codes plus one */
    known *texts;              /* by code */
    int64_t mask, count, last; /* slots less one; codes; the code of the row before */
} words;

static inline uint64_t short_word(const uint8_t *text, int64_t size) {
    uint64_t word = 0;
    memcpy(&word, text, (size_t)size);
    return word;
}

static inline int same(const uint8_t *a, const uint8_t *b, int64_t size) {
    if (size < 8) {
        uint64_t differ = 0;
        for (int64_t k = 0; k < size; k++) differ |= (uint64_t)(a[k] ^ b[k]);
        return !differ;
    }
    for (int64_t k = 0; k < size - 8; k += 8)
        if (word_at(a + k) != word_at(b + k)) return 0;
    return word_at(a + size - 8) == word_at(b + size - 8);
}

static uint32_t hash_of(const uint8_t *text, int64_t size) {
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t sum = (uint64_t)size * odd;
    for (; size >= 8; text += 8, size -= 8) {
        sum = (sum ^ word_at(text)) * odd;
        sum ^= sum >> 29;
    }
    sum = (sum ^ short_word(text, size)) * odd;
    sum ^= sum >> 32;
    return (uint32_t)(sum * odd >> 32);
}

/* Room for twice as many; 0 where there is no memory. */
static int grow(words *w) {
    int64_t slots = w->mask ? 2 * (w->mask + 1) : 256;
    int32_t *larger = calloc((size_t)slots, sizeof *larger);
    known *texts = larger ? realloc(w->texts, (size_t)slots / 2 * sizeof *texts) : NULL;
    if (!texts) {
        free(larger);
        return 0;
    }
    for (int64_t code = 0; code < w->count; code++) {
        int64_t at = texts[code].hash & (slots - 1);
        while (larger[at]) at = (at + 1) & (slots - 1);
        larger[at] = (int32_t)code + 1;
    }
    free(w->slots);
    w->slots = larger, w->texts = texts, w->mask = slots - 1;
    return 1;
}

static inline int is_text(const words *w, int64_t code, const uint8_t *text, int64_t start, int64_t size) {
    return w->lengths[code] == size && same(text + w->starts[code], text + start, size);
}

/* The code of a text, a new one where it was not met before; -1 where that takes too long, or too much memory. */
static int64_t looked_up(words *w, const uint8_t *text, int64_t start, int64_t size) {
    if (2 * w->count >= w->mask && !grow(w)) return -1;
    uint32_t hash = hash_of(text + start, size);
    int64_t at = hash & w->mask;
    for (int64_t probe = 0; w->slots[at]; at = (at + 1) & w->mask) {
        int32_t code = w->slots[at] - 1;
        if (w->texts[code].hash == hash && is_text(w, code, text, start, size)) return code;
        if (++probe > MOST_PROBES) return -1;
    }
    w->starts[w->count] = (int32_t)start;
    w->lengths[w->count] = (int32_t)size;
    w->texts[w->count] = (known){hash, (int32_t)w->count};
    w->slots[at] = (int32_t)w->count + 1;
    return w->count++;
}

/* The same for the next row: its text is often that of the row before, or what came after that one last time. */
static inline int64_t code_of(words *w, const uint8_t *text, int64_t start, int64_t size) {
    if (w->count) {
        int64_t next = w->texts[w->last].next;
        if (is_text(w, w->last, text, start, size)) return w->last;
        if (is_text(w, next, text, start, size)) return w->last = next;
    }
    int64_t code = looked_up(w, text, start, size);
    if (code < 0) return -1;
    w->texts[w->last].next = (int32_t)code;
    return w->last = code;
}
