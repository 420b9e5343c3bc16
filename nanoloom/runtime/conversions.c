/* Half-precision conversions, and rounding to whole numbers, under the names that LLVM
 * calls on CPUs without them.
 *
 * A compiler's own support library has the conversions too, but a model's library is
 * linked against the system's C library alone; musl has no roundeven.  All round to
 * nearest even, conversions in integers. */
#include "half.h"

#include <string.h>

nanoloom_half __truncsfhf2(float value);
nanoloom_half __truncdfhf2(double value);
nanoloom_bf16 __truncsfbf2(float value);
nanoloom_bf16 __truncdfbf2(double value);
double __extendhfdf2(nanoloom_half value);
float roundevenf(float value);
double roundeven(double value);

enum { HALF_MANTISSA = 10, HALF_LOWEST = -14, HALF_INFINITY = 0x7c00 };
enum { BF16_MANTISSA = 7, BF16_LOWEST = -126, BF16_INFINITY = 0x7f80 };
enum { DOUBLE_MANTISSA = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 0x7ff };

/* The nearest number of a 16-bit format; `lowest` is the exponent of its least normal. */
static uint16_t nearest(double value, int mantissa, int lowest, uint32_t infinity)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
    int exponent = (int)(bits >> DOUBLE_MANTISSA) & DOUBLE_SPECIAL;
    uint64_t fraction = bits & ((UINT64_C(1) << DOUBLE_MANTISSA) - 1);
    int dropped = DOUBLE_MANTISSA - mantissa;
    if (exponent == DOUBLE_SPECIAL) {
        uint32_t payload = (uint32_t)(fraction >> dropped);
        uint32_t quiet = fraction ? 1u << (mantissa - 1) : 0;
        return (uint16_t)(sign | infinity | quiet | payload);
    }
    int above = exponent - DOUBLE_BIAS - lowest;
    if (above < 0) /* a subnormal result keeps fewer bits */
        dropped -= above;
    if (dropped > DOUBLE_MANTISSA + 1)
        return (uint16_t)sign;
    uint64_t whole = fraction | UINT64_C(1) << DOUBLE_MANTISSA;
    uint64_t rest = whole & ((UINT64_C(1) << dropped) - 1);
    uint64_t middle = UINT64_C(1) << (dropped - 1);
    uint64_t kept = whole >> dropped;
    kept += rest > middle || (rest == middle && (kept & 1));
    /* The leading 1 of `kept` counts the exponent field up by one. */
    uint64_t result = ((uint64_t)(above > 0 ? above : 0) << mantissa) + kept;
    return (uint16_t)(sign | (result < infinity ? (uint32_t)result : infinity));
}

static nanoloom_half as_half(uint16_t bits)
{
    nanoloom_half value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static nanoloom_bf16 as_bf16(uint16_t bits)
{
    nanoloom_bf16 value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

nanoloom_half __truncsfhf2(float value)
{
    return as_half(nearest(value, HALF_MANTISSA, HALF_LOWEST, HALF_INFINITY));
}

nanoloom_half __truncdfhf2(double value)
{
    return as_half(nearest(value, HALF_MANTISSA, HALF_LOWEST, HALF_INFINITY));
}

nanoloom_bf16 __truncsfbf2(float value)
{
    return as_bf16(nearest(value, BF16_MANTISSA, BF16_LOWEST, BF16_INFINITY));
}

nanoloom_bf16 __truncdfbf2(double value)
{
    return as_bf16(nearest(value, BF16_MANTISSA, BF16_LOWEST, BF16_INFINITY));
}

float __extendhfsf2(nanoloom_half value)
{
    uint16_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> HALF_MANTISSA & 31;
    uint32_t fraction = bits & 0x3ff;
    uint32_t wide;
    if (exponent == 31) {
        uint32_t quiet = fraction ? 1u << 22 : 0;
        wide = 0x7f800000 | quiet | fraction << 13;
    } else if (exponent) {
        wide = (exponent + 127 - 15) << 23 | fraction << 13;
    } else {
        float small = (float)fraction * 0x1p-24f; /* exact */
        memcpy(&wide, &small, sizeof wide);
    }
    wide |= sign;
    float result;
    memcpy(&result, &wide, sizeof result);
    return result;
}

double __extendhfdf2(nanoloom_half value)
{
    return __extendhfsf2(value);
}

/* A number below 2^23 has no fraction left once that is added; threads round to nearest
 * even (floating.h).  Larger ones, infinities and NaN are whole already. */
float roundevenf(float value)
{
    const float bound = 8388608.0f;
    float size = __builtin_fabsf(value);
    return size < bound ? __builtin_copysignf(size + bound - bound, value) : value;
}

double roundeven(double value)
{
    const double bound = 4503599627370496.0;
    double size = __builtin_fabs(value);
    return size < bound ? __builtin_copysign(size + bound - bound, value) : value;
}
