/* Rows of earlier tokens: new ones are written behind them by the program itself. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"

int nanoloom_kept_create(struct nanoloom_kept *kept, const struct nanoloom_sizes *sizes)
{
    const struct nanoloom_program *program = sizes->program;
    kept->rows = calloc((size_t)program->kept_count, sizeof *kept->rows);
    kept->dims = calloc((size_t)sizes->dim_count, sizeof *kept->dims);
    kept->next = calloc((size_t)sizes->dim_count, sizeof *kept->next);
    kept->inputs = calloc((size_t)program->input_count, sizeof *kept->inputs);
    kept->outputs = calloc((size_t)program->output_count, sizeof *kept->outputs);
    return kept->rows && kept->dims && kept->next && kept->inputs && kept->outputs;
}

void nanoloom_kept_destroy(struct nanoloom_kept *kept, const struct nanoloom_sizes *sizes)
{
    for (int32_t i = 0; kept->rows && i < sizes->program->kept_count; i++)
        nanoloom_arena_destroy(kept->rows[i].memory, kept->rows[i].bytes);
    free(kept->rows);
    free(kept->dims);
    free(kept->next);
    free((void *)kept->inputs);
    free((void *)kept->outputs);
}

int64_t nanoloom_kept_most(const struct nanoloom_sizes *sizes)
{
    int64_t most = INT64_MAX;
    for (int32_t i = sizes->dim_count - sizes->grown_count; i < sizes->dim_count; i++)
        most = sizes->most[i] < most ? sizes->most[i] : most;
    return most;
}

static const struct nanoloom_tensor *present(const struct nanoloom_program *program,
                                             int32_t index)
{
    return &program->outputs[program->output_count - program->kept_count + index];
}

int64_t nanoloom_kept_total(const struct nanoloom_program *program)
{
    return present(program, 0)->shape[0];
}

int nanoloom_kept_alike(const struct nanoloom_program *one,
                        const struct nanoloom_program *other)
{
    for (int32_t i = 0; i < one->kept_count; i++) {
        const struct nanoloom_tensor *a = present(one, i), *b = present(other, i);
        for (int32_t axis = 1; axis < a->rank; axis++)
            if (a->shape[axis] != b->shape[axis])
                return 0;
    }
    return 1;
}

/* 0 for one that is more than any memory. */
static int row_bytes(const struct nanoloom_tensor *tensor, int64_t *bytes)
{
    *bytes = nanoloom_element_bytes(tensor->element);
    for (int32_t axis = 1; axis < tensor->rank; axis++)
        if (__builtin_mul_overflow(*bytes, tensor->shape[axis], bytes))
            return 0;
    return 1;
}

static int enlarge(struct nanoloom_rows *rows, int64_t bytes, int64_t used)
{
    char *larger = nanoloom_arena_create(bytes);
    if (!larger)
        return 0;
    if (used)
        memcpy(larger, rows->memory, (size_t)used);
    nanoloom_arena_destroy(rows->memory, rows->bytes);
    *rows = (struct nanoloom_rows){larger, bytes};
    return 1;
}

int nanoloom_kept_reserve(struct nanoloom_kept *kept, const struct nanoloom_sizes *sizes,
                          const struct nanoloom_program *program, int64_t tokens)
{
    int64_t most = nanoloom_kept_most(sizes);
    for (int32_t i = 0; i < program->kept_count; i++) {
        struct nanoloom_rows *rows = &kept->rows[i];
        int64_t row, wanted;
        if (!row_bytes(present(program, i), &row) ||
            __builtin_mul_overflow(row, most == INT64_MAX ? tokens : most, &wanted))
            return NANOLOOM_NO_MEMORY;
        if (rows->memory && wanted <= rows->bytes)
            continue;
        if (most == INT64_MAX && wanted < 2 * rows->bytes)
            wanted = 2 * rows->bytes;
        if (!enlarge(rows, wanted, kept->length * row))
            return NANOLOOM_NO_MEMORY;
    }
    return NANOLOOM_OK;
}

void nanoloom_kept_point(struct nanoloom_kept *kept, const struct nanoloom_program *program,
                         const void *const *inputs, void *const *outputs)
{
    int32_t given = program->input_count - program->kept_count;
    int32_t made = program->output_count - program->kept_count;
    for (int32_t i = 0; i < given; i++)
        kept->inputs[i] = inputs[i];
    for (int32_t i = 0; i < made; i++)
        kept->outputs[i] = outputs[i];
    for (int32_t i = 0; i < program->kept_count; i++) {
        kept->inputs[given + i] = kept->rows[i].memory;
        kept->outputs[made + i] = kept->rows[i].memory;
    }
}
