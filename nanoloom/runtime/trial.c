/* Extensions of which the system says nothing: whether their instructions run.
 *
 * Linux on RISC-V names extensions of one letter to every program; for others there is
 * a call (riscv_hwprobe), which kernels before 6.4 and emulators do not have, and whose
 * answer is no where a kernel knows the CPU but not yet the name. */
#define _GNU_SOURCE
#include "trial.h"

#if defined(__riscv)

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#define WITH(extensions, words)                                                          \
    __asm__ volatile(".option push\n.option arch, " extensions "\n" words                \
                     "\n.option pop" ::: "t0", "v8", "v10", "vl", "vtype")
#define HALVES "vsetivli zero, 1, e16, m1, ta, ma\n"

static void zba(void) { WITH("+zba", "sh1add t0, t0, t0"); }
static void zbb(void) { WITH("+zbb", "max t0, t0, t0"); }
static void zbs(void) { WITH("+zbs", "bexti t0, t0, 1"); }
static void zvfh(void) { WITH("+v, +zvfh", HALVES "vfadd.vv v8, v8, v8"); }
static void zvfhmin(void) { WITH("+v, +zvfhmin", HALVES "vfwcvt.f.f.v v10, v8"); }
static void zvfbfmin(void) { WITH("+v, +zvfbfmin", HALVES "vfwcvtbf16.f.f.v v10, v8"); }

static void zvfbfwma(void)
{
    WITH("+v, +zvfbfwma", HALVES "vfwmaccbf16.vv v10, v8, v8");
}

static const struct trial {
    const char *name;
    void (*instruction)(void);
} trials[] = {
    {"zba", zba},   {"zbb", zbb},         {"zbs", zbs},
    {"zvfh", zvfh}, {"zvfhmin", zvfhmin}, {"zvfbfmin", zvfbfmin},
    {"zvfbfwma", zvfbfwma},
};

static sigjmp_buf before;

static void is_illegal(int number)
{
    (void)number;
    siglongjmp(before, 1);
}

static int runs(void (*instruction)(void))
{
    struct sigaction caught = {.sa_handler = is_illegal}, usual;
    if (sigaction(SIGILL, &caught, &usual) != 0)
        return 1;
    int legal = sigsetjmp(before, 1) == 0;
    if (legal)
        instruction();
    sigaction(SIGILL, &usual, NULL);
    return legal;
}

int nanoloom_tried(const char *name)
{
    for (size_t row = 0; row < sizeof trials / sizeof *trials; row++)
        if (strcmp(name, trials[row].name) == 0)
            return runs(trials[row].instruction);
    return 1;
}

#else

int nanoloom_tried(const char *name)
{
    (void)name;
    return 1;
}

#endif
