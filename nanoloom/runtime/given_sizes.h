/* The program for the sizes that an executable's inputs have. */
#ifndef NANOLOOM_GIVEN_SIZES_H
#define NANOLOOM_GIVEN_SIZES_H

#include "sizes.h"

/* The program itself where it has no sizes; else bound to those of the arrays in `files`,
 * one an input.  Refuses arrays that contradict each other, and sizes that it does not
 * take. */
const struct nanoloom_program *nanoloom_given(const struct nanoloom_program *program,
                                              const struct nanoloom_sizes *sizes,
                                              char **files);

#endif
