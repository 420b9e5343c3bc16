/* What ends a run before it is done: a moment, or somebody's word. */
#ifndef NANOLOOM_CONTROL_H
#define NANOLOOM_CONTROL_H

#include "types.h"

struct nanoloom_control {
    int64_t deadline;                   /* nanoseconds of CLOCK_MONOTONIC; 0 for none */
    const volatile int32_t *cancelled;  /* not 0 from some moment on; NULL for nobody */
};

/* NANOLOOM_OK, or why a run is not to go on.  Once it is not, it never is again: a part
 * that one thread left out for it is known to the thread that asks behind all parts. */
int nanoloom_stopped(const struct nanoloom_control *control);

#endif
