/* The number in a cell, rounded once, as pyarrow rounds it; ODD where this code is not sure of it. */
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#define EVERY 0x0101010101010101u
#define EXACT_WHOLE (1LL << 53)
#define MOST_POWER 27 /* 5^27 is the largest power of 5 below 2^63 */

enum { IN_ORDER = 0, ODD = 1 };

static inline uint64_t word_at(const uint8_t *text) {
    uint64_t word;
    memcpy(&word, text, 8);
    return word;
}

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* whole x 10^power, rounded once. */
static int scaled(uint64_t whole, int power, double *out) {
#ifdef __SIZEOF_INT128__
    unsigned __int128 n = whole;
    uint64_t fives = 1;
    int sticky = 0, twos = power, bits;
    for (int k = power < 0 ? -power : power; k; k--) fives *= 5;
    if (power < 0) {
        int up = 64 + __builtin_clzll(whole);
        n <<= up;
        sticky = n % fives != 0;
        n /= fives;
        twos -= up;
    } else n *= fives;
    bits = n >> 64 ? 128 - __builtin_clzll((uint64_t)(n >> 64)) : 64 - __builtin_clzll((uint64_t)n);
    if (bits > 53) {
        int drop = bits - 53;
        unsigned __int128 half = (unsigned __int128)1 << (drop - 1), rest = n & ((half << 1) - 1);
        n >>= drop;
        if (rest > half || (rest == half && (sticky || n & 1))) n++;
        twos += drop;
    }
    *out = ldexp((double)(uint64_t)n, twos);
    return IN_ORDER;
#else
    (void)whole, (void)power, (void)out;
    return ODD;
#endif
}

/* A number in any spelling with up to 19 digits: blanks around it, a sign, an exponent. */
static __attribute__((noinline)) int slow_number(const uint8_t *c, const uint8_t *end, double *out) {
    uint64_t whole = 0;
    int digits = 0, seen = 0, power = 0, minus = 0;
    while (c < end && (*c == ' ' || *c == '\t')) c++;
    while (c < end && (end[-1] == ' ' || end[-1] == '\t')) end--;
    if (c < end && (*c == '-' || *c == '+')) minus = *c++ == '-';
    for (int point = 0; c < end && (*c == '.' || (*c >= '0' && *c <= '9')); c++) {
        if (*c == '.') {
            if (point++) return ODD;
            continue;
        }
        seen = 1;
        digits += digits || *c != '0';
        if (digits > 19) return ODD;
        whole = whole * 10 + (uint64_t)(*c - '0');
        power -= point;
    }
    if (!seen) return ODD;
    if (c < end && (*c == 'e' || *c == 'E')) {
        int exponent = 0, count = 0, down = 0;
        if (++c < end && (*c == '-' || *c == '+')) down = *c++ == '-';
        for (; c < end && *c >= '0' && *c <= '9' && count < 4; c++, count++) exponent = exponent * 10 + (*c - '0');
        if (!count) return ODD;
        power += down ? -exponent : exponent;
    }
    if (c != end || power > MOST_POWER || power < -MOST_POWER) return ODD;
    if (!whole) *out = 0;
    else if (whole <= EXACT_WHOLE && power <= 22 && power >= -22)
        *out = power < 0 ? (double)whole / TENS[-power] : (double)whole * TENS[power];
    else if (scaled(whole, power, out) == ODD) return ODD;
    if (minus) *out = -*out;
    return IN_ORDER;
}

/* Eight bytes of 0 to 9, the first one most significant, as a number. */
static inline uint64_t eight_digits(uint64_t v) {
    const uint64_t low = 0x000000FF000000FFu;
    v = v * 10 + (v >> 8);
    return ((v & low) * 0x000F424000000064u + ((v >> 16) & low) * 0x0000271000000001u) >> 32;
}

static inline uint64_t not_digits(uint64_t v) { return ((v + 0x76 * EVERY) | v) & 0x80 * EVERY; }

/* A bit in the lowest byte that holds a point; digits are from 0. */
static inline uint64_t point_in(uint64_t v) {
    uint64_t x = v ^ ('.' ^ '0') * EVERY;
    return (x - EVERY) & ~x & 0x80 * EVERY;
}

/* The word without the byte at a place: those before it move there, and `first` comes in. */
static inline uint64_t without_byte(uint64_t v, int place, uint64_t first) {
    uint64_t below = (1ull << (8 * place)) - 1;
    return (v & ~(below << 8 | 0xFF)) | (v & below) << 8 | first;
}

/* Digits with at most one point, up to 16 bytes, that end at a byte with 16 before it. */
static inline int quick_number(const uint8_t *start, const uint8_t *end, double *out) {
    int64_t minus = *start == '-', size = end - start - minus;
    int after = 0;
    uint64_t whole, low = word_at(end - 8) ^ '0' * EVERY;
    if (size <= 0 || size > 16) return ODD;
    if (size <= 8) {
        int cut = 8 * (8 - (int)size);
        low = low >> cut << cut;
        uint64_t point = point_in(low);
        if (point) {
            int place = __builtin_ctzll(point) / 8;
            after = 7 - place;
            low = without_byte(low, place, 0);
            if (size == 1) return ODD;
        }
        if (not_digits(low)) return ODD;
        whole = eight_digits(low);
    } else {
        int cut = 8 * (16 - (int)size), place;
        uint64_t high = (word_at(end - 16) ^ '0' * EVERY) >> cut << cut, point = point_in(high);
        if (point) {
            place = __builtin_ctzll(point) / 8;
            after = 15 - place;
            high = without_byte(high, place, 0);
        } else if ((point = point_in(low))) {
            place = __builtin_ctzll(point) / 8;
            after = 7 - place;
            low = without_byte(low, place, high >> 56);
            high <<= 8;
        }
        if (not_digits(low) || not_digits(high)) return ODD;
        whole = eight_digits(high) * 100000000u + eight_digits(low);
        if (whole > EXACT_WHOLE) return ODD;
    }
    double value = (double)(int64_t)whole;
    if (after) value /= TENS[after];
    *out = minus ? -value : value;
    return IN_ORDER;
}
