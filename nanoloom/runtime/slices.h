/* What each thread did, and when: for timelines, and for the time that threads wait. */
#ifndef NANOLOOM_SLICES_H
#define NANOLOOM_SLICES_H

#include <stdatomic.h>
#include <stdint.h>

/* Tasks of one step that a thread ran one after the other. */
struct nanoloom_slice {
    int64_t thread; /* a number that no other thread has */
    int64_t step;
    int64_t begin, end; /* ticks; nanoseconds from the run's begin when it has ended */
};

/* Of one run. */
struct nanoloom_slices {
    struct nanoloom_slice *all;
    int64_t room;
    _Atomic int64_t count; /* of all, also of those that found no room */
};

static inline int64_t nanoloom_slices_kept(struct nanoloom_slices *slices)
{
    int64_t count = atomic_load(&slices->count);
    return count < slices->room ? count : slices->room;
}

#endif
