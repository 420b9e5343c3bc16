/* A program of one row on many: its steps run for some rows together. */
#ifndef NANOLOOM_ROWS_H
#define NANOLOOM_ROWS_H

#include "arrays.h"

/* How many rows run together: those whose memory a core's own cache holds beside weights. */
int64_t nanoloom_rows_together(const struct nanoloom_program *program);

/* The workspace of so many, zeros before their first run. */
int64_t nanoloom_rows_bytes(const struct nanoloom_program *program, int64_t together);

/* Runs the program for each of `rows` rows, `together` at a time, in the calling thread:
 * between enter and leave, as nanoloom_run_pointers does.  Row i of an input or output is i
 * times its bytes behind the pointer in the call's memory, whose workspace is for these.
 *
 * A row is computed by the very code, on the very operands, of a run of its own.  What
 * changes is when: each task of a step is done for all rows before the next one, so that
 * they read its weights once from memory, and then from a cache. */
int nanoloom_run_rows(const struct nanoloom_call *call, int64_t rows, int64_t together);

#endif
