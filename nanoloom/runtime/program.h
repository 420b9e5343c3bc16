/* A compiled model as constant tables: what to call, on which memory, in which order. */
#ifndef NANOLOOM_PROGRAM_H
#define NANOLOOM_PROGRAM_H

#include "repeats.h"
#include "types.h"

/* Runs the tasks begin .. end - 1 of one kernel.  Tasks are independent of each other.
 * `scratch` is memory for this call alone, 64-byte aligned: what a kernel keeps for itself
 * lies there, not on the stack. */
typedef void (*nanoloom_kernel)(void *const *buffers, int64_t begin, int64_t end,
                                void *scratch);

struct nanoloom_control; /* control.h */
struct nanoloom_slices; /* slices.h */

/* Which memory a buffer lies in. */
enum nanoloom_space {
    NANOLOOM_ARENA = 0,
    NANOLOOM_PARAMETERS = 1,
    NANOLOOM_INPUT = 2,
    NANOLOOM_OUTPUT = 3,
    NANOLOOM_SIZES = 4 /* the words that sizes.c evaluates */
};

struct nanoloom_buffer {
    int32_t space; /* an enum nanoloom_space */
    int32_t index; /* which input or output; 0 otherwise */
    int64_t offset; /* in bytes */
};

/* One kernel call.  Its operands are buffers[first_buffer ... + buffer_count - 1]; what
 * repeats read stands behind those of all steps. */
struct nanoloom_step {
    nanoloom_kernel kernel;
    int64_t tasks;
    int32_t first_buffer;
    int32_t buffer_count;
    int64_t scratch_bytes; /* that the kernel wants in each thread */
    const char *name;
};

/* Indices that a node reads, which must be in low .. high.  The kernels leave a word of
 * 64 bits for them in the arena, that of the index farthest out: the index itself where
 * low is 0, else 2 i for an index i >= 0 and -2 i - 1 for i < 0. */
struct nanoloom_check {
    int64_t offset; /* in the arena, in bytes */
    int64_t low;
    int64_t high;
    const char *where; /* the node */
    const char *what;  /* the kind of index */
};

/* How much of an axis of an output counts, where only the data say: the program writes it
 * to one more output, int64 [1]. */
struct nanoloom_number {
    int32_t output;
    int32_t axis;
};

/* Room for a size that has no bound and that only the data say: a size of the program, the
 * extent of one more input, which no kernel reads.  What a run needed is one more output,
 * int64 [1]. */
struct nanoloom_room {
    int32_t exact;  /* so many are wanted; else at least so many */
    int32_t needed; /* which of these outputs */
    const char *where; /* the node */
};

struct nanoloom_program {
    const struct nanoloom_step *steps;
    const struct nanoloom_buffer *buffers;
    const struct nanoloom_check *checks;
    const struct nanoloom_repeat *repeats;
    const struct nanoloom_move *moves;
    const struct nanoloom_tensor *inputs;
    const struct nanoloom_tensor *outputs;
    const struct nanoloom_number *numbers; /* of the last number_count outputs */
    const struct nanoloom_room *rooms; /* of the last room_count inputs */
    const int64_t *words; /* of a program that is bound to sizes, else NULL */
    const void *parameters; /* the block inside the binary, NULL when it lies outside */
    int64_t arena_bytes;
    int64_t parameter_bytes;
    int64_t scratch_bytes; /* the most of all steps of several tasks, or beside others */
    int64_t alone_bytes;   /* and of the others, which one thread runs */
    int32_t step_count;
    int32_t buffer_count;
    int32_t check_count;
    int32_t repeat_count;
    int32_t input_count;
    int32_t output_count;
    int32_t kept_count;  /* of a session: the last inputs and outputs, which it has itself */
    int32_t number_count; /* of a session there are none */
    int32_t room_count;   /* nor of these, whose outputs stand in front of the numbers */
    int32_t needs_tiles; /* kernels use x86 AMX tiles, which Linux hands out on request */
};

/* The memory of one call.  `workspace` is 64-byte aligned, has
 * nanoloom_workspace_bytes(program, threads) bytes, zeros before its first run, and belongs
 * to this call alone.  Of more than `threads` threads some wait for scratch memory. */
struct nanoloom_memory {
    const void *parameters;
    const void *const *inputs;
    void *const *outputs;
    void *workspace;
    int64_t threads;
    const struct nanoloom_control *control; /* NULL for a run that goes to its end */
    struct nanoloom_slices *slices; /* where a timed run notes its threads, or NULL */
};

/* The arena, behind it the resolved pointers of all buffers, and scratch memory. */
int64_t nanoloom_workspace_bytes(const struct nanoloom_program *program,
                                 int64_t threads);

/* Makes memory that a run of another program may have left ready for this one. */
void nanoloom_workspace_prepare(const struct nanoloom_program *program, void *workspace,
                                int64_t threads);

/* What a buffer points to in a call. */
void *nanoloom_resolve(const struct nanoloom_program *program,
                       const struct nanoloom_buffer *buffer,
                       const struct nanoloom_memory *memory);

/* Runs all steps in order; NANOLOOM_OK or NANOLOOM_OUT_OF_RANGE, or what nanoloom_stopped
 * says of its control, in front of any step or in between: the workspace is as good as
 * before.  `parallel` is NULL for
 * the calling thread alone; `nanoseconds` is NULL or receives the time of every step, that
 * of all its trips. */
int nanoloom_run(const struct nanoloom_program *program,
                 const struct nanoloom_memory *memory, nanoloom_parallel parallel,
                 void *context, int64_t *nanoseconds);

/* How many repeats run beside each other from this one on, which is none of those beside
 * one in front of it; at least 1. */
int32_t nanoloom_beside(const struct nanoloom_program *program, int32_t repeat);

/* The first check that failed in the last run on this workspace, and its index; NULL
 * where none did. */
const struct nanoloom_check *nanoloom_failed(const struct nanoloom_program *program,
                                             const void *workspace, int64_t *index);

/* Of an enum nanoloom_element. */
int64_t nanoloom_element_bytes(int32_t element);

/* How many inputs are the caller's: neither a session's own nor rooms. */
int32_t nanoloom_given_count(const struct nanoloom_program *program);

/* How many outputs are the caller's: neither a session's own nor numbers. */
int32_t nanoloom_made(const struct nanoloom_program *program);

/* NANOLOOM_OK, or what is wrong with the user's pointers; of what a session has itself, and
 * of numbers and rooms, there are none. */
int nanoloom_check_inputs(const struct nanoloom_program *program,
                          const void *const *inputs);
int nanoloom_check_pointers(const struct nanoloom_program *program,
                            const void *const *inputs, void *const *outputs);

#endif
