/* The public functions of a model's shared library, nanoloom_MODEL_create and the others.
 *
 * The generated header declares the functions and says what they do. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "arena.h"
#include "clock.h"
#include "cpus.h"
#include "handle.h"
#include "identity.h"
#include "library_pool.h"

#ifdef NANOLOOM_REFUSES
extern const struct nanoloom_identity nanoloom_identity; /* of the level that is taken */
#endif

NANOLOOM_PUBLIC HANDLE *PUBLIC(create)(int threads);
NANOLOOM_PUBLIC HANDLE *PUBLIC(create_on)(nanoloom_parallel parallel, void *context);
#ifndef NANOLOOM_GROWN
NANOLOOM_PUBLIC int PUBLIC(run)(HANDLE *handle, const void *const *inputs,
                                void *const *outputs);
#endif
NANOLOOM_PUBLIC void *PUBLIC(pool)(HANDLE *handle, nanoloom_parallel *parallel);
NANOLOOM_PUBLIC void PUBLIC(limit)(HANDLE *handle, int64_t nanoseconds,
                                   const volatile int32_t *cancelled);
NANOLOOM_PUBLIC void PUBLIC(destroy)(HANDLE *handle);
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(input)(int32_t index);
NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(output)(int32_t index);
NANOLOOM_PUBLIC const char *PUBLIC(error)(int status);
NANOLOOM_PUBLIC int PUBLIC(explain)(const HANDLE *handle, int status, char *text,
                                    size_t bytes);

enum { OVER = 1 }; /* of CLOCK_MONOTONIC, a moment that is over long since */

static void release(HANDLE *handle)
{
#ifdef NANOLOOM_SESSION
    nanoloom_session_release(handle);
#endif
#ifdef NANOLOOM_COUNTED
    nanoloom_counted_release(&handle->counted);
#endif
#ifdef NANOLOOM_GROWN
    nanoloom_growth_release(&handle->growth);
#endif
    nanoloom_arena_destroy(handle->workspace, handle->workspace_bytes);
    nanoloom_arena_destroy(handle->rooms, 2 * handle->room_bytes);
    free(handle);
}

#ifndef NANOLOOM_SIZED

int nanoloom_handle_prepare(HANDLE *handle)
{
    handle->program = &nanoloom_program;
#ifdef NANOLOOM_COUNTED
    if (!nanoloom_counted_prepare(&handle->counted, handle->program))
        return 0;
#endif
    handle->workspace_bytes = nanoloom_workspace_bytes(handle->program, handle->threads);
    handle->workspace = nanoloom_arena_create(handle->workspace_bytes);
    return handle->workspace != NULL;
}

#endif

static HANDLE *create(nanoloom_parallel parallel, void *context, int64_t threads)
{
#ifdef NANOLOOM_REFUSES
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
    if (!nanoloom_handle_prepare(handle)) {
        release(handle);
        return NULL;
    }
    return handle;
}

HANDLE *PUBLIC(create_on)(nanoloom_parallel parallel, void *context)
{
    if (!parallel)
        return NULL;
    return create(parallel, context, nanoloom_default_threads());
}

HANDLE *PUBLIC(create)(int threads)
{
    if (threads < 0 || threads > NANOLOOM_MOST_THREADS)
        return NULL;
    int wanted = threads > 0 ? threads : nanoloom_default_threads();
    struct nanoloom_pool *pool = nanoloom_library_pool_take(wanted);
    if (!pool)
        return NULL;
    int64_t started = nanoloom_pool_threads(pool);
    started = wanted < started ? wanted : started;
    HANDLE *handle = create(nanoloom_pool_run, NULL, started);
    if (!handle) {
        nanoloom_library_pool_give_back();
        return NULL;
    }
    handle->member = (struct nanoloom_member){pool, started};
    handle->context = &handle->member;
    return handle;
}

void *PUBLIC(pool)(HANDLE *handle, nanoloom_parallel *parallel)
{
    if (parallel)
        *parallel = handle ? handle->parallel : NULL;
    return handle ? handle->context : NULL;
}

void PUBLIC(limit)(HANDLE *handle, int64_t nanoseconds, const volatile int32_t *cancelled)
{
    if (!handle)
        return;
    handle->limit = nanoseconds;
    handle->control.cancelled = cancelled;
}

