/* Sums over the rows of lines, and readings made ready for them, each in one pass.
 *
 * `gpuledger.native.line_sums` says what each sum is, in numpy, and uses these where they were compiled. They must agree
 * with it to the last digit: every amount is a whole number below 2^53, so the order of adding is free, and
 * nothing else may be rounded otherwise (no fused multiply-add, no fast math).
 *
 * Pieces lie in runs: run r has the pieces from runs[r] to runs[r + 1], the last one those to n, all of line line[r]. Piece
 * i is of sample row[i] (row NULL: of sample i) and stands for ms[i] (ms NULL: each for 1). A sample that is NaN says
 * nothing. Sums by line come in zeroed.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "wide.h"

#define VERSION 12

int32_t gpuledger_version(void) { return VERSION; }

#define FOR_RUNS                                                                                                       \
    for (int64_t r = 0, first, end; r < count && (first = runs[r], end = r + 1 < count ? runs[r + 1] : n, 1); r++)

/* Up to eight sums at once. Values are made whole some rows at a time, in one pass a column without branches; then rows of
 * eight numbers are added up run by run. Runs are short: column by column, each would be a loop that ends unforeseen. */
#define ROWS 256
#define AT_ONCE 8
typedef double four __attribute__((vector_size(32)));
typedef double four_anywhere __attribute__((vector_size(32), aligned(8)));

typedef struct {
    const void *values;   /* by sample */
    const void *others;   /* by sample what to multiply with, made whole (NULL: nothing) */
    const double *cap;    /* by sample what a value is at most, before the factor (NULL: no cap; NaN: nothing is known) */
    const uint8_t *mask;  /* by sample whether it counts (NULL: all do) */
    double factor;        /* a sum is of whole(value * factor) over time, where all of this is known; */
    int64_t double_values, double_others; /* of float64 (else of float32); */
    int64_t time;         /* or of the time itself */
} level;

#define MADE(NAME, T)                                                                                                  \
    static INTO void NAME(const T *values, const level *l, const int64_t *row, int64_t from, int64_t size,           \
                            double *restrict out) {                                                                    \
        const double factor = l->factor;                                                                               \
        if (row)                                                                                                       \
            for (int64_t i = 0; i < size; i++) out[i] = rint((double)values[row[from + i]] * factor);                  \
        else                                                                                                           \
            for (int64_t i = 0; i < size; i++) out[i] = rint((double)values[from + i] * factor);                       \
    }
MADE(made_f32, float)
MADE(made_f64, double)

static INTO void times_others(const level *l, const int64_t *row, int64_t from, int64_t size, double *restrict x) {
    for (int64_t i = 0; i < size; i++) {
        int64_t at = row ? row[from + i] : from + i;
        x[i] *= rint(l->double_others ? ((const double *)l->others)[at] : (double)((const float *)l->others)[at]);
    }
}

static INTO void at_most(const level *l, const int64_t *row, int64_t from, int64_t size, double *restrict x) {
    const double factor = l->factor;
    for (int64_t i = 0; i < size; i++) {
        double most = rint(l->cap[row ? row[from + i] : from + i] * factor);
        x[i] = x[i] > most || most != most ? most : x[i];
    }
}

static INTO void where(const uint8_t *mask, const int64_t *row, int64_t from, int64_t size, double *restrict x) {
    for (int64_t i = 0; i < size; i++) x[i] = mask[row ? row[from + i] : from + i] ? x[i] : NAN;
}

/* out: lines x eight. */
WIDE void sums_of_levels(const level *levels, int64_t columns, const int64_t *row, const double *ms, const int64_t *runs,
                         const int64_t *line, int64_t count, int64_t n, double *out) {
    four rows[ROWS][2];
    double x[ROWS];
    for (int64_t i = 0; i < ROWS; i++) rows[i][0] = rows[i][1] = (four){0};
    for (int64_t r = 0, from = 0; from < n; from += ROWS) {
        int64_t size = n - from < ROWS ? n - from : ROWS;
        for (int64_t c = 0; c < columns; c++) {
            const level *l = levels + c;
            if (l->double_values) made_f64(l->values, l, row, from, size, x);
            else made_f32(l->values, l, row, from, size, x);
            if (l->others) times_others(l, row, from, size, x);
            if (l->cap) at_most(l, row, from, size, x);
            if (l->mask) where(l->mask, row, from, size, x);
            if (l->time) for (int64_t i = 0; i < size; i++) x[i] = x[i] == x[i] ? 1 : NAN;
            if (ms) for (int64_t i = 0; i < size; i++) x[i] *= ms[from + i];
            double *column = (double *)rows + c;
            for (int64_t i = 0; i < size; i++) column[i * AT_ONCE] = x[i] == x[i] ? x[i] : 0;
        }
        for (; r < count; r++) {
            int64_t end = r + 1 < count ? runs[r + 1] : n, low = runs[r] > from ? runs[r] - from : 0;
            int64_t high = end - from < size ? end - from : size;
            four one = {0}, other = {0};
            for (; low < high; low++) one += rows[low][0], other += rows[low][1];
            four_anywhere *sums = (four_anywhere *)(out + line[r] * AT_ONCE);
            sums[0] += one;
            sums[1] += other;
            if (end > from + size) break; /* goes on in the next rows */
        }
    }
}

