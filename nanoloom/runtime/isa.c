/* Whether this CPU has what a program's code asks for. */
#define _GNU_SOURCE
#include "isa.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#if defined(__x86_64__)

#include <cpuid.h>

enum { EAX, EBX, ECX, EDX };
enum { EXTENDED = 0x80000001 };
/* State that the system must save: of ymm, of zmm and masks, of tiles. */
enum { YMM = 0x6, ZMM = 0xe6, TILES = 0x60000, OSXSAVE = 27 };

/* Intel's manual, volume 2, CPUID. */
static const struct bit {
    const char *name;
    uint32_t leaf;
    uint32_t subleaf;
    int word;
    int bit;
    uint32_t state;
} bits[] = {
    {"ssse3", 1, 0, ECX, 9, 0},
    {"sse4.1", 1, 0, ECX, 19, 0},
    {"sse4.2", 1, 0, ECX, 20, 0},
    {"popcnt", 1, 0, ECX, 23, 0},
    {"movbe", 1, 0, ECX, 22, 0},
    {"lzcnt", EXTENDED, 0, ECX, 5, 0},
    {"bmi", 7, 0, EBX, 3, 0},
    {"bmi2", 7, 0, EBX, 8, 0},
    {"fma", 1, 0, ECX, 12, YMM},
    {"f16c", 1, 0, ECX, 29, YMM},
    {"avx", 1, 0, ECX, 28, YMM},
    {"avx2", 7, 0, EBX, 5, YMM},
    {"gfni", 7, 0, ECX, 8, 0},
    {"avxvnni", 7, 1, EAX, 4, YMM},
    {"avxifma", 7, 1, EAX, 23, YMM},
    {"avxvnniint8", 7, 1, EDX, 4, YMM},
    {"avxneconvert", 7, 1, EDX, 5, YMM},
    {"avxvnniint16", 7, 1, EDX, 10, YMM},
    {"prefetchi", 7, 1, EDX, 14, 0},
    {"avx512f", 7, 0, EBX, 16, ZMM},
    {"avx512dq", 7, 0, EBX, 17, ZMM},
    {"avx512ifma", 7, 0, EBX, 21, ZMM},
    {"avx512cd", 7, 0, EBX, 28, ZMM},
    {"avx512bw", 7, 0, EBX, 30, ZMM},
    {"avx512vl", 7, 0, EBX, 31, ZMM},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM},
    {"avx512vbmi2", 7, 0, ECX, 6, ZMM},
    {"avx512vnni", 7, 0, ECX, 11, ZMM},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM},
    {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM},
    {"avx512vp2intersect", 7, 0, EDX, 8, ZMM},
    {"avx512fp16", 7, 0, EDX, 23, ZMM},
    {"avx512bf16", 7, 1, EAX, 5, ZMM},
    {"avx10.2", 0x24, 0, EBX, 1, ZMM}, /* of the version: 2 or 3 */
    {"amx-bf16", 7, 0, EDX, 22, TILES},
    {"amx-tile", 7, 0, EDX, 24, TILES},
    {"amx-int8", 7, 0, EDX, 25, TILES},
    {"amx-fp16", 7, 1, EAX, 21, TILES},
};

static uint32_t saved_state(void)
{
    uint32_t a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> OSXSAVE & 1))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int is_set(const struct bit *bit)
{
    uint32_t words[4];
    if (!__get_cpuid_count(bit->leaf, bit->subleaf, &words[EAX], &words[EBX], &words[ECX],
                           &words[EDX]))
        return 0;
    return words[bit->word] >> bit->bit & 1 && (saved_state() & bit->state) == bit->state;
}

static int has(const struct nanoloom_feature *feature)
{
    for (size_t row = 0; row < sizeof bits / sizeof *bits; row++)
        if (strcmp(feature->name, bits[row].name) == 0)
            return is_set(&bits[row]);
    return 1;
}

int64_t nanoloom_vector_bits(void)
{
    return 0;
}

#else /* the system tells of features, in words for programs */

#include <sys/auxv.h>

static int has(const struct nanoloom_feature *feature)
{
    if (!feature->word)
        return nanoloom_tried(feature->name);
    return getauxval(feature->word) >> feature->bit & 1;
}

#if defined(__aarch64__)

#include <sys/prctl.h>

enum { VECTOR_LENGTH = 51, LENGTH_BYTES = 0xffff }; /* PR_SVE_GET_VL */

int64_t nanoloom_vector_bits(void)
{
    int found = prctl(VECTOR_LENGTH, 0, 0, 0, 0);
    return found < 0 ? 0 : 8 * (found & LENGTH_BYTES);
}

#elif defined(__riscv)

int64_t nanoloom_vector_bits(void)
{
    uint64_t bytes = 0;
    if (getauxval(AT_HWCAP) >> ('v' - 'a') & 1)
        __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
    return (int64_t)(8 * bytes);
}

#else

int64_t nanoloom_vector_bits(void)
{
    return 0;
}

#endif
#endif

/* Whether each word of one name, with + between them, is a word of another one. */
static int has_words(const char *name, const char *words)
{
    for (size_t length; *words; words += length + (words[length] == '+')) {
        length = strcspn(words, "+");
        const char *at = name;
        while (*at && (strcspn(at, "+") != length || strncasecmp(at, words, length) != 0)) {
            at += strcspn(at, "+");
            at += *at == '+';
        }
        if (!*at)
            return 0;
    }
    return 1;
}

static int is_same(const char *name, const char *other)
{
    return has_words(name, other) && has_words(other, name);
}

int nanoloom_is_named(const struct nanoloom_identity *identity, const char *name)
{
    if (is_same(identity->target, name))
        return 1;
    for (const char *const *each = identity->aliases; *each; each++)
        if (is_same(*each, name))
            return 1;
    return 0;
}

const char *nanoloom_missing_feature(const struct nanoloom_identity *identity)
{
    for (const struct nanoloom_feature *each = identity->features; each->name; each++)
        if (!has(each))
            return each->name;
    return NULL;
}

int nanoloom_cpu_lacks(const struct nanoloom_identity *identity, char *text, size_t bytes)
{
    const char *lacking = nanoloom_missing_feature(identity);
    int64_t length = nanoloom_vector_bits(), least = identity->vector_bits_least;
    if (lacking)
        return snprintf(text, bytes, "this CPU has no %s; the program is compiled for %s",
                        lacking, identity->target);
    if (least && (length < least || length > identity->vector_bits_most))
        return snprintf(text, bytes,
                        "the vector registers of this CPU have %" PRId64
                        " bits; the program is compiled for %s, %" PRId64 " to %" PRId64,
                        length, identity->target, least, identity->vector_bits_most);
    return 0;
}
