/* Columns of numbers kept in fewer bytes, and back.
 *
 * `gpuledger.native.packing` says what a packing is, in numpy. A whole number is kept as (number - low) >> shift, which
 * loses nothing where all numbers are alike in their lowest `shift` bits; any other number as number x divide, where
 * dividing gives the same bits again.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "wide.h"

/* out: the least, the greatest, and the bits in which any number differs from the first. */
WIDE void range_i64(const int64_t *values, int64_t n, int64_t *out) {
    int64_t low = values[0], high = values[0], bits = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t x = values[i];
        low = x < low ? x : low;
        high = x > high ? x : high;
        bits |= x ^ values[0];
    }
    out[0] = low, out[1] = high, out[2] = bits;
}

#define PACK_WHOLE(NAME, K)                                                                                            \
    WIDE void NAME(const int64_t *values, int64_t n, int64_t low, int64_t shift, K *restrict out) {                    \
        for (int64_t i = 0; i < n; i++) out[i] = (K)(((uint64_t)values[i] - (uint64_t)low) >> shift);                  \
    }
PACK_WHOLE(pack_i64_1, uint8_t)
PACK_WHOLE(pack_i64_2, uint16_t)
PACK_WHOLE(pack_i64_4, uint32_t)

/* Returns how many numbers cannot be kept so: what is kept of these is of no use. */
#define PACK(NAME, T, BITS, K, MOST)                                                                                   \
    WIDE int64_t NAME(const T *values, int64_t n, double divide, K *restrict out) {                                    \
        int64_t odd = 0;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            double x = (double)values[i] * divide;                                                                     \
            int fine = (x >= 0) & (x <= MOST);                                                                         \
            int32_t kept = (int32_t)rint(fine ? x : 0);                                                                \
            T back = (T)((double)kept / divide);                                                                       \
            BITS one, other;                                                                                           \
            memcpy(&one, &back, sizeof one);                                                                           \
            memcpy(&other, &values[i], sizeof other);                                                                  \
            odd += !(fine & (one == other) & !signbit(values[i])); /* what is kept of -0 is 0 */                       \
            out[i] = (K)kept;                                                                                          \
        }                                                                                                              \
        return odd;                                                                                                    \
    }
PACK(pack_f32_1, float, uint32_t, uint8_t, 255)
PACK(pack_f32_2, float, uint32_t, uint16_t, 65535)
PACK(pack_f64_1, double, uint64_t, uint8_t, 255)
PACK(pack_f64_2, double, uint64_t, uint16_t, 65535)

/* out: blocks of rows, one after the other; block b has the rows from start[b] on, rows[b] of them, of the array at
 * base[piece[b]], which keeps them in width[piece[b]] bytes each: as they are where out has as many. */
#define UNPACK_WHOLE(K)                                                                                                \
    for (int64_t i = 0; i < rows[b]; i++)                                                                              \
        out[i] = (int64_t)(((uint64_t)((const K *)from)[i] << shift[p]) + (uint64_t)low[p]);
WIDE void unpack_i64(const uint8_t *const *base, const int64_t *width, const int64_t *low, const int64_t *shift,
                     const int64_t *piece, const int64_t *start, const int64_t *rows, int64_t blocks,
                     int64_t *restrict out) {
    for (int64_t b = 0; b < blocks; out += rows[b++]) {
        const int64_t p = piece[b];
        const uint8_t *from = base[p] + start[b] * width[p];
        if (width[p] == 1) UNPACK_WHOLE(uint8_t)
        else if (width[p] == 2) UNPACK_WHOLE(uint16_t)
        else if (width[p] == 4) UNPACK_WHOLE(uint32_t)
        else memcpy(out, from, (size_t)rows[b] * sizeof *out);
    }
}

#define DIVIDED(T, K)                                                                                                  \
    if (divide[p] == 1)                                                                                                \
        for (int64_t i = 0; i < rows[b]; i++) out[i] = (T)((const K *)from)[i];                                        \
    else                                                                                                               \
        for (int64_t i = 0; i < rows[b]; i++) out[i] = (T)((double)((const K *)from)[i] / divide[p]);
#define UNPACK(NAME, T)                                                                                                \
    WIDE void NAME(const uint8_t *const *base, const int64_t *width, const double *divide, const int64_t *piece,       \
                   const int64_t *start, const int64_t *rows, int64_t blocks, T *restrict out) {                       \
        for (int64_t b = 0; b < blocks; out += rows[b++]) {                                                            \
            const int64_t p = piece[b];                                                                                \
            const uint8_t *from = base[p] + start[b] * width[p];                                                       \
            if (width[p] == 1) { DIVIDED(T, uint8_t) }                                                                 \
            else if (width[p] == 2) { DIVIDED(T, uint16_t) }                                                           \
            else memcpy(out, from, (size_t)rows[b] * sizeof *out);                                                     \
        }                                                                                                              \
    }
UNPACK(unpack_f32, float)
UNPACK(unpack_f64, double)
