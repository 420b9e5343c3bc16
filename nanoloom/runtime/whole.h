/* Whether the file that runs is all there. */
#ifndef NANOLOOM_WHOLE_H
#define NANOLOOM_WHOLE_H

#include <stdint.h>

/* The bytes of the file that runs, where its headers speak of more of them, *wanted: it
 * was cut off, and reading the weights would end the process.  0 where it is whole, or
 * where the system does not show it. */
int64_t nanoloom_file_ends(int64_t *wanted);

#endif
