/* Sums over the rows of lines, and readings made ready for them, each in one pass.
 *
 * `gpuledger.native.line_sums` says what each sum is, in numpy, and uses these where they were compiled. They must agree
 * with it to the last digit: every amount is a whole number below 2^53, so the order of adding is free, and
 * nothing else may be rounded otherwise (no fused multiply-add, no fast math).
 *
 * Of n pieces, piece i is of sample row[i] (row NULL: of sample i) and stands for ms[i] (ms NULL: each for 1). Line k has
 * the pieces from starts[k] to starts[k + 1], the last line those to n. A sample that is NaN says nothing.
 */
#include <math.h>
#include <stdint.h>

#define VERSION 2

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

int32_t gpuledger_version(void) { return VERSION; }

static inline int64_t line_end(const int64_t *starts, int64_t lines, int64_t k, int64_t n) {
    return k + 1 < lines ? starts[k + 1] : n;
}

/* total: whole(value * factor), at most cap[k] (NULL: no cap), where mask is set (NULL: everywhere), over time.
 * known: the time in which it is known (NULL: not wanted). */
#define LEVELS(NAME, T)                                                                                                \
    WIDE void NAME(const T *values, const int64_t *row, const uint8_t *mask, const double *ms, const double *cap,       \
                   const int64_t *starts, int64_t lines, int64_t n, double factor, double *total, double *known) {     \
        for (int64_t k = 0; k < lines; k++) {                                                                          \
            int64_t first = starts[k], end = line_end(starts, lines, k, n);                                            \
            double sum = 0, time = 0, most = cap ? cap[k] : INFINITY;                                                  \
            if (most != most) {                                                                                        \
                total[k] = 0;                                                                                          \
                if (known) known[k] = 0;                                                                               \
                continue;                                                                                              \
            }                                                                                                          \
            if (!mask && !ms && !row) {                                                                                \
                _Pragma("omp simd reduction(+ : sum, time)") for (int64_t i = first; i < end; i++) {                   \
                    double x = rint((double)values[i] * factor);                                                       \
                    int said = x == x;                                                                                 \
                    x = x > most ? most : x;                                                                           \
                    sum += said ? x : 0;                                                                               \
                    time += said ? 1 : 0;                                                                              \
                }                                                                                                      \
            } else if (!mask && !ms) {                                                                                 \
                _Pragma("omp simd reduction(+ : sum, time)") for (int64_t i = first; i < end; i++) {                   \
                    double x = rint((double)values[row[i]] * factor);                                                  \
                    int said = x == x;                                                                                 \
                    x = x > most ? most : x;                                                                           \
                    sum += said ? x : 0;                                                                               \
                    time += said ? 1 : 0;                                                                              \
                }                                                                                                      \
            } else {                                                                                                   \
                for (int64_t i = first; i < end; i++) {                                                                \
                    int64_t at = row ? row[i] : i;                                                                     \
                    if (mask && !mask[at]) continue;                                                                   \
                    double x = rint((double)values[at] * factor), w = ms ? ms[i] : 1;                                  \
                    if (x != x) continue;                                                                              \
                    sum += (x > most ? most : x) * w;                                                                  \
                    time += w;                                                                                         \
                }                                                                                                      \
            }                                                                                                          \
            total[k] = sum;                                                                                            \
            if (known) known[k] = time;                                                                                \
        }                                                                                                              \
    }
LEVELS(levels_f32, float)
LEVELS(levels_f64, double)

/* total: whole(value * factor) * whole(other) over time, where both are known. */
#define PRODUCTS(NAME, T)                                                                                              \
    WIDE void NAME(const T *values, const T *others, const int64_t *row, const double *ms, const int64_t *starts,       \
                   int64_t lines, int64_t n, double factor, double *total) {                                           \
        for (int64_t k = 0; k < lines; k++) {                                                                          \
            int64_t first = starts[k], end = line_end(starts, lines, k, n);                                            \
            double sum = 0;                                                                                            \
            if (!ms && !row) {                                                                                         \
                _Pragma("omp simd reduction(+ : sum)") for (int64_t i = first; i < end; i++) {                         \
                    double x = rint((double)values[i] * factor) * rint((double)others[i]);                             \
                    sum += x == x ? x : 0;                                                                             \
                }                                                                                                      \
            } else if (!ms) {                                                                                          \
                _Pragma("omp simd reduction(+ : sum)") for (int64_t i = first; i < end; i++) {                         \
                    double x = rint((double)values[row[i]] * factor) * rint((double)others[row[i]]);                   \
                    sum += x == x ? x : 0;                                                                             \
                }                                                                                                      \
            } else {                                                                                                   \
                for (int64_t i = first; i < end; i++) {                                                                \
                    int64_t at = row ? row[i] : i;                                                                     \
                    double x = rint((double)values[at] * factor) * rint((double)others[at]);                           \
                    sum += x == x ? x * ms[i] : 0;                                                                     \
                }                                                                                                      \
            }                                                                                                          \
            total[k] = sum;                                                                                            \
        }                                                                                                              \
    }
PRODUCTS(products_f32, float)
PRODUCTS(products_f64, double)

/* out: the largest value of each line, NaN where none is known. */
#define HIGHEST(NAME, T)                                                                                               \
    WIDE void NAME(const T *values, const int64_t *row, const int64_t *starts, int64_t lines, int64_t n, T *out) {      \
        for (int64_t k = 0; k < lines; k++) {                                                                          \
            int64_t first = starts[k], end = line_end(starts, lines, k, n);                                            \
            T most = -INFINITY;                                                                                        \
            int said = 0;                                                                                              \
            if (row) {                                                                                                 \
                _Pragma("omp simd reduction(max : most) reduction(| : said)") for (int64_t i = first; i < end; i++) {  \
                    T x = values[row[i]];                                                                              \
                    said |= x == x;                                                                                    \
                    most = x > most ? x : most;                                                                        \
                }                                                                                                      \
            } else {                                                                                                   \
                _Pragma("omp simd reduction(max : most) reduction(| : said)") for (int64_t i = first; i < end; i++) {  \
                    T x = values[i];                                                                                   \
                    said |= x == x;                                                                                    \
                    most = x > most ? x : most;                                                                        \
                }                                                                                                      \
            }                                                                                                          \
            out[k] = said ? most : (T)NAN;                                                                             \
        }                                                                                                              \
    }
HIGHEST(highest_f32, float)
HIGHEST(highest_f64, double)

/* out: lines x codes, the time of each code, all below width (at most 256). */
void times_by_code(const uint8_t *code, const int64_t *row, const double *ms, const int64_t *starts, int64_t lines,
                   int64_t n, int64_t width, double *out) {
    for (int64_t k = 0; k < lines; k++) {
        int64_t first = starts[k], end = line_end(starts, lines, k, n);
        double *time = out + k * width;
        for (int64_t c = 0; c < width; c++) time[c] = 0;
        if (ms) {
            for (int64_t i = first; i < end; i++) time[code[row ? row[i] : i]] += ms[i];
            continue;
        }
        /* Samples next to each other are often alike: two counts each, so that one need not wait for the other. */
        int32_t count[2][256];
        for (int64_t c = 0; c < width; c++) count[0][c] = count[1][c] = 0;
        for (int64_t i = first; i < end; i++) count[i & 1][code[row ? row[i] : i]]++;
        for (int64_t c = 0; c < width; c++) time[c] = (double)count[0][c] + (double)count[1][c];
    }
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
