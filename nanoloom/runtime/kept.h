/* What a session keeps between its runs: for each token a row of its keys, a row of its
 * values, and so on, in memory that grows in place. */
#ifndef NANOLOOM_KEPT_H
#define NANOLOOM_KEPT_H

#include "sizes.h"

/* The rows of one of a program's last kept_count outputs. */
struct nanoloom_rows {
    char *memory; /* of an arena; NULL at first */
    int64_t bytes;
};

struct nanoloom_kept {
    struct nanoloom_rows *rows;
    int64_t length;      /* tokens that are kept */
    int64_t *dims;       /* of a run: those that were chosen, then lengths */
    int64_t *next;       /* those that are about to be chosen */
    const void **inputs; /* of a run, those that are kept behind the caller's */
    void **outputs;
};

/* 0 where there is no memory; what was made goes with nanoloom_kept_destroy. */
int nanoloom_kept_create(struct nanoloom_kept *kept, const struct nanoloom_sizes *sizes);
void nanoloom_kept_destroy(struct nanoloom_kept *kept, const struct nanoloom_sizes *sizes);

/* The most tokens that may be kept; INT64_MAX without a bound. */
int64_t nanoloom_kept_most(const struct nanoloom_sizes *sizes);

/* The tokens that are kept behind a run of a bound program. */
int64_t nanoloom_kept_total(const struct nanoloom_program *program);

/* Whether the rows of two bound programs are of the same shape. */
int nanoloom_kept_alike(const struct nanoloom_program *one,
                        const struct nanoloom_program *other);

/* Makes room for the rows of so many tokens: NANOLOOM_OK, or NANOLOOM_NO_MEMORY, which
 * leaves what is kept as it was.  Room is doubled, or made at once for all of a bound. */
int nanoloom_kept_reserve(struct nanoloom_kept *kept, const struct nanoloom_sizes *sizes,
                          const struct nanoloom_program *program, int64_t tokens);

/* Fills kept->inputs and kept->outputs. */
void nanoloom_kept_point(struct nanoloom_kept *kept, const struct nanoloom_program *program,
                         const void *const *inputs, void *const *outputs);

#endif
