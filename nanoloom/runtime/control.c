/* Whether a run is to go on. */
#include "control.h"

#include <stddef.h>

#include "clock.h"

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
