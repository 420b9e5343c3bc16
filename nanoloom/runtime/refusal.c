/* How an executable says no. */
#include "refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program = "model";
static const char *called = "./model";

const char *nanoloom_program_name(void)
{
    return called;
}

void nanoloom_name_program(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!path || !*path)
        return;
    called = path;
    program = slash ? slash + 1 : path;
}

void nanoloom_refuse(const char *where, const char *format, ...)
{
    va_list values;
    fflush(stdout);
    fprintf(stderr, "%s: %s%s", program, where ? where : "", where ? ": " : "");
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}
