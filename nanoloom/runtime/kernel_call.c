/* Calls a kernel in one of several threads; whose scratch memory is whose. */
#define _POSIX_C_SOURCE 200809L
#include "kernel_call.h"

#ifndef NANOLOOM_SINGLE_THREAD
#include <errno.h>
#include <sched.h>
#endif

#include "clock.h"
#include "control.h"
#include "floating.h"
#include "slices.h"

enum { IN_USE = 1 };

/* An address that no other thread has. */
static uintptr_t own_number(void)
{
#ifdef NANOLOOM_SINGLE_THREAD
    return 0;
#else
    return (uintptr_t)&errno;
#endif
}

static void note(const struct nanoloom_call *call, int64_t begin)
{
    struct nanoloom_slices *slices = call->slices;
    int64_t place = atomic_fetch_add(&slices->count, 1);
    if (place < slices->room)
        slices->all[place] = (struct nanoloom_slice){(int64_t)own_number(), call->step, begin,
                                                     nanoloom_ticks()};
}

void nanoloom_call_alone(void *argument, int64_t begin, int64_t end)
{
    const struct nanoloom_call *call = argument;
    if (nanoloom_stopped(call->control))
        return;
    int64_t started = call->slices ? nanoloom_ticks() : 0;
    uint64_t before = nanoloom_floating_enter();
    for (; call->backward && end - begin > 1; end--)
        call->kernel(call->buffers, end - 1, end, call->scratch);
    call->kernel(call->buffers, begin, end, call->scratch);
    nanoloom_floating_leave(before);
    if (call->slices)
        note(call, started);
}

#ifdef NANOLOOM_SINGLE_THREAD

int64_t nanoloom_scratch_take(const struct nanoloom_call *call)
{
    (void)call;
    return 0;
}

void nanoloom_scratch_return(const struct nanoloom_call *call, int64_t part)
{
    (void)call;
    (void)part;
}

#else

int64_t nanoloom_scratch_take(const struct nanoloom_call *call)
{
    uintptr_t self = own_number();
    for (;; sched_yield())
        for (int any = 0; any < 2; any++)
            for (int64_t part = 0; part < call->threads; part++) {
                uintptr_t seen = atomic_load(&call->owners[part]);
                if ((any ? !(seen & IN_USE) : seen == self) &&
                    atomic_compare_exchange_strong(&call->owners[part], &seen,
                                                   self | IN_USE))
                    return part;
            }
}

void nanoloom_scratch_return(const struct nanoloom_call *call, int64_t part)
{
    atomic_store(&call->owners[part], own_number());
}

#endif

void nanoloom_call_tasks(void *argument, int64_t begin, int64_t end)
{
    struct nanoloom_call own = *(const struct nanoloom_call *)argument;
    int64_t part = nanoloom_scratch_take(&own);
    own.scratch += part * own.scratch_bytes;
    nanoloom_call_alone(&own, begin, end);
    nanoloom_scratch_return(&own, part);
}