/* out: the largest value of each line; comes in as NaN, which stays where none is known. */
#define HIGHEST(NAME, T)                                                                                               \
    WIDE void NAME(const T *values, const int64_t *row, const int64_t *runs, const int64_t *line, int64_t count,        \
                   int64_t n, T *out) {                                                                                \
        FOR_RUNS {                                                                                                     \
            T most = -INFINITY; /* no reading is: it stays where all are NaN */                                        \
            for (int64_t i = first; i < end; i++) {                                                                    \
                T x = values[row ? row[i] : i];                                                                        \
                most = x > most ? x : most;                                                                            \
            }                                                                                                          \
            if (most > -INFINITY && !(out[line[r]] >= most)) out[line[r]] = most;                                      \
        }                                                                                                              \
    }
HIGHEST(highest_f32, float)
HIGHEST(highest_f64, double)

/* out: lines x codes, the time of each code, all below width. Where each piece counts for 1, pieces are counted in two
 * tables that take turns (`counts`, two zeroed numbers for each of out): the next one is often of the same code. */
void times_by_code(const uint8_t *code, const int64_t *row, const double *ms, const int64_t *runs, const int64_t *line,
                   int64_t count, int64_t n, int64_t width, int64_t cells, int32_t *counts, double *out) {
    FOR_RUNS {
        int64_t place = line[r] * width;
        if (ms) {
            for (int64_t i = first; i < end; i++) out[place + code[row ? row[i] : i]] += ms[i];
        } else {
            int32_t *one = counts + place, *other = counts + cells + place;
            int64_t i = first;
            for (; i + 2 <= end; i += 2) one[code[row ? row[i] : i]]++, other[code[row ? row[i + 1] : i + 1]]++;
            if (i < end) one[code[row ? row[i] : i]]++;
        }
    }
    if (ms) return;
    for (int64_t i = 0; i < cells; i++) out[i] = (double)counts[i] + (double)counts[cells + i];
}

/* out: how many edges each value is at or above; edge_count + 1 where it is NaN. */
#define PLACES(NAME, T)                                                                                                \
    WIDE void NAME(const T *values, const double *edges, int64_t edge_count, int64_t n, uint8_t *out) {                 \
        for (int64_t i = 0; i < n; i++) out[i] = values[i] == values[i] ? 0 : (uint8_t)(edge_count + 1);               \
        for (int64_t e = 0; e < edge_count; e++) {                                                                     \
            T edge = (T)edges[e];                                                                                      \
            for (int64_t i = 0; i < n; i++) out[i] += values[i] >= edge;                                               \
        }                                                                                                              \
    }
PLACES(places_f32, float)
PLACES(places_f64, double)

/* out: each share's bin of `bins` equal ones, the last for what is above; `bins` where it is NaN. */
#define BINS(NAME, T)                                                                                                  \
    WIDE void NAME(const T *values, int64_t bins, int64_t n, uint8_t *out) {                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            T x = values[i] * (T)bins, most = (T)(bins - 1);                                                           \
            out[i] = x != x ? (uint8_t)bins : (uint8_t)(int32_t)(x > most ? most : x); /* shares are not negative */                                 \
        }                                                                                                              \
    }
BINS(bins_f32, float)
BINS(bins_f64, double)

/* out: (value + offset) * multiply / divide as a column holds it. Where `valid` (a bitmap, NULL: all are) says that a
 * value is missing, out is 0. Returns how many values need a closer look: not finite, from `blank_from` on, out of
 * bounds, or too large for float64 to hold every whole number. */
#define WHOLE_BELOW 9007199254740992.0 /* 2^53 */
#define FIT(NAME, T, O, MADE)                                                                                          \
    WIDE int64_t NAME(const T *values, const uint8_t *valid, int64_t n, double offset, double multiply, double divide,  \
                      double blank_from, double low, double high, O *out) {                                            \
        int64_t odd = 0;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            double raw = (double)values[i], x = raw;                                                                   \
            x = offset != 0 ? x + offset : x;                                                                          \
            x = multiply != 1 ? x * multiply : x;                                                                      \
            x = divide != 1 ? x / divide : x;                                                                          \
            int fine = (raw < blank_from) & (x >= low) & (x <= high) & (fabs(raw) < WHOLE_BELOW) &                     \
                       (fabs(x) < WHOLE_BELOW);                                                                        \
            if (valid) {                                                                                               \
                int there = valid[i >> 3] >> (i & 7) & 1;                                                              \
                fine |= !there;                                                                                        \
                x = there ? x : 0;                                                                                     \
            }                                                                                                          \
            x = fine ? x : 0;                                                                                          \
            odd += !fine;                                                                                              \
            out[i] = (O)MADE(x);                                                                                       \
        }                                                                                                              \
        return odd;                                                                                                    \
    }