int nanoloom_handle_begin(HANDLE *handle)
{
    int64_t limit = handle->limit, now = limit > 0 ? nanoloom_now() : 0;
    int ends = limit > 0 && limit <= INT64_MAX - now;
    handle->control.deadline = limit < 0 ? OVER : ends ? now + limit : 0;
    if (!handle->member.pool)
        return NANOLOOM_OK;
    return nanoloom_pool_enter(&handle->member, &handle->control);
}

void nanoloom_handle_end(HANDLE *handle)
{
    if (handle->member.pool)
        nanoloom_pool_leave(&handle->member);
}

#ifndef NANOLOOM_GROWN

static int run(HANDLE *handle, const void *const *inputs, void *const *outputs)
{
#ifdef NANOLOOM_SESSION
    int refused = nanoloom_session_begin(handle, &inputs, &outputs);
    if (refused)
        return refused;
#endif
#ifdef NANOLOOM_COUNTED
    outputs = nanoloom_counted_begin(&handle->counted, handle->program, outputs);
#endif
    struct nanoloom_memory memory = {
        .parameters = handle->program->parameters,
        .inputs = inputs,
        .outputs = outputs,
        .workspace = handle->workspace,
        .threads = handle->threads,
        .control = &handle->control,
    };
    int status = nanoloom_run(handle->program, &memory, handle->parallel,
                              handle->context, NULL);
#ifdef NANOLOOM_SESSION
    if (status == NANOLOOM_OK)
        handle->kept.length = nanoloom_kept_total(handle->program);
#endif
#ifdef NANOLOOM_COUNTED
    if (status == NANOLOOM_OK)
        nanoloom_counted_end(&handle->counted, handle->program);
#endif
    return status;
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
    status = nanoloom_handle_begin(handle);
    if (status == NANOLOOM_OK) {
        status = run(handle, inputs, outputs);
        nanoloom_handle_end(handle);
    }
    atomic_store(&handle->busy, 0);
    return status;
}

#endif

void PUBLIC(destroy)(HANDLE *handle)
{
    if (!handle)
        return;
    if (handle->member.pool)
        nanoloom_library_pool_give_back();
    release(handle);
}

const struct nanoloom_tensor *PUBLIC(input)(int32_t index)
{
    int known = index >= 0 && index < nanoloom_given_count(&nanoloom_program);
    return known ? &nanoloom_program.inputs[index] : NULL;
}

const struct nanoloom_tensor *PUBLIC(output)(int32_t index)
{
    int known = index >= 0 && index < nanoloom_made(&nanoloom_program);
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
        [NANOLOOM_FULL] = "more tokens than can be kept: rewind the handle, or give it fewer",
        [NANOLOOM_NOT_KEPT] = "so many tokens are not kept",
        [NANOLOOM_OTHER_TOKENS] =
            "tokens of other sizes are kept: rewind the handle to none of them first",
        [NANOLOOM_NO_ROOM] = "the data want a size that the model does not take",
        [NANOLOOM_CANCELLED] = "the run was cancelled",
        [NANOLOOM_LATE] = "the time of the run was over",
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
#ifdef NANOLOOM_SESSION
    if (handle && status == NANOLOOM_FULL)
        return snprintf(text, bytes,
                        "%" PRId64 " tokens are kept, and at most %" PRId64
                        " can be: rewind the handle, or give it fewer",
                        handle->kept.length, nanoloom_kept_most(nanoloom_open_sizes));
#endif
#ifdef NANOLOOM_GROWN
    const char *node =
        handle ? nanoloom_growth_where(&handle->growth, &nanoloom_program) : NULL;
    if (node && status == NANOLOOM_NO_ROOM)
        return snprintf(text, bytes, "%s: the data want %" PRId64 " elements", node,
                        handle->growth.wanted);
#endif
#ifdef NANOLOOM_SIZED
    if (handle && status == NANOLOOM_WRONG_SIZES)
        return nanoloom_handle_explain_sizes(handle, text, bytes);
#endif
    if (!check)
        return snprintf(text, bytes, "%s", PUBLIC(error)(status));
    if (!*check->what)
        return snprintf(text, bytes, "%s", check->where);
    return snprintf(text, bytes, "%s: %s %" PRId64 " is outside %" PRId64 "..%" PRId64,
                    check->where, check->what, index, check->low, check->high);
}
