/* The public functions of a model's shared library, nanoloom_MODEL_create and the others.
 *
 * Compiled once for each model with -DNANOLOOM_MODEL=name, and NANOLOOM_SIZED where it has
 * sizes; the generated header declares the functions and says what they do. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "arena.h"
#include "cpus.h"
#include "library.h"
#include "identity.h"

#define JOIN_NOW(prefix, model, name) prefix##model##name
#define JOIN(prefix, model, name) JOIN_NOW(prefix, model, name)
#define HANDLE struct JOIN(nanoloom_, NANOLOOM_MODEL, )
#define PUBLIC(name) JOIN(nanoloom_, NANOLOOM_MODEL, _##name)

#ifdef NANOLOOM_LEVELS
extern const struct nanoloom_identity nanoloom_identity; /* of the level that is taken */
#endif

HANDLE {
    nanoloom_parallel parallel;
    void *context;
    struct nanoloom_pool *pool; /* NULL when the caller brought its own */
    const struct nanoloom_program *program; /* NULL while its sizes have no numbers */
    char *rooms;                            /* of it, and of the next one */
    int64_t room_bytes;
    void *workspace;
    int64_t workspace_bytes;
    int64_t threads; /* with scratch memory in the workspace */
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
NANOLOOM_PUBLIC int PUBLIC(explain)(const HANDLE *handle, int status, char *text,
                                    size_t bytes);

static void release(HANDLE *handle)
{
    nanoloom_arena_destroy(handle->workspace, handle->workspace_bytes);
    nanoloom_arena_destroy(handle->rooms, 2 * handle->room_bytes);
    free(handle);
}

#ifdef NANOLOOM_SIZED

NANOLOOM_PUBLIC int PUBLIC(resize)(HANDLE *handle, const int64_t *sizes);
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(input_of)(const HANDLE *handle,
                                                               int32_t index);
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle,
                                                                int32_t index);

/* Room for the program of any sizes, and working memory for all that bounds allow. */
static int prepare(HANDLE *handle)
{
    handle->room_bytes = nanoloom_bound_bytes(nanoloom_open_sizes);
    handle->rooms = nanoloom_arena_create(2 * handle->room_bytes);
    if (!handle->rooms)
        return 0;
    int64_t bytes =
        nanoloom_most_workspace(nanoloom_open_sizes, handle->threads, handle->rooms);
    handle->workspace_bytes = bytes;
    handle->workspace = bytes ? nanoloom_arena_create(bytes) : NULL;
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
    return NANOLOOM_OK;
}

int PUBLIC(resize)(HANDLE *handle, const int64_t *sizes)
{
    if (!handle)
        return NANOLOOM_NO_HANDLE;
    if (!sizes)
        return NANOLOOM_NULL_POINTER;
    if (atomic_exchange(&handle->busy, 1))
        return NANOLOOM_BUSY;
    int first = (const char *)handle->program == handle->rooms;
    const struct nanoloom_program *program = nanoloom_bind(
        nanoloom_open_sizes, sizes, handle->rooms + (first ? handle->room_bytes : 0));
    int status = program ? reserve(handle, program) : NANOLOOM_WRONG_SIZES;
    atomic_store(&handle->busy, 0);
    return status;
}

const struct nanoloom_tensor *PUBLIC(input_of)(const HANDLE *handle, int32_t index)
{
    int known = handle && handle->program && PUBLIC(input)(index);
    return known ? &handle->program->inputs[index] : NULL;
}

const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle, int32_t index)
{
    int known = handle && handle->program && PUBLIC(output)(index);
    return known ? &handle->program->outputs[index] : NULL;
}

#else

static int prepare(HANDLE *handle)
{
    handle->program = &nanoloom_program;
    handle->workspace_bytes = nanoloom_workspace_bytes(handle->program, handle->threads);
    handle->workspace = nanoloom_arena_create(handle->workspace_bytes);
    return handle->workspace != NULL;
}

#endif

static HANDLE *create(nanoloom_parallel parallel, void *context, int64_t threads)
{
#ifdef NANOLOOM_LEVELS
    if (nanoloom_identity.refusal) {
        fprintf(stderr, "%s\n", nanoloom_identity.refusal);
        return NULL;
    }
#endif
    if (nanoloom_program.needs_tiles && nanoloom_request_tiles())
        return NULL;
    HANDLE *handle = calloc(1, sizeof *handle);
    if (!handle)
        return NULL;
    handle->parallel = parallel;
    handle->context = context;
    handle->threads = threads;
    if (!prepare(handle)) {
        release(handle);
        return NULL;
    }
    return handle;
}

HANDLE *PUBLIC(create_on)(nanoloom_parallel parallel, void *context)
{
    return create(parallel, context, nanoloom_default_threads());
}

HANDLE *PUBLIC(create)(int threads)
{
    int wanted = threads > 0 ? threads : nanoloom_default_threads();
    struct nanoloom_pool *pool = nanoloom_pool_create(wanted);
    if (!pool)
        return NULL;
    HANDLE *handle = create(nanoloom_pool_run, pool, nanoloom_pool_threads(pool));
    if (handle)
        handle->pool = pool;
    else
        nanoloom_pool_destroy(pool);
    return handle;
}

int PUBLIC(run)(HANDLE *handle, const void *const *inputs, void *const *outputs)
{
    if (!handle)
        return NANOLOOM_NO_HANDLE;
    int status = nanoloom_check_pointers(&nanoloom_program, inputs, outputs);
    if (status)
        return status;
    if (!handle->program)
        return NANOLOOM_NO_SIZES;
    if (atomic_exchange(&handle->busy, 1))
        return NANOLOOM_BUSY;
    struct nanoloom_memory memory = {
        .parameters = handle->program->parameters,
        .inputs = inputs,
        .outputs = outputs,
        .workspace = handle->workspace,
        .threads = handle->threads,
    };
    status = nanoloom_run(handle->program, &memory, handle->parallel, handle->context,
                          NULL);
    atomic_store(&handle->busy, 0);
    return status;
}

void PUBLIC(destroy)(HANDLE *handle)
{
    if (!handle)
        return;
    nanoloom_pool_destroy(handle->pool);
    release(handle);
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
        [NANOLOOM_OUT_OF_RANGE] = "an index is out of range",
        [NANOLOOM_NO_SIZES] = "the model's sizes have no numbers yet: resize the handle",
        [NANOLOOM_WRONG_SIZES] = "the model does not take these sizes",
        [NANOLOOM_NO_MEMORY] = "there is no memory for these sizes",
    };
    int known = status >= 0 && status < (int)(sizeof texts / sizeof *texts);
    return known ? texts[status] : "unknown status";
}

int PUBLIC(explain)(const HANDLE *handle, int status, char *text, size_t bytes)
{
    int64_t index;
    const struct nanoloom_check *check = NULL;
    if (handle && handle->program && status == NANOLOOM_OUT_OF_RANGE)
        check = nanoloom_failed(handle->program, handle->workspace, &index);
    if (!check)
        return snprintf(text, bytes, "%s", PUBLIC(error)(status));
    return snprintf(text, bytes, "%s: %s %" PRId64 " is outside %" PRId64 "..%" PRId64,
                    check->where, check->what, index, check->low, check->high);
}
