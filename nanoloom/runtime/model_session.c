/* The public functions of a model that keeps tokens from one run to the next. */
#include "handle.h"

NANOLOOM_PUBLIC int64_t PUBLIC(length)(const HANDLE *handle);
NANOLOOM_PUBLIC int PUBLIC(rewind)(HANDLE *handle, int64_t length);
NANOLOOM_PUBLIC int PUBLIC(reserve)(HANDLE *handle, int64_t tokens);

int nanoloom_session_prepare(HANDLE *handle)
{
    return nanoloom_kept_create(&handle->kept, nanoloom_open_sizes);
}

void nanoloom_session_release(HANDLE *handle)
{
    nanoloom_kept_destroy(&handle->kept, nanoloom_open_sizes);
}

/* All dimensions, for sizes that are chosen. */
static void fill(int64_t *dims, const int64_t *sizes, int64_t length)
{
    int32_t count = nanoloom_open_sizes->dim_count;
    int32_t chosen = count - nanoloom_open_sizes->grown_count;
    for (int32_t i = 0; i < count; i++)
        dims[i] = i < chosen ? sizes[i] : length;
}

int nanoloom_session_resize(HANDLE *handle, const int64_t *sizes)
{
    struct nanoloom_kept *kept = &handle->kept;
    int64_t *next = kept->next;
    fill(next, sizes, kept->length);
    int status = nanoloom_handle_bind(handle, next);
    if (status)
        return status;
    kept->next = kept->dims;
    kept->dims = next;
    return NANOLOOM_OK;
}

int nanoloom_session_takes(const HANDLE *handle, const struct nanoloom_program *program)
{
    int other = handle->program && !nanoloom_kept_alike(handle->program, program);
    if (other && handle->kept.length)
        return NANOLOOM_OTHER_TOKENS;
    int64_t most = nanoloom_kept_most(nanoloom_open_sizes);
    return nanoloom_kept_total(program) > most ? NANOLOOM_FULL : NANOLOOM_OK;
}

int nanoloom_session_begin(HANDLE *handle, const void *const **inputs,
                           void *const **outputs)
{
    struct nanoloom_kept *kept = &handle->kept;
    fill(kept->dims, kept->dims, kept->length);
    int status = nanoloom_handle_bind(handle, kept->dims);
    if (!status)
        status = nanoloom_kept_reserve(kept, nanoloom_open_sizes, handle->program,
                                       nanoloom_kept_total(handle->program));
    if (status)
        return status;
    nanoloom_kept_point(kept, handle->program, *inputs, *outputs);
    *inputs = kept->inputs;
    *outputs = kept->outputs;
    return NANOLOOM_OK;
}

int64_t PUBLIC(length)(const HANDLE *handle)
{
    return handle ? handle->kept.length : 0;
}

int PUBLIC(rewind)(HANDLE *handle, int64_t length)
{
    if (!handle)
        return NANOLOOM_NO_HANDLE;
    if (atomic_exchange(&handle->busy, 1))
        return NANOLOOM_BUSY;
    int kept = length >= 0 && length <= handle->kept.length;
    if (kept)
        handle->kept.length = length;
    atomic_store(&handle->busy, 0);
    return kept ? NANOLOOM_OK : NANOLOOM_NOT_KEPT;
}

int PUBLIC(reserve)(HANDLE *handle, int64_t tokens)
{
    if (!handle)
        return NANOLOOM_NO_HANDLE;
    if (!handle->program)
        return NANOLOOM_NO_SIZES;
    if (atomic_exchange(&handle->busy, 1))
        return NANOLOOM_BUSY;
    int64_t most = nanoloom_kept_most(nanoloom_open_sizes);
    int status = NANOLOOM_FULL;
    if (tokens <= most)
        status = nanoloom_kept_reserve(&handle->kept, nanoloom_open_sizes,
                                       handle->program, tokens);
    atomic_store(&handle->busy, 0);
    return status;
}
