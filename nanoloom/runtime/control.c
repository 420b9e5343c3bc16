/* Whether a run is to go on.  With NANOLOOM_SINGLE_THREAD it asks nothing of any system. */
#define _POSIX_C_SOURCE 200809L
#include "control.h"

#include <stddef.h>

#ifdef NANOLOOM_SINGLE_THREAD

int64_t nanoloom_now(void)
{
    return 0;
}

#else

#include <time.h>

int64_t nanoloom_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif

int nanoloom_stopped(const struct nanoloom_control *control)
{
    if (!control)
        return NANOLOOM_OK;
    if (control->cancelled && __atomic_load_n(control->cancelled, __ATOMIC_ACQUIRE))
        return NANOLOOM_CANCELLED;
    if (control->deadline && nanoloom_now() >= control->deadline)
        return NANOLOOM_LATE;
    return NANOLOOM_OK;
}
