/* What an executable prints of itself and of its runs, on stdout. */
#ifndef NANOLOOM_REPORTS_H
#define NANOLOOM_REPORTS_H

#include "identity.h"
#include "sizes.h"

void nanoloom_report_usage(const struct nanoloom_identity *identity,
                           const struct nanoloom_program *program,
                           const struct nanoloom_sizes *sizes);

/* A line for each input and output, and for each size.  sizes: NULL for none. */
void nanoloom_report_shapes(const struct nanoloom_program *program,
                            const struct nanoloom_sizes *sizes);

/* Model, target, inputs and outputs, and how much memory of which kind. */
void nanoloom_report_identity(const struct nanoloom_identity *identity,
                              const struct nanoloom_program *program,
                              const struct nanoloom_sizes *sizes);

/* The first elements of an output that is written nowhere. */
void nanoloom_report_values(const struct nanoloom_tensor *tensor, const void *array);

#endif
