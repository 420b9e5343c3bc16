/* The times of an executable's runs and of their steps: reports, and a timeline. */
#ifndef NANOLOOM_TIMES_H
#define NANOLOOM_TIMES_H

#include "program.h"
#include "slices.h"

enum { NANOLOOM_WATCHED = 16 }; /* runs whose threads are noted */

/* Of the last runs, as many as there is room for. */
struct nanoloom_times {
    const struct nanoloom_program *program;
    int64_t *steps;  /* nanoseconds, a row a run; NULL where steps are not timed */
    int64_t *begins; /* of the runs, nanoseconds from the first one */
    int64_t *runs;   /* nanoseconds of all runs */
    int64_t threads; /* that run */
    struct nanoloom_slices watched[NANOLOOM_WATCHED]; /* of the last runs of many threads */
    int count;       /* of runs that are done */
    int rows;        /* of steps and begins */
};

/* Room for so many runs; refuses where there is none.  profile: whether steps are timed. */
void nanoloom_times_prepare(struct nanoloom_times *times,
                            const struct nanoloom_program *program, int runs, int profile,
                            int64_t threads);

/* Where the next run leaves the times of its steps; NULL where they are not timed. */
int64_t *nanoloom_times_row(const struct nanoloom_times *times);

/* Where the next run notes what its threads do; NULL where that is not asked. */
struct nanoloom_slices *nanoloom_times_slices(struct nanoloom_times *times);

/* Notes the next run.  begin: from the first one. */
void nanoloom_times_add(struct nanoloom_times *times, int64_t begin, int64_t nanoseconds);

/* Prints the median and the least time of the runs, which are sorted for it. */
void nanoloom_times_report(struct nanoloom_times *times);

/* Prints the median time of each layer; its spread: from the tenth to the ninetieth
 * percentile, as a part of the median; and of many threads' time the part that they wait. */
void nanoloom_times_report_layers(struct nanoloom_times *times);

/* Writes a timeline as JSON of trace events, or refuses.  model: its name. */
void nanoloom_times_trace(struct nanoloom_times *times, const char *path,
                          const char *model);

#endif
