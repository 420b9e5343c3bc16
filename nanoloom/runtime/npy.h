/* Arrays in .npy files, as numpy.save writes them. */
#ifndef NANOLOOM_NPY_H
#define NANOLOOM_NPY_H

#include <stdio.h>

#include "types.h"

/* Reads the file of an input into `memory` of nanoloom_tensor_bytes(tensor) bytes.
 * Refuses one that is missing, no .npy, cut off, of other elements or of another shape. */
void nanoloom_npy_read(const char *path, const struct nanoloom_tensor *tensor,
                       void *memory);

/* Writes an array; 0 when the system refuses. */
int nanoloom_npy_write(FILE *file, const struct nanoloom_tensor *tensor,
                       const void *memory);

#endif
