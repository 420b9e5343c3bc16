/* The time: nanoseconds for limits, and the processor's own ticks for what is short.
 *
 * x86's counter goes evenly, on all CPUs alike, where it says that it is invariant.  How
 * long a tick is nobody says: it is measured once. */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"

#ifdef NANOLOOM_SINGLE_THREAD

int64_t nanoloom_now(void)
{
    return 0;
}

int64_t nanoloom_ticks(void)
{
    return 0;
}

void nanoloom_prepare_ticks(void)
{
}

int64_t nanoloom_nanoseconds(int64_t ticks)
{
    return ticks;
}

#else

#include <time.h>

int64_t nanoloom_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdatomic.h>

enum {
    INVARIANT = 1 << 8, /* of EDX of cpuid's leaf POWER */
    MEASURED = 200000, /* nanoseconds; so much longer than the clock's own error */
    CLOSE = 500,       /* nanoseconds between two looks at the clock: nobody came between */
    MOST_LOOKS = 1000
};

#define POWER 0x80000007u
#define ONE ((uint64_t)1 << 32)

/* Nanoseconds of a tick, times ONE, which is that of the clock itself; 0: not known yet. */
static _Atomic uint64_t tick;

/* A tick, and when it was. */
static int64_t look(int64_t *ticks)
{
    int64_t before = 0, after = 0;
    for (int i = 0; i < MOST_LOOKS; i++) {
        before = nanoloom_now();
        *ticks = (int64_t)__builtin_ia32_rdtsc();
        after = nanoloom_now();
        if (after - before < CLOSE)
            break;
    }
    return before + (after - before) / 2;
}

void nanoloom_prepare_ticks(void)
{
    if (atomic_load_explicit(&tick, memory_order_relaxed))
        return;
    unsigned a, b, c, d;
    uint64_t found = ONE;
    if (__get_cpuid(POWER, &a, &b, &c, &d) && (d & INVARIANT)) {
        int64_t first, last, begin = look(&first), end;
        while ((end = look(&last)) - begin < MEASURED)
            ;
        uint64_t whole = (uint64_t)(end - begin);
        if (last > first && whole < ONE)
            found = whole * ONE / (uint64_t)(last - first);
    }
    uint64_t none = 0; /* whoever is first decides, in the middle of others' runs too */
    atomic_compare_exchange_strong(&tick, &none, found);
}

int64_t nanoloom_ticks(void)
{
    if (atomic_load_explicit(&tick, memory_order_relaxed) == ONE)
        return nanoloom_now();
    return (int64_t)__builtin_ia32_rdtsc();
}

int64_t nanoloom_nanoseconds(int64_t ticks)
{
    uint64_t each = atomic_load_explicit(&tick, memory_order_relaxed);
    return (int64_t)((__int128)ticks * (__int128)each >> 32);
}

#else

int64_t nanoloom_ticks(void)
{
    return nanoloom_now();
}

void nanoloom_prepare_ticks(void)
{
}

int64_t nanoloom_nanoseconds(int64_t ticks)
{
    return ticks;
}

#endif
#endif
