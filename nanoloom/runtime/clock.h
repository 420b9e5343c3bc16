/* The time: nanoseconds for limits, and the processor's own ticks for what is short. */
#ifndef NANOLOOM_CLOCK_H
#define NANOLOOM_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC; 0 for programs without an operating system. */
int64_t nanoloom_now(void);

/* Ticks, which take less than half of the time to read; nanoseconds where the processor
 * has none that go evenly.  nanoloom_prepare_ticks() has been called before. */
int64_t nanoloom_ticks(void);

/* Finds out how long a tick is, at its first call, in a fifth of a millisecond. */
void nanoloom_prepare_ticks(void);

/* The nanoseconds that so many ticks are. */
int64_t nanoloom_nanoseconds(int64_t ticks);

#endif
