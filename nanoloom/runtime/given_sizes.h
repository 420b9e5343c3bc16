/* The program for the sizes that an executable's inputs have. */
#ifndef NANOLOOM_GIVEN_SIZES_H
#define NANOLOOM_GIVEN_SIZES_H

#include "sizes.h"

/* The sizes of the arrays in `files`, one an input; rooms begin as growth.h says.  Refuses
 * arrays that contradict each other, and sizes that the program does not take. */
void nanoloom_given_dims(const struct nanoloom_sizes *sizes, char **files, int64_t *dims);

/* The program itself where it has no sizes; else bound to these.  Refuses those that it
 * does not take. */
const struct nanoloom_program *nanoloom_bound_to(const struct nanoloom_program *program,
                                                 const struct nanoloom_sizes *sizes,
                                                 const int64_t *dims);

#endif