FIT(fit_f64_f32, double, float, )
FIT(fit_f64_f64, double, double, )
FIT(fit_f64_i64, double, int64_t, rint)
FIT(fit_i64_f32, int64_t, float, )
FIT(fit_i64_f64, int64_t, double, )
FIT(fit_i64_i64, int64_t, int64_t, rint)
FIT(fit_f32_f32, float, float, )
FIT(fit_f32_f64, float, double, )
FIT(fit_f32_i64, float, int64_t, rint)
FIT(fit_i32_f32, int32_t, float, )
FIT(fit_i32_f64, int32_t, double, )
FIT(any_i32_i64, int32_t, int64_t, rint)

/* Whole numbers times a whole number stay whole: not converted back, they take a third of the time. */
WIDE int64_t fit_i32_i64(const int32_t *values, const uint8_t *valid, int64_t n, double offset, double multiply,
                         double divide, double blank_from, double low, double high, int64_t *out) {
    const int32_t by = fabs(multiply) < 1 << 21 ? (int32_t)multiply : 0; /* products stay below 2^53 */
    if (valid || offset != 0 || divide != 1 || multiply != by)
        return any_i32_i64(values, valid, n, offset, multiply, divide, blank_from, low, high, out);
    int64_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        double raw = (double)values[i], x = raw * multiply;
        int64_t fine = (raw < blank_from) & (x >= low) & (x <= high);
        odd += !fine;
        out[i] = (int64_t)values[i] * by & -fine;
    }
    return odd;
}

/* row: the first row of each group; comes in as -1, which stays where a group has none. */
void first_rows(const int32_t *group, int64_t n, int64_t *row) {
    for (int64_t i = 0; i < n; i++)
        if (row[group[i]] < 0) row[group[i]] = i;
}

/* How many rows have another code than their group. */
WIDE int64_t strays(const int32_t *group, const int32_t *code, const int32_t *of_group, int64_t n) {
    int64_t odd = 0;
    for (int64_t i = 0; i < n; i++) odd += code[i] != of_group[group[i]];
    return odd;
}

/* out: blocks of rows, one after the other; block b has the rows from start[b] on, rows[b] of them, of the array at
 * base[piece[b]]. Rows are of `size` bytes. */
void copy_blocks(const uint8_t *const *base, const int64_t *piece, const int64_t *start, const int64_t *rows,
                 int64_t blocks, int64_t size, uint8_t *out) {
    for (int64_t b = 0; b < blocks; b++) {
        memcpy(out, base[piece[b]] + start[b] * size, (size_t)(rows[b] * size));
        out += rows[b] * size;
    }
}

/* out: by column and run of rows its sum; run r has the rows in places starts[r] to starts[r + 1], the last one those to
 * n; in place i stands row order[i] (order NULL: row i). */
#define COLUMNS 8 /* at once: runs are short, and each is a loop that ends unforeseen */
WIDE void added_up(const int64_t *const *columns, int64_t count, const int64_t *order, const int64_t *starts,
                   int64_t runs, int64_t n, int64_t *out) {
    for (int64_t c = 0; c < count; c += COLUMNS) {
        const int64_t some = count - c < COLUMNS ? count - c : COLUMNS;
        const uint64_t *values[COLUMNS];
        for (int64_t k = 0; k < COLUMNS; k++) values[k] = (const uint64_t *)columns[k < some ? c + k : c];
        for (int64_t r = 0; r < runs; r++) {
            const int64_t end = r + 1 < runs ? starts[r + 1] : n;
            uint64_t sums[COLUMNS] = {0}; /* wrap as numpy's do */
            for (int64_t i = starts[r]; i < end; i++) {
                const int64_t at = order ? order[i] : i;
                for (int64_t k = 0; k < COLUMNS; k++) sums[k] += values[k][at];
            }
            for (int64_t k = 0; k < some; k++) out[(c + k) * runs + r] = (int64_t)sums[k];
        }
    }
}

/* order: the rows by rising key, rows of one key as they stand; next: a zeroed number for each key. */
void order_by(const int32_t *key, int64_t n, int64_t keys, int32_t *next, int32_t *order) {
    for (int64_t i = 0; i < n; i++) next[key[i]]++;
    for (int32_t k = 0, before = 0; k < keys; k++) {
        int32_t count = next[k];
        next[k] = before;
        before += count;
    }
    for (int64_t i = 0; i < n; i++) order[next[key[i]]++] = (int32_t)i;
}
