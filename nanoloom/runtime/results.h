/* The files of the outputs: all of them whole, or none. */
#ifndef NANOLOOM_RESULTS_H
#define NANOLOOM_RESULTS_H

#include "types.h"

/* Where the outputs go.  paths: one file an output, in their order, NULL for one that is
 * not written. */
struct nanoloom_results {
    char **paths;
    int32_t count;
};

/* From the words behind -o: a file an output, or one folder for all, whose files have the
 * outputs' names.  Refuses too many of them, places that cannot be written to, and the
 * file of the trace, unless that is NULL. */
struct nanoloom_results nanoloom_results_at(char **words, int32_t word_count,
                                            const struct nanoloom_tensor *outputs,
                                            int32_t output_count, const char *trace);

/* Writes them under other names first; refuses, with no file changed, what fails. */
void nanoloom_results_write(const struct nanoloom_results *results,
                            const struct nanoloom_tensor *outputs, void *const *arrays);

#endif
