/* Sizes without a bound, about which only the data decide: a run says what it needed, and
 * where that is not what it had, the program is bound to it and runs again. */
#ifndef NANOLOOM_GROWTH_H
#define NANOLOOM_GROWTH_H

#include "sizes.h"

enum {
    NANOLOOM_FIRST_ROOM = 64, /* before a run has said more */
    NANOLOOM_MOST_RUNS = 80   /* rooms grow at least by a half each time */
};

enum nanoloom_fit {
    NANOLOOM_FITS,
    NANOLOOM_GROWS, /* the program is to be bound to other sizes */
    NANOLOOM_BEYOND /* no program has so much room */
};

struct nanoloom_growth {
    int64_t *dims;       /* of the program that runs, the rooms behind all others */
    int64_t *next;       /* of the one that is wanted */
    int64_t *before;     /* of the one that a call began with */
    const void **inputs; /* the caller's; the rooms', which no kernel reads, behind them */
    int32_t refused;     /* the room that the last run wanted too much of, or none */
    int64_t wanted;
};

/* Memory for a program's sizes; 0 where there is none. */
int nanoloom_growth_prepare(struct nanoloom_growth *growth,
                            const struct nanoloom_sizes *sizes);
void nanoloom_growth_release(struct nanoloom_growth *growth);

/* The inputs of a run, of which the caller brings all but the rooms. */
const void *const *nanoloom_growth_inputs(struct nanoloom_growth *growth,
                                          const struct nanoloom_program *program,
                                          const void *const *inputs);

/* Behind a run that needed so much; `next` is filled where it grows. */
enum nanoloom_fit nanoloom_growth_after(struct nanoloom_growth *growth,
                                        const struct nanoloom_sizes *sizes,
                                        const int64_t *needed);

/* The program is bound to `next`. */
void nanoloom_growth_take(struct nanoloom_growth *growth);

/* A call begins: its sizes are kept in `before`. */
void nanoloom_growth_begin(struct nanoloom_growth *growth,
                           const struct nanoloom_sizes *sizes);

/* The program is bound to `before` again: the call found no room. */
void nanoloom_growth_back(struct nanoloom_growth *growth,
                          const struct nanoloom_sizes *sizes);

/* The rooms of `next` are those that a program begins with. */
void nanoloom_growth_first(struct nanoloom_growth *growth,
                           const struct nanoloom_sizes *sizes);

/* The node that wanted too much. */
const char *nanoloom_growth_where(const struct nanoloom_growth *growth,
                                  const struct nanoloom_program *program);

#endif
