/* Sizes from the headers of arrays in files. */
#define _POSIX_C_SOURCE 200809L
#include "given_sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "growth.h"
#include "npy.h"
#include "refusal.h"

enum { CACHE_LINE = 64, MOST_TEXT = 1024 };

static void *memory_for(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, CACHE_LINE, bytes + CACHE_LINE))
        nanoloom_refuse(NULL, "no memory for the sizes");
    return memory;
}

static const int64_t **shapes_of(const struct nanoloom_sizes *sizes, char **files)
{
    static const int64_t room[] = {NANOLOOM_FIRST_ROOM};
    const struct nanoloom_program *program = sizes->program;
    const int64_t **shapes = memory_for(sizeof *shapes * (size_t)program->input_count);
    for (int32_t i = 0; i < program->input_count; i++) {
        const struct nanoloom_tensor *input = &program->inputs[i];
        shapes[i] = room;
        if (i >= nanoloom_given_count(program))
            continue;
        int64_t *shape = memory_for(sizeof *shape * (size_t)input->rank);
        nanoloom_npy_shape(files[i], input, sizes->shape_texts[i], shape);
        shapes[i] = shape;
    }
    return shapes;
}

static void check_bounds(const struct nanoloom_sizes *sizes, const int64_t *dims)
{
    for (int32_t i = 0; i < sizes->dim_count; i++) {
        if (dims[i] < sizes->least[i] && !nanoloom_is_none(sizes, i, dims[i]))
            nanoloom_refuse(NULL, "dimension %s is %" PRId64 ", at least %" PRId64
                            " is wanted", sizes->dims[i], dims[i], sizes->least[i]);
        if (dims[i] > sizes->most[i])
            nanoloom_refuse(NULL, "dimension %s is %" PRId64 ", at most %" PRId64
                            " was compiled for", sizes->dims[i], dims[i],
                            sizes->most[i]);
    }
}

static _Noreturn void refuse(const struct nanoloom_sizes *sizes, const int64_t *dims)
{
    char text[MOST_TEXT];
    size_t used = 0;
    text[0] = 0;
    for (int32_t i = 0; i < sizes->dim_count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%" PRId64,
                                 i ? ", " : "", sizes->dims[i], dims[i]);
    nanoloom_refuse(NULL, "these are no sizes of the model: %s", text);
}

void nanoloom_given_dims(const struct nanoloom_sizes *sizes, char **files, int64_t *dims)
{
    const int64_t **shapes = shapes_of(sizes, files);
    struct nanoloom_contradiction wrong = nanoloom_dims_of(sizes, shapes, dims);
    if (wrong.dim != NANOLOOM_NONE)
        nanoloom_refuse(files[wrong.input],
                        "dimension %s is %" PRId64 " here and %" PRId64
                        " in the inputs before",
                        sizes->dims[wrong.dim], wrong.here, wrong.before);
    check_bounds(sizes, dims);
}

const struct nanoloom_program *nanoloom_bound_to(const struct nanoloom_program *program,
                                                 const struct nanoloom_sizes *sizes,
                                                 const int64_t *dims)
{
    if (!sizes)
        return program;
    void *room = memory_for((size_t)nanoloom_bound_bytes(sizes));
    const struct nanoloom_program *bound = nanoloom_bind(sizes, dims, room);
    if (!bound)
        refuse(sizes, dims);
    return bound;
}
