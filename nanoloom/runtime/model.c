/* The public functions of a model's shared library, nanoloom_MODEL_create and the others.
 *
 * Compiled once for each model with -DNANOLOOM_MODEL=name; the generated header declares
 * the functions and says what they do. */
#include <stdatomic.h>
#include <stdlib.h>

#include "arena.h"
#include "cpus.h"
#include "library.h"

#define JOIN_NOW(prefix, model, name) prefix##model##name
#define JOIN(prefix, model, name) JOIN_NOW(prefix, model, name)
#define HANDLE struct JOIN(nanoloom_, NANOLOOM_MODEL, )
#define PUBLIC(name) JOIN(nanoloom_, NANOLOOM_MODEL, _##name)

HANDLE {
    nanoloom_parallel parallel;
    void *context;
    struct nanoloom_pool *pool; /* NULL when the caller brought its own */
    void *workspace;
    atomic_int busy;
};

NANOLOOM_PUBLIC HANDLE *PUBLIC(create)(int threads);
NANOLOOM_PUBLIC HANDLE *PUBLIC(create_on)(nanoloom_parallel parallel, void *context);
NANOLOOM_PUBLIC int PUBLIC(run)(HANDLE *handle, const void *const *inputs,
                                void *const *outputs);
NANOLOOM_PUBLIC void PUBLIC(destroy)(HANDLE *handle);
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(input)(int32_t index);
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(output)(int32_t index);
NANOLOOM_PUBLIC const char *PUBLIC(error)(int status);

HANDLE *PUBLIC(create_on)(nanoloom_parallel parallel, void *context)
{
    if (nanoloom_program.needs_tiles && nanoloom_request_tiles())
        return NULL;
    HANDLE *handle = calloc(1, sizeof *handle);
    if (!handle)
        return NULL;
    handle->parallel = parallel;
    handle->context = context;
    handle->workspace =
        nanoloom_arena_create(nanoloom_workspace_bytes(&nanoloom_program));
    if (!handle->workspace) {
        free(handle);
        return NULL;
    }
    return handle;
}

HANDLE *PUBLIC(create)(int threads)
{
    HANDLE *handle = PUBLIC(create_on)(nanoloom_pool_run, NULL);
    if (!handle)
        return NULL;
    handle->pool = nanoloom_pool_create(threads > 0 ? threads : nanoloom_default_threads());
    handle->context = handle->pool;
    if (!handle->pool) {
        PUBLIC(destroy)(handle);
        return NULL;
    }
    return handle;
}

int PUBLIC(run)(HANDLE *handle, const void *const *inputs, void *const *outputs)
{
    if (!handle)
        return NANOLOOM_NO_HANDLE;
    int status = nanoloom_check_pointers(&nanoloom_program, inputs, outputs);
    if (status)
        return status;
    if (atomic_exchange(&handle->busy, 1))
        return NANOLOOM_BUSY;
    struct nanoloom_memory memory = {
        .parameters = nanoloom_program.parameters,
        .inputs = inputs,
        .outputs = outputs,
        .workspace = handle->workspace,
    };
    nanoloom_run(&nanoloom_program, &memory, handle->parallel, handle->context, NULL);
    atomic_store(&handle->busy, 0);
    return NANOLOOM_OK;
}

void PUBLIC(destroy)(HANDLE *handle)
{
    if (!handle)
        return;
    nanoloom_pool_destroy(handle->pool);
    nanoloom_arena_destroy(handle->workspace,
                           nanoloom_workspace_bytes(&nanoloom_program));
    free(handle);
}

const struct nanoloom_tensor *PUBLIC(input)(int32_t index)
{
    int known = index >= 0 && index < nanoloom_program.input_count;
    return known ? &nanoloom_program.inputs[index] : NULL;
}

const struct nanoloom_tensor *PUBLIC(output)(int32_t index)
{
    int known = index >= 0 && index < nanoloom_program.output_count;
    return known ? &nanoloom_program.outputs[index] : NULL;
}

const char *PUBLIC(error)(int status)
{
    static const char *const texts[] = {
        [NANOLOOM_OK] = "no error",
        [NANOLOOM_NO_HANDLE] = "the handle is NULL: was it created?",
        [NANOLOOM_NULL_POINTER] = "an input or output pointer is NULL",
        [NANOLOOM_MISALIGNED] = "an input or output is not aligned to its element size",
        [NANOLOOM_BUSY] =
            "another thread is running this handle: create one handle for each thread",
    };
    int known = status >= 0 && status < (int)(sizeof texts / sizeof *texts);
    return known ? texts[status] : "unknown status";
}
