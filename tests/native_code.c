/* A call whose signal is its result: code that is tested may read what is not there. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

typedef void Code(void *, int64_t, int64_t, void *);

int trapped_call(Code *code, void *a, int64_t b, int64_t c, void *d);

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
enum { COUNT = sizeof SIGNALS / sizeof *SIGNALS };

static _Thread_local sigjmp_buf before;

static void give_up(int number)
{
    siglongjmp(before, number);
}

/* 0, or the number of the signal that ended the call. */
int trapped_call(Code *code, void *a, int64_t b, int64_t c, void *d)
{
    struct sigaction ours, theirs[COUNT];
    memset(&ours, 0, sizeof ours);
    ours.sa_handler = give_up;
    for (int i = 0; i < COUNT; i++)
        sigaction(SIGNALS[i], &ours, &theirs[i]);
    int number = sigsetjmp(before, 1);
    if (number == 0)
        code(a, b, c, d);
    for (int i = 0; i < COUNT; i++)
        sigaction(SIGNALS[i], &theirs[i], NULL);
    return number;
}
