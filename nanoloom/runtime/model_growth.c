/* The public functions of a model with outputs of sizes without a bound. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "handle.h"

enum { CACHE_LINE = 64 };

NANOLOOM_PUBLIC int PUBLIC(run_alloc)(HANDLE *handle, const void *const *inputs,
                                      void **outputs);
NANOLOOM_PUBLIC void PUBLIC(free_outputs)(void **outputs);

/* Binds the program to `next`; what is wrong leaves the handle as it was. */
static int take(HANDLE *handle)
{
    int status = nanoloom_handle_bind(handle, handle->growth.next);
    if (!status)
        nanoloom_growth_take(&handle->growth);
    return status;
}

int nanoloom_growth_resize(HANDLE *handle, const int64_t *sizes)
{
    struct nanoloom_growth *growth = &handle->growth;
    int32_t count = nanoloom_open_sizes->dim_count;
    int32_t chosen = count - nanoloom_open_sizes->grown_count;
    memcpy(growth->next, growth->dims, sizeof *growth->next * (size_t)count);
    for (int32_t i = 0; i < chosen; i++)
        growth->next[i] = sizes[i];
    int status = take(handle);
    if (!status)
        return status;
    nanoloom_growth_first(growth, nanoloom_open_sizes); /* not the last run's room */
    return take(handle);
}

/* The bytes of a dense tensor in whole lines of cache, at least one; 0 for too many. */
static size_t whole_bytes(const struct nanoloom_tensor *tensor)
{
    size_t bytes = (size_t)nanoloom_element_bytes(tensor->element);
    for (int32_t d = 0; d < tensor->rank; d++)
        if (__builtin_mul_overflow(bytes, (size_t)tensor->shape[d], &bytes))
            return 0;
    return bytes > SIZE_MAX - CACHE_LINE ? 0 : (bytes + CACHE_LINE) / CACHE_LINE * CACHE_LINE;
}

void PUBLIC(free_outputs)(void **outputs)
{
    for (int32_t i = 0; outputs && i < nanoloom_made(&nanoloom_program); i++) {
        free(outputs[i]);
        outputs[i] = NULL;
    }
}

static int allocate(const struct nanoloom_program *program, void **outputs)
{
    for (int32_t i = 0; i < nanoloom_made(program); i++) {
        size_t bytes = whole_bytes(&program->outputs[i]);
        if (!bytes || posix_memalign(&outputs[i], CACHE_LINE, bytes)) {
            outputs[i] = NULL;
            return NANOLOOM_NO_MEMORY;
        }
    }
    return NANOLOOM_OK;
}

static int run(HANDLE *handle, const void *const *inputs, void **outputs)
{
    const struct nanoloom_program *program = handle->program;
    int status = allocate(program, outputs);
    if (status)
        return status;
    struct nanoloom_memory memory = {
        .parameters = program->parameters,
        .inputs = nanoloom_growth_inputs(&handle->growth, program, inputs),
        .outputs = nanoloom_counted_begin(&handle->counted, program, outputs),
        .workspace = handle->workspace,
        .threads = handle->threads,
        .control = &handle->control,
    };
    return nanoloom_run(program, &memory, handle->parallel, handle->context, NULL);
}

/* A call that found no room leaves the one that it began with. */
static void give_back(HANDLE *handle)
{
    if (!nanoloom_handle_bind(handle, handle->growth.before))
        nanoloom_growth_back(&handle->growth, nanoloom_open_sizes);
}

/* Runs until there was room; what was wrong in a run without counts for nothing. */
static int run_until_it_fits(HANDLE *handle, const void *const *inputs, void **outputs)
{
    for (int runs = 0; runs < NANOLOOM_MOST_RUNS; runs++) {
        int status = run(handle, inputs, outputs);
        if (status && status != NANOLOOM_OUT_OF_RANGE)
            return status;
        enum nanoloom_fit fit = nanoloom_growth_after(
            &handle->growth, nanoloom_open_sizes, handle->counted.numbers);
        if (fit == NANOLOOM_FITS && !status)
            nanoloom_counted_end(&handle->counted, handle->program);
        if (fit == NANOLOOM_FITS)
            return status;
        PUBLIC(free_outputs)(outputs);
        if (fit == NANOLOOM_BEYOND)
            return NANOLOOM_NO_ROOM;
        status = take(handle);
        if (status)
            return status == NANOLOOM_WRONG_SIZES ? NANOLOOM_NO_ROOM : status;
    }
    return NANOLOOM_NO_ROOM;
}

int PUBLIC(run_alloc)(HANDLE *handle, const void *const *inputs, void **outputs)
{
    int32_t made = nanoloom_made(&nanoloom_program);
    if (made && !outputs)
        return NANOLOOM_NULL_POINTER;
    for (int32_t i = 0; i < made; i++)
        outputs[i] = NULL;
    if (!handle)
        return NANOLOOM_NO_HANDLE;
    int status = nanoloom_check_inputs(&nanoloom_program, inputs);
    if (status)
        return status;
    if (!handle->program)
        return NANOLOOM_NO_SIZES;
    if (atomic_exchange(&handle->busy, 1))
        return NANOLOOM_BUSY;
    status = nanoloom_handle_begin(handle);
    if (status == NANOLOOM_OK) {
        nanoloom_growth_begin(&handle->growth, nanoloom_open_sizes);
        status = run_until_it_fits(handle, inputs, outputs);
        if (status == NANOLOOM_NO_MEMORY || status == NANOLOOM_NO_ROOM)
            give_back(handle);
        nanoloom_handle_end(handle);
    }
    if (status)
        PUBLIC(free_outputs)(outputs);
    atomic_store(&handle->busy, 0);
    return status;
}
