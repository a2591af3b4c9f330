/* Lines of CSV as columns, in two passes: one that counts, one that reads.
 *
 * `gpuledger.native.csv_block` says what a column is, and leaves to pyarrow whatever is odd here: a row with another number
 * of cells, a blank line, a number this code is not sure of. So nothing here guesses, and both ways give the same digits.
 *
 * Cells are found some thousand at a time by their ends, and then read column by column: what is alike lies together, so
 * that branches are foreseen, and columns nobody asked for cost nothing but their separators.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "csv_number.h"
#include "csv_words.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CELLS 8192 /* found at a time: their text stays in the cache until it is read */
#define GROUP 64
enum { NUMBERS = 0, LABELS = 1, TEXTS = 2 };

typedef struct {
    int64_t place;    /* among the cells of a row */
    int64_t kind;
    void *out;        /* numbers: double by row; labels: int32 codes by row; texts: int32 ends, one more than rows */
    uint8_t *valid;   /* numbers: a bit by row, all set when it comes in */
    int32_t *starts;  /* labels: where each distinct text lies; texts: where each row's lies */
    int32_t *lengths; /* labels: how long each distinct text is */
    int64_t count;    /* comes out: numbers: rows that hold none; labels: distinct texts; texts: bytes */
} column;

/* counts: line ends, carriage returns, bytes that are a quotation mark, bytes beyond ASCII (the last two: 0 or more). */
int64_t csv_look(const uint8_t *text, int64_t size, int64_t *counts) {
    for (int64_t from = 0; from < size;) {
        uint8_t lines[32] = {0}, returns[32] = {0}, quotes[32] = {0}, high[32] = {0};
        int64_t left = (size - from) / 32, rounds = left < 255 ? left : 255;
        for (int64_t k = 0; k < rounds; k++, from += 32)
            for (int j = 0; j < 32; j++) {
                uint8_t c = text[from + j];
                lines[j] = (uint8_t)(lines[j] + (c == '\n'));
                returns[j] = (uint8_t)(returns[j] + (c == '\r'));
                quotes[j] |= c == '"';
                high[j] |= c & 0x80;
            }
        for (int j = 0; j < 32; j++)
            counts[0] += lines[j], counts[1] += returns[j], counts[2] += quotes[j], counts[3] += high[j];
        if (!rounds)
            for (; from < size; from++) {
                uint8_t c = text[from];
                counts[0] += c == '\n', counts[1] += c == '\r', counts[2] += c == '"', counts[3] += c >> 7;
            }
    }
    return IN_ORDER;
}

#ifndef __SSE2__
/* The high bit of each byte of a word that is some byte. */
static inline uint64_t bytes_like(uint64_t word, uint8_t byte) {
    uint64_t x = word ^ byte * EVERY, low = 0x7F * EVERY;
    return ~(((x & low) + low) | x | low);
}
#endif

/* A bit for each of 64 bytes that ends a cell. */
static inline uint64_t ends_of(const uint8_t *text, uint8_t separator) {
    uint64_t found = 0;
#ifdef __SSE2__
    const __m128i a = _mm_set1_epi8((char)separator), b = _mm_set1_epi8('\n');
    for (int k = 0; k < 4; k++) {
        __m128i c = _mm_loadu_si128((const __m128i *)(text + 16 * k));
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(c, a), _mm_cmpeq_epi8(c, b));
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(hit) << (16 * k);
    }
#else
    for (int k = 0; k < 8; k++) {
        uint64_t word = word_at(text + 8 * k), hit = bytes_like(word, separator) | bytes_like(word, '\n');
        found |= ((hit >> 7) * 0x0102040810204080u >> 56) << (8 * k);
    }
#endif
    return found;
}

/* Notes where cells end, from byte `at` on, until `most` are found or the text ends; moves `at`. Up to 63 more are found. */
static int64_t find_ends(const uint8_t *text, int64_t size, uint8_t separator, int64_t *at, int32_t *ends, int64_t most) {
    int64_t found = 0;
    for (; *at < size && found < most; *at += GROUP) {
        uint8_t last[GROUP] = {0};
        const uint8_t *group = text + *at;
        if (size - *at < GROUP) group = memcpy(last, group, (size_t)(size - *at));
        uint64_t bits = ends_of(group, separator);
        for (; bits; bits &= bits - 1) ends[found++] = (int32_t)(*at + __builtin_ctzll(bits));
    }
    return found;
}

/* Rows of a tile: cell c of row r ends at ends[r * width + c], and starts behind the end before that. */
typedef struct {
    const uint8_t *text;
    const int32_t *ends;
    int64_t width, first, rows; /* cells of a row; the number of the first row; how many rows */
    int returns;                /* whether a carriage return may end a row */
} tile;

