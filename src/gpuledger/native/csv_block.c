/* Lines of CSV as columns, in two passes: one that counts, one that reads.
 *
 * `gpuledger.native.csv_block` says what a column is, and leaves to pyarrow whatever is odd here: a row with another number
 * of cells, a blank line, a number this code is not sure of. So nothing here guesses, and both ways give the same digits.
 *
 * Cells are found some thousand at a time by their ends, and then read column by column: what is alike lies together, so
 * that branches are foreseen, and columns nobody asked for cost nothing but their separators.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CELLS 8192 /* found at a time: their text stays in the cache until it is read */
#define GROUP 64
#define EVERY 0x0101010101010101u
#define EXACT_WHOLE (1LL << 53)
#define MOST_POWER 27 /* 5^27 is the largest power of 5 below 2^63 */
#define MOST_PROBES 1000

enum { IN_ORDER = 0, ODD = 1 };
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
    for (int k = 0; k < GROUP; k++) found |= (uint64_t)(text[k] == separator || text[k] == '\n') << k;
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

static inline uint64_t word_at(const uint8_t *text) {
    uint64_t word;
    memcpy(&word, text, 8);
    return word;
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

/* The distinct texts of a column so far: slots of a hash table hold their codes plus one. */
typedef struct {
    uint32_t hash;
    int32_t next; /* the code that came after this one: rows of a fleet come round after round */
} known;
typedef struct {
    int32_t *slots;
    known *texts;
    int64_t mask, count, last;
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

/* The code of a text, a new one where it was not met before; -1 where that takes too long, or too much memory. */
static int64_t code_of(words *w, column *c, const uint8_t *text, int64_t start, int64_t size) {
    if (2 * w->count >= w->mask && !grow(w)) return -1;
    uint32_t hash = hash_of(text + start, size);
    int64_t at = hash & w->mask;
    for (int64_t probe = 0; w->slots[at]; at = (at + 1) & w->mask) {
        int32_t code = w->slots[at] - 1;
        if (w->texts[code].hash == hash && c->lengths[code] == size && same(text + c->starts[code], text + start, size))
            return code;
        if (++probe > MOST_PROBES) return -1;
    }
    c->starts[w->count] = (int32_t)start;
    c->lengths[w->count] = (int32_t)size;
    w->texts[w->count] = (known){hash, (int32_t)w->count};
    w->slots[at] = (int32_t)w->count + 1;
    return w->count++;
}

static int read_labels(const tile *t, column *c, words *w) {
    int32_t *out = (int32_t *)c->out + t->first;
    int64_t last = w->last;
    for (int64_t r = 0, at = c->place; r < t->rows; r++, at += t->width) {
        int64_t start = (int64_t)t->ends[at - 1] + 1, size = cell_end(t, at, c->place) - start;
        const uint8_t *text = t->text + start;
        if (w->count) {
            int32_t next = w->texts[last].next;
            if (c->lengths[last] == size && same(t->text + c->starts[last], text, size)) {
                out[r] = (int32_t)last;
                continue;
            }
            if (c->lengths[next] == size && same(t->text + c->starts[next], text, size)) {
                out[r] = (int32_t)(last = next);
                continue;
            }
        }
        int64_t code = code_of(w, c, t->text, start, size);
        if (code < 0) return ODD;
        w->texts[last].next = (int32_t)code;
        out[r] = (int32_t)(last = code);
    }
    w->last = last;
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
