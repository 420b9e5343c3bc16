/* Looks into arrays of numpy and tensors of PyTorch: asking Python for the same takes longer
 * than a small model runs. */
#include "arrays.h"

#include <stddef.h>

enum { NO_ARRAYS = -1 };
enum { CONTIGUOUS = 0x1, ALIGNED = 0x100, WRITEABLE = 0x400 };

/* PyArrayObject behind the header of a Python object.  Extension modules have it compiled
 * in (PyArray_DATA is an inline function), so no numpy 2 can change it. */
struct array {
    void *data;
    int rank;
    const intptr_t *shape;
    const intptr_t *strides;
    const void *base;
    const void *type;
    int flags;
};

/* The first element, NULL where this is no array that fits. */
static void *data_of(const struct nanoloom_call *call, int32_t number, int flags)
{
    int32_t inputs = call->program->input_count;
    const struct nanoloom_tensor *wanted = number < inputs
                                               ? &call->program->inputs[number]
                                               : &call->program->outputs[number - inputs];
    const char *object = call->objects[number];
    const char *behind = object + call->header_bytes;
    if (((const void *const *)behind)[-1] != call->array_type)
        return NULL;
    const struct array *array = (const struct array *)behind;
    if (array->type != call->types[number] || array->rank != wanted->rank ||
        (array->flags & flags) != flags)
        return NULL;
    for (int32_t axis = 0; axis < wanted->rank; axis++)
        if (array->shape[axis] != wanted->shape[axis])
            return NULL;
    return array->data;
}

int nanoloom_run_pointers(const struct nanoloom_call *call, int64_t *nanoseconds)
{
    int status = call->enter(call->context, call->memory->control);
    if (status)
        return status;
    status = nanoloom_run(call->program, call->memory, call->parallel, call->context,
                          nanoseconds);
    call->leave(call->context);
    return status;
}

int nanoloom_run_arrays(const struct nanoloom_call *call, int64_t *nanoseconds)
{
    int32_t inputs = call->program->input_count;
    const void **read = (const void **)(uintptr_t)call->memory->inputs;
    void **written = (void **)(uintptr_t)call->memory->outputs;
    for (int32_t i = 0; i < inputs; i++)
        if (!(read[i] = data_of(call, i, CONTIGUOUS | ALIGNED)))
            return NO_ARRAYS;
    for (int32_t i = 0; i < call->program->output_count; i++)
        if (!(written[i] = data_of(call, inputs + i, CONTIGUOUS | ALIGNED | WRITEABLE)))
            return NO_ARRAYS;
    return nanoloom_run_pointers(call, nanoseconds);
}

/* The word at a path's end, 0 where a pointer on it is NULL. */
static int64_t word_at(const char *object, const struct nanoloom_path *path)
{
    for (int64_t i = 0; i + 1 < path->count && object; i++)
        object = *(const char *const *)(object + path->offsets[i]);
    return object ? *(const int64_t *)(object + path->offsets[path->count - 1]) : 0;
}

int nanoloom_same_words(const struct nanoloom_words *words, const void *const *objects)
{
    const int64_t *expected = words->expected;
    for (int64_t i = 0; i < words->object_count; i++)
        for (int64_t k = 0; k < words->path_count; k++)
            if (word_at(objects[i], &words->paths[k]) != *expected++)
                return 0;
    return 1;
}
