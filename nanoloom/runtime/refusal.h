/* How an executable says no: one sentence on stderr, exit status 1. */
#ifndef NANOLOOM_REFUSAL_H
#define NANOLOOM_REFUSAL_H

/* What stands in front of every sentence: the program's name without its folders. */
void nanoloom_name_program(const char *path);

/* The program as it was called: in a usage. */
const char *nanoloom_program_name(void);

/* Ends the program: `where` is a file, an input or an option, NULL for none.  What the
 * program has registered with atexit is done. */
_Noreturn void nanoloom_refuse(const char *where, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
