/* A call of one kernel by several threads, each with a part of scratch memory. */
#ifndef NANOLOOM_KERNEL_CALL_H
#define NANOLOOM_KERNEL_CALL_H

#include "program.h"

/* Whose a part of scratch memory was last, and whether it is in use. */
typedef _Atomic uintptr_t nanoloom_owner;

struct nanoloom_call {
    nanoloom_kernel kernel;
    void *const *buffers;
    char *scratch;
    int64_t scratch_bytes; /* of each part of it */
    nanoloom_owner *owners; /* one a part */
    int64_t threads; /* parts */
    int backward; /* the last task first */
    const struct nanoloom_control *control;
    struct nanoloom_slices *slices; /* NULL where nobody asks */
    int32_t step;
};

/* Tasks begin .. end - 1 of a call, in the scratch memory that it names. */
void nanoloom_call_alone(void *call, int64_t begin, int64_t end);

/* The same, in a part of scratch memory that is this thread's meanwhile. */
void nanoloom_call_tasks(void *call, int64_t begin, int64_t end);

/* The part of scratch memory that is now this thread's: the one it had before, which its
 * caches may still hold, or any that is free. */
int64_t nanoloom_scratch_take(const struct nanoloom_call *call);
void nanoloom_scratch_return(const struct nanoloom_call *call, int64_t part);

#endif
