/* What ends a run before it is done: a moment, or somebody's word. */
#ifndef NANOLOOM_CONTROL_H
#define NANOLOOM_CONTROL_H

#include "types.h"

struct nanoloom_control {
    int64_t deadline;                   /* nanoseconds of CLOCK_MONOTONIC; 0 for none */
    const volatile int32_t *cancelled;  /* not 0 from some moment on; NULL for nobody */
};

#ifdef NANOLOOM_SINGLE_THREAD

static inline int64_t nanoloom_now(void)
{
    return 0;
}

#else

#include <time.h>

static inline int64_t nanoloom_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif

/* NANOLOOM_OK, or why a run is not to go on.  Once it is not, it never is again: a part
 * that one thread left out for it is known to the thread that asks behind all parts. */
static inline int nanoloom_stopped(const struct nanoloom_control *control)
{
    if (!control)
        return NANOLOOM_OK;
    if (control->cancelled && __atomic_load_n(control->cancelled, __ATOMIC_ACQUIRE))
        return NANOLOOM_CANCELLED;
    if (control->deadline && nanoloom_now() >= control->deadline)
        return NANOLOOM_LATE;
    return NANOLOOM_OK;
}

#endif
