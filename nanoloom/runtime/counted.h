/* Outputs whose shapes depend on data: the numbers that a program gives of them, and of
 * the room that it needed. */
#ifndef NANOLOOM_COUNTED_H
#define NANOLOOM_COUNTED_H

#include "program.h"

struct nanoloom_counted {
    void **outputs;   /* the caller's, and behind them those of the numbers */
    int64_t *numbers; /* that the last run gave; what rooms needed stands in front */
    struct nanoloom_tensor *tensors; /* the caller's, with the shapes of the last run */
    int64_t *shapes;
    int known; /* whether there was one */
};

/* Memory for a program's numbers and shapes; 0 where there is none. */
int nanoloom_counted_prepare(struct nanoloom_counted *counted,
                             const struct nanoloom_program *program);
void nanoloom_counted_release(struct nanoloom_counted *counted);

/* The outputs of a run, of which the caller brings all but the numbers. */
void *const *nanoloom_counted_begin(struct nanoloom_counted *counted,
                                    const struct nanoloom_program *program,
                                    void *const *outputs);

/* Behind a run that went well: what counts of each output is moved to its front, where it
 * is dense, and its shape is known. */
void nanoloom_counted_end(struct nanoloom_counted *counted,
                          const struct nanoloom_program *program);

#endif
