/* Inputs and outputs in words: their types, shapes and first elements. */
#ifndef NANOLOOM_TENSORS_H
#define NANOLOOM_TENSORS_H

#include "types.h"

enum { NANOLOOM_ELEMENTS = 13, NANOLOOM_SHAPE_TEXT = 1024 };

/* An element type as reports write it, f32; and as numpy does in a .npy file, <f4. */
const char *nanoloom_element_name(int32_t element);
const char *nanoloom_element_numpy(int32_t element);

int64_t nanoloom_tensor_elements(const struct nanoloom_tensor *tensor);
int64_t nanoloom_tensor_bytes(const struct nanoloom_tensor *tensor);

/* [2, 3] into `text` of NANOLOOM_SHAPE_TEXT bytes; returns `text`. */
const char *nanoloom_shape_text(char *text, int32_t rank, const int64_t *shape);

/* Element number `at` of an array. */
double nanoloom_element_value(int32_t element, const void *array, int64_t at);

#endif
