/* One floating-point environment for every thread: round to nearest, denormals kept.
 *
 * A caller may have switched to flush-to-zero or another rounding (PyTorch and programs
 * linked with -ffast-math do).  Its own thread would then compute other bits than the
 * pool's threads, and a result would depend on who took which task. */
#ifndef NANOLOOM_FLOATING_H
#define NANOLOOM_FLOATING_H

#include <stdint.h>

#if defined(__x86_64__)

static inline uint64_t nanoloom_floating_read(void)
{
    uint32_t control;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    return control;
}

static inline void nanoloom_floating_write(uint64_t value)
{
    uint32_t control = (uint32_t)value;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
}

/* Exceptions masked, nearest; the low six bits are sticky flags and do not matter. */
#define NANOLOOM_FLOATING_STATE 0x1f80u
#define NANOLOOM_FLOATING_MASK 0xffc0u

#elif defined(__aarch64__)

static inline uint64_t nanoloom_floating_read(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}

static inline void nanoloom_floating_write(uint64_t value)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(value));
}

#define NANOLOOM_FLOATING_STATE 0u
#define NANOLOOM_FLOATING_MASK UINT64_MAX

#elif defined(__riscv)

static inline uint64_t nanoloom_floating_read(void)
{
    uint64_t control;
    __asm__ volatile("frrm %0" : "=r"(control));
    return control;
}

static inline void nanoloom_floating_write(uint64_t value)
{
    __asm__ volatile("fsrm %0" : : "r"(value));
}

#define NANOLOOM_FLOATING_STATE 0u
#define NANOLOOM_FLOATING_MASK 7u

#elif defined(__powerpc64__)

static inline uint64_t nanoloom_floating_read(void)
{
    union {
        double number;
        uint64_t bits;
    } control;
    __asm__ volatile("mffs %0" : "=d"(control.number));
    return control.bits;
}

static inline void nanoloom_floating_write(uint64_t value)
{
    union {
        uint64_t bits;
        double number;
    } control = {value};
    __asm__ volatile("mtfsf 255, %0" : : "d"(control.number));
}

/* Rounding, what is no IEEE arithmetic, and exceptions that trap. */
#define NANOLOOM_FLOATING_STATE 0u
#define NANOLOOM_FLOATING_MASK 0xffu

#else
#error "nanoloom's runtime does not know how this CPU rounds"
#endif

/* Sets the common environment; returns the caller's, for nanoloom_floating_leave. */
static inline uint64_t nanoloom_floating_enter(void)
{
    uint64_t before = nanoloom_floating_read();
    if ((before & NANOLOOM_FLOATING_MASK) != NANOLOOM_FLOATING_STATE)
        nanoloom_floating_write(NANOLOOM_FLOATING_STATE);
    return before;
}

static inline void nanoloom_floating_leave(uint64_t before)
{
    if ((before & NANOLOOM_FLOATING_MASK) != NANOLOOM_FLOATING_STATE)
        nanoloom_floating_write(before);
}

#endif
