/* The types of nanoloom's public C interface.  This text is pasted into every generated
 * MODEL.h, so that one header and one library are all a program needs. */
#ifndef NANOLOOM_TYPES_H
#define NANOLOOM_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Element types of tensors.  A bool is one byte holding 0 or 1; f16 and bf16 are two bytes. */
enum nanoloom_element {
    NANOLOOM_BOOL = 0,
    NANOLOOM_I8 = 1,
    NANOLOOM_U8 = 2,
    NANOLOOM_I16 = 3,
    NANOLOOM_U16 = 4,
    NANOLOOM_I32 = 5,
    NANOLOOM_U32 = 6,
    NANOLOOM_I64 = 7,
    NANOLOOM_U64 = 8,
    NANOLOOM_F16 = 9,
    NANOLOOM_BF16 = 10,
    NANOLOOM_F32 = 11,
    NANOLOOM_F64 = 12
};

/* One input or output: dense, in row-major order. */
struct nanoloom_tensor {
    const char *name; /* UTF-8 */
    int32_t element;  /* an enum nanoloom_element */
    int32_t rank;
    const int64_t *shape; /* `rank` numbers, NULL when rank is 0; -1: known at run time */
};

/* What a run returns; every model has a function that puts it into words. */
enum nanoloom_status {
    NANOLOOM_OK = 0,
    NANOLOOM_NO_HANDLE = 1,     /* the handle is NULL */
    NANOLOOM_NULL_POINTER = 2,  /* an input or output pointer is NULL */
    NANOLOOM_MISALIGNED = 3,    /* a pointer is not aligned to its element size */
    NANOLOOM_BUSY = 4,          /* another thread is running this very handle */
    NANOLOOM_OUT_OF_RANGE = 5,  /* an index is out of range: the outputs mean nothing */
    NANOLOOM_NO_SIZES = 6,      /* the model's sizes have no numbers yet */
    NANOLOOM_WRONG_SIZES = 7,   /* the model does not take these sizes */
    NANOLOOM_NO_MEMORY = 8,     /* there is no memory for these sizes */
    NANOLOOM_FULL = 9,          /* more tokens than a session was compiled for */
    NANOLOOM_NOT_KEPT = 10,     /* a session does not keep so many tokens */
    NANOLOOM_OTHER_TOKENS = 11, /* a session keeps tokens of other sizes */
    NANOLOOM_NO_ROOM = 12,      /* the data want a size that the model does not take */
    NANOLOOM_CANCELLED = 13,    /* the run was cancelled: the outputs mean nothing */
    NANOLOOM_LATE = 14          /* its time was over: the outputs mean nothing */
};

/* A piece of work: do the tasks begin, begin + 1, ..., end - 1. */
typedef void (*nanoloom_task)(void *argument, int64_t begin, int64_t end);

/* A thread pool of the caller's own: cover the tasks 0 .. tasks - 1 with calls of
 * task(argument, begin, end), each task once, in any order, on any threads, and return
 * when all calls have returned. */
typedef void (*nanoloom_parallel)(void *context, nanoloom_task task, void *argument,
                                  int64_t tasks);

#endif
