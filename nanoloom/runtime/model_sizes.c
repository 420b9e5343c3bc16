/* The public functions of a model whose sizes are known at run time. */
#include <inttypes.h>
#include <stdio.h>

#include "arena.h"
#include "handle.h"

NANOLOOM_PUBLIC int PUBLIC(resize)(HANDLE *handle, const int64_t *sizes);
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(input_of)(const HANDLE *handle,
                                                               int32_t index);
const struct nanoloom_tensor *PUBLIC(input)(int32_t index);
#ifndef NANOLOOM_COUNTED
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle,
                                                                int32_t index);
const struct nanoloom_tensor *PUBLIC(output)(int32_t index);
#endif

/* Room for the program of any sizes, and working memory for all that bounds allow. */
int nanoloom_handle_prepare(HANDLE *handle)
{
    handle->wrong_dim = NANOLOOM_NONE;
    handle->room_bytes = nanoloom_bound_bytes(nanoloom_open_sizes);
    handle->rooms = nanoloom_arena_create(2 * handle->room_bytes);
    if (!handle->rooms)
        return 0;
#ifdef NANOLOOM_COUNTED
    if (!nanoloom_counted_prepare(&handle->counted, &nanoloom_program))
        return 0;
#endif
#ifdef NANOLOOM_SESSION
    if (!nanoloom_session_prepare(handle))
        return 0;
#endif
    int64_t bytes =
        nanoloom_most_workspace(nanoloom_open_sizes, handle->threads, handle->rooms);
    handle->workspace_bytes = bytes;
    handle->workspace = bytes ? nanoloom_arena_create(bytes) : NULL;
#ifdef NANOLOOM_GROWN
    if (!nanoloom_growth_prepare(&handle->growth, nanoloom_open_sizes))
        return 0;
    if (nanoloom_open_sizes->dim_count == nanoloom_open_sizes->grown_count)
        return nanoloom_growth_resize(handle, NULL) == NANOLOOM_OK;
#endif
    return !bytes || handle->workspace;
}

/* The program's working memory: what there is, or more. */
static int reserve(HANDLE *handle, const struct nanoloom_program *program)
{
    int64_t bytes = nanoloom_workspace_bytes(program, handle->threads);
    if (bytes > handle->workspace_bytes) {
        void *larger = nanoloom_arena_create(bytes);
        if (!larger)
            return NANOLOOM_NO_MEMORY;
        nanoloom_arena_destroy(handle->workspace, handle->workspace_bytes);
        handle->workspace = larger;
        handle->workspace_bytes = bytes;
    }
    nanoloom_workspace_prepare(program, handle->workspace, handle->threads);
    handle->program = program;
#ifdef NANOLOOM_COUNTED
    handle->counted.known = 0;
#endif
    return NANOLOOM_OK;
}

int nanoloom_handle_bind(HANDLE *handle, const int64_t *dims)
{
    int first = (const char *)handle->program == handle->rooms;
    const struct nanoloom_program *program = nanoloom_bind(
        nanoloom_open_sizes, dims, handle->rooms + (first ? handle->room_bytes : 0));
    if (!program) {
        handle->wrong_dim = nanoloom_outside(nanoloom_open_sizes, dims);
        if (handle->wrong_dim != NANOLOOM_NONE)
            handle->wrong = dims[handle->wrong_dim];
        return NANOLOOM_WRONG_SIZES;
    }
#ifdef NANOLOOM_SESSION
    int refused = nanoloom_session_takes(handle, program);
    if (refused)
        return refused;
#endif
    return reserve(handle, program);
}

int nanoloom_handle_explain_sizes(const HANDLE *handle, char *text, size_t bytes)
{
    int32_t dim = handle->wrong_dim;
    if (dim == NANOLOOM_NONE)
        return snprintf(text, bytes, "the model does not take these sizes together");
    const struct nanoloom_sizes *sizes = nanoloom_open_sizes;
    int many = handle->wrong > sizes->most[dim];
    int64_t least = sizes->least[dim];
    if (least == 1 && sizes->or_none[dim])
        least = 0;
    return snprintf(text, bytes, "%s is %" PRId64 ", and %s %" PRId64 " is wanted",
                    sizes->dims[dim], handle->wrong, many ? "at most" : "at least",
                    many ? sizes->most[dim] : least);
}

int PUBLIC(resize)(HANDLE *handle, const int64_t *sizes)
{
    if (!handle)
        return NANOLOOM_NO_HANDLE;
    if (!sizes)
        return NANOLOOM_NULL_POINTER;
    if (atomic_exchange(&handle->busy, 1))
        return NANOLOOM_BUSY;
#ifdef NANOLOOM_SESSION
    int status = nanoloom_session_resize(handle, sizes);
#elif defined(NANOLOOM_GROWN)
    int status = nanoloom_growth_resize(handle, sizes);
#else
    int status = nanoloom_handle_bind(handle, sizes);
#endif
    atomic_store(&handle->busy, 0);
    return status;
}

const struct nanoloom_tensor *PUBLIC(input_of)(const HANDLE *handle, int32_t index)
{
    int known = handle && handle->program && PUBLIC(input)(index);
    return known ? &handle->program->inputs[index] : NULL;
}

#ifndef NANOLOOM_COUNTED
const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle, int32_t index)
{
    int known = handle && handle->program && PUBLIC(output)(index);
    return known ? &handle->program->outputs[index] : NULL;
}
#endif
