/* Arrays in .npy files, as numpy.save writes them. */
#ifndef NANOLOOM_NPY_H
#define NANOLOOM_NPY_H

#include <stdio.h>

#include "types.h"

/* Reads the file of an input into `memory` of nanoloom_tensor_bytes(tensor) bytes.
 * Refuses one that is missing, no .npy, cut off, of other elements or of another shape. */
void nanoloom_npy_read(const char *path, const struct nanoloom_tensor *tensor,
                       void *memory);

/* The shape of an input's file, `tensor->rank` numbers.  Refuses as nanoloom_npy_read does,
 * but for the shape: only its rank must be right.  wanted: the input's shape in words. */
void nanoloom_npy_shape(const char *path, const struct nanoloom_tensor *tensor,
                        const char *wanted, int64_t *shape);

/* Writes an array; 0 when the system refuses. */
int nanoloom_npy_write(FILE *file, const struct nanoloom_tensor *tensor,
                       const void *memory);

#endif
