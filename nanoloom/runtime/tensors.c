/* Inputs and outputs in words. */
#include "tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "half.h"
#include "program.h"

struct element {
    const char *name;
    const char *numpy; /* ml_dtypes' bfloat16 is a void of two bytes in a file */
};

static const struct element elements[NANOLOOM_ELEMENTS] = {
    [NANOLOOM_BOOL] = {"bool", "|b1"}, [NANOLOOM_I8] = {"i8", "|i1"},
    [NANOLOOM_U8] = {"u8", "|u1"},     [NANOLOOM_I16] = {"i16", "<i2"},
    [NANOLOOM_U16] = {"u16", "<u2"},   [NANOLOOM_I32] = {"i32", "<i4"},
    [NANOLOOM_U32] = {"u32", "<u4"},   [NANOLOOM_I64] = {"i64", "<i8"},
    [NANOLOOM_U64] = {"u64", "<u8"},   [NANOLOOM_F16] = {"f16", "<f2"},
    [NANOLOOM_BF16] = {"bf16", "<V2"}, [NANOLOOM_F32] = {"f32", "<f4"},
    [NANOLOOM_F64] = {"f64", "<f8"},
};

const char *nanoloom_element_name(int32_t element)
{
    return elements[element].name;
}

const char *nanoloom_element_numpy(int32_t element)
{
    return elements[element].numpy;
}

int64_t nanoloom_tensor_elements(const struct nanoloom_tensor *tensor)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        count *= tensor->shape[axis];
    return count;
}

int64_t nanoloom_tensor_bytes(const struct nanoloom_tensor *tensor)
{
    return nanoloom_tensor_elements(tensor) * nanoloom_element_bytes(tensor->element);
}

const char *nanoloom_shape_text(char *text, int32_t rank, const int64_t *shape)
{
    size_t used = 0;
    text[used++] = '[';
    for (int32_t axis = 0; axis < rank && used + 32 < NANOLOOM_SHAPE_TEXT; axis++)
        used += (size_t)snprintf(text + used, 32, "%s%" PRId64, axis ? ", " : "",
                                 shape[axis]);
    text[used] = ']';
    text[used + 1] = 0;
    return text;
}

/* A bf16 is the upper half of a f32. */
static double upper_half(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

double nanoloom_element_value(int32_t element, const void *array, int64_t at)
{
    switch (element) {
    case NANOLOOM_BOOL:
    case NANOLOOM_U8:
        return ((const uint8_t *)array)[at];
    case NANOLOOM_I8:
        return ((const int8_t *)array)[at];
    case NANOLOOM_I16:
        return ((const int16_t *)array)[at];
    case NANOLOOM_U16:
        return ((const uint16_t *)array)[at];
    case NANOLOOM_I32:
        return ((const int32_t *)array)[at];
    case NANOLOOM_U32:
        return ((const uint32_t *)array)[at];
    case NANOLOOM_I64:
        return (double)((const int64_t *)array)[at];
    case NANOLOOM_U64:
        return (double)((const uint64_t *)array)[at];
    case NANOLOOM_F16:
        return __extendhfsf2(((const nanoloom_half *)array)[at]);
    case NANOLOOM_BF16:
        return upper_half(((const uint16_t *)array)[at]);
    case NANOLOOM_F32:
        return ((const float *)array)[at];
    default:
        return ((const double *)array)[at];
    }
}
