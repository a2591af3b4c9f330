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

#define VERSION 4

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

int32_t gpuledger_version(void) { return VERSION; }

#define FOR_RUNS                                                                                                       \
    for (int64_t r = 0, first, end; r < count && (first = runs[r], end = r + 1 < count ? runs[r + 1] : n, 1); r++)

/* Values are made whole some at a time, in one pass without branches, and then added up run by run in several sums at
 * once: runs are short, and a sum must wait for the one before it. */
#define CHUNK 2048

static inline double sum_of(const double *x, int64_t n) {
    double a = 0, b = 0, c = 0, d = 0;
    const double *end = x + n;
    for (; x + 4 <= end; x += 4) a += x[0], b += x[1], c += x[2], d += x[3];
    if (x < end) a += *x++;
    if (x < end) b += *x++;
    if (x < end) c += *x;
    return (a + b) + (c + d);
}

static inline double sum_below(const double *x, int64_t n, double most) {
    double a = 0, b = 0;
    const double *end = x + n;
    for (; x + 2 <= end; x += 2) a += x[0] > most ? most : x[0], b += x[1] > most ? most : x[1];
    if (x < end) a += *x > most ? most : *x;
    return a + b;
}

/* total: whole(value * factor), at most cap[line] (NULL: no cap), where mask is set (NULL: everywhere), over time.
 * known: the time in which it is known (NULL: not wanted). A cap goes with ms NULL. */
#define LEVELS(NAME, T)                                                                                                \
    WIDE void NAME(const T *values, const int64_t *row, const uint8_t *mask, const double *ms, const double *cap,       \
                   const int64_t *runs, const int64_t *line, int64_t count, int64_t n, double factor, double *total,   \
                   double *known) {                                                                                    \
        double whole[CHUNK], time[CHUNK];                                                                              \
        for (int64_t r = 0, from = 0; from < n; from += CHUNK) {                                                       \
            int64_t size = n - from < CHUNK ? n - from : CHUNK, silent = 0;                                            \
            if (!mask && !ms && !row) {                                                                                \
                const T *v = values + from;                                                                            \
                for (int64_t i = 0; i < size; i++) {                                                                   \
                    double x = rint((double)v[i] * factor);                                                            \
                    int said = x == x;                                                                                 \
                    whole[i] = said ? x : 0;                                                                           \
                    silent += !said;                                                                                   \
                }                                                                                                      \
            }                                                                                                          \
            int plain = !mask && !ms && !row && !silent;                                                               \
            for (int64_t i = 0; !plain && i < size; i++) {                                                             \
                int64_t at = row ? row[from + i] : from + i;                                                           \
                double x = rint((double)values[at] * factor), w = ms ? ms[from + i] : 1;                               \
                int said = (x == x) & (!mask || mask[at]);                                                             \
                whole[i] = said ? x * w : 0;                                                                           \
                time[i] = said ? w : 0;                                                                                \
            }                                                                                                          \
            for (; r < count; r++) {                                                                                   \
                int64_t end = r + 1 < count ? runs[r + 1] : n, low = runs[r] > from ? runs[r] - from : 0;              \
                int64_t high = end - from < size ? end - from : size, k = line[r];                                     \
                double most = cap ? cap[k] : 0;                                                                        \
                if (most == most) {                                                                                    \
                    total[k] += cap ? sum_below(whole + low, high - low, most) : sum_of(whole + low, high - low);      \
                    if (known) known[k] += plain ? (double)(high - low) : sum_of(time + low, high - low);              \
                }                                                                                                      \
                if (end > from + size) break; /* goes on in the next chunk */                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
LEVELS(levels_f32, float)
LEVELS(levels_f64, double)

/* total: whole(value * factor) * whole(other) over time, where both are known. */
#define PRODUCTS(NAME, T)                                                                                              \
    WIDE void NAME(const T *values, const T *others, const int64_t *row, const double *ms, const int64_t *runs,         \
                   const int64_t *line, int64_t count, int64_t n, double factor, double *total) {                      \
        double whole[CHUNK];                                                                                           \
        for (int64_t r = 0, from = 0; from < n; from += CHUNK) {                                                       \
            int64_t size = n - from < CHUNK ? n - from : CHUNK;                                                        \
            if (!ms && !row) {                                                                                         \
                const T *v = values + from, *o = others + from;                                                        \
                for (int64_t i = 0; i < size; i++) {                                                                   \
                    double x = rint((double)v[i] * factor) * rint((double)o[i]);                                       \
                    whole[i] = x == x ? x : 0;                                                                         \
                }                                                                                                      \
            } else {                                                                                                   \
                for (int64_t i = 0; i < size; i++) {                                                                   \
                    int64_t at = row ? row[from + i] : from + i;                                                       \
                    double x = rint((double)values[at] * factor) * rint((double)others[at]);                           \
                    whole[i] = x == x ? x * (ms ? ms[from + i] : 1) : 0;                                               \
                }                                                                                                      \
            }                                                                                                          \
            for (; r < count; r++) {                                                                                   \
                int64_t end = r + 1 < count ? runs[r + 1] : n, low = runs[r] > from ? runs[r] - from : 0;              \
                int64_t high = end - from < size ? end - from : size;                                                  \
                total[line[r]] += sum_of(whole + low, high - low);                                                     \
                if (end > from + size) break;                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
PRODUCTS(products_f32, float)
PRODUCTS(products_f64, double)

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