static inline int64_t cell_end(const tile *t, int64_t at, int64_t place) {
    int64_t end = t->ends[at];
    return end - (t->returns && place == t->width - 1 && end && t->text[end - 1] == '\r');
}

static int read_numbers(const tile *t, column *c) {
    double *out = (double *)c->out + t->first;
    for (int64_t r = 0, at = c->place; r < t->rows; r++, at += t->width) {
        int64_t start = (int64_t)t->ends[at - 1] + 1, end = cell_end(t, at, c->place);
        if (start == end) {
            int64_t row = t->first + r;
            c->valid[row >> 3] &= (uint8_t) ~(1u << (row & 7));
            c->count++;
            out[r] = 0;
            continue;
        }
        const uint8_t *from = t->text + start, *to = t->text + end;
        if (end >= 16 && quick_number(from, to, out + r) == IN_ORDER) continue;
        if (slow_number(from, to, out + r) == ODD) return ODD;
    }
    return IN_ORDER;
}

static int read_texts(const tile *t, column *c) {
    int32_t *ends = (int32_t *)c->out + t->first + 1, *starts = c->starts + t->first;
    for (int64_t r = 0, at = c->place; r < t->rows; r++, at += t->width) {
        int64_t start = (int64_t)t->ends[at - 1] + 1;
        c->count += cell_end(t, at, c->place) - start;
        starts[r] = (int32_t)start;
        ends[r] = (int32_t)c->count;
    }
    return IN_ORDER;
}

static int read_labels(const tile *t, column *c, words *w) {
    int32_t *out = (int32_t *)c->out + t->first;
    w->starts = c->starts, w->lengths = c->lengths;
    for (int64_t r = 0, at = c->place; r < t->rows; r++, at += t->width) {
        int64_t start = (int64_t)t->ends[at - 1] + 1;
        int64_t code = code_of(w, t->text, start, cell_end(t, at, c->place) - start);
        if (code < 0) return ODD;
        out[r] = (int32_t)code;
    }
    c->count = w->count;
    return IN_ORDER;
}

/* Whether each row ends with its line; adds the carriage returns before line ends. */
static int rows_end(const tile *t, int64_t *returns) {
    for (int64_t r = 0, at = t->width - 1; r < t->rows; r++, at += t->width) {
        int64_t end = t->ends[at], start = (int64_t)t->ends[at - 1] + 1;
        if (t->text[end] != '\n') return ODD;
        if (t->width == 1 && start == cell_end(t, at, 0)) return ODD; /* a blank line is not a row */
        *returns += end > start && t->text[end - 1] == '\r';
    }
    return IN_ORDER;
}

/* Lines of text, the last one ended too, as many as `rows`, with as many carriage returns as `returns`: their cells by
 * column. Gives 0 where all is in order; else what came out is of no use. */
int64_t csv_read(const uint8_t *text, int64_t size, int64_t separator, int64_t width, int64_t rows, int64_t returns,
                 column *columns, int64_t count) {
    int32_t room[1 + 2 * CELLS + GROUP], *ends = room + 1;
    int64_t at = 0, found = 0, met = 0, status = IN_ORDER;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || width > CELLS || size > INT32_MAX - GROUP) return ODD;
    words *of = calloc((size_t)count + 1, sizeof *of);
    if (!of) return ODD;
    tile t = {text, ends, width, 0, 0, returns > 0};
    ends[-1] = -1;
    while (status == IN_ORDER && t.first < rows) {
        found += find_ends(text, size, (uint8_t)separator, &at, ends + found, CELLS);
        t.rows = found / width;
        if (!t.rows || t.first + t.rows > rows || rows_end(&t, &met) == ODD) status = ODD;
        for (int64_t k = 0; k < count && status == IN_ORDER; k++) {
            column *c = columns + k;
            status = c->kind == NUMBERS ? read_numbers(&t, c)
                   : c->kind == LABELS  ? read_labels(&t, c, of + k) : read_texts(&t, c);
        }
        int64_t used = t.rows * width;
        memmove(room, room + used, (size_t)(found - used + 1) * sizeof *room);
        found -= used;
        t.first += t.rows;
    }
    for (int64_t k = 0; k < count; k++) free(of[k].slots), free(of[k].texts);
    free(of);
    return status == IN_ORDER && (at < size || found || met != returns) ? ODD : status;
}

/* Texts of a block, one behind the other: text k lies at starts[k] and ends at ends[k + 1] in what is made. */
int64_t csv_texts(const uint8_t *text, const int32_t *starts, const int32_t *ends, int64_t count, uint8_t *out) {
    for (int64_t k = 0; k < count; k++) memcpy(out + ends[k], text + starts[k], (size_t)(ends[k + 1] - ends[k]));
    return IN_ORDER;
}
