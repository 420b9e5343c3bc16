/* Arrays of numpy as a program's inputs and outputs, and whether tensors of PyTorch have
 * changed, for Python's calls. */
#ifndef NANOLOOM_ARRAYS_H
#define NANOLOOM_ARRAYS_H

#include "program.h"

/* A call of a program, and what the arrays in it must be. */
struct nanoloom_call {
    const struct nanoloom_program *program;
    const struct nanoloom_memory *memory; /* its inputs and outputs are written here */
    nanoloom_parallel parallel;
    void *context;
    int (*enter)(void *, const struct nanoloom_control *);
    void (*leave)(void *); /* both of that context */
    void *const *objects;     /* the arrays: the inputs, then the outputs */
    const void *const *types; /* the dtype objects of their elements */
    const void *array_type;   /* numpy.ndarray itself: arrays of its own type alone */
    int64_t header_bytes;     /* that an object begins with, its type in the last word */
};

/* Runs the program on the pointers in its memory, between enter and leave. */
int nanoloom_run_pointers(const struct nanoloom_call *call, int64_t *nanoseconds);

/* Runs the program and returns its status.  Returns -1 and does nothing where an array is not
 * plainly what the program wants: of the very dtype, the shape, dense, aligned and, as
 * an output, writable. */
int nanoloom_run_arrays(const struct nanoloom_call *call, int64_t *nanoseconds);

/* From an object to a word: offsets of the pointers on the way, and of the word itself. */
struct nanoloom_path {
    int64_t count; /* of offsets, 1 at least */
    int64_t offsets[3];
};

/* Words that objects had: of each object those at all paths' ends. */
struct nanoloom_words {
    const struct nanoloom_path *paths;
    const int64_t *expected;
    int64_t path_count, object_count;
};

/* Whether objects have these words. */
int nanoloom_same_words(const struct nanoloom_words *words, const void *const *objects);

#endif
