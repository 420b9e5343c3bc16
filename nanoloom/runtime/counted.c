/* Outputs whose shapes depend on data. */
#include "counted.h"

#include <stdlib.h>
#include <string.h>

int nanoloom_counted_prepare(struct nanoloom_counted *counted,
                             const struct nanoloom_program *program)
{
    size_t made = (size_t)nanoloom_made(program), rank = 0;
    for (size_t i = 0; i < made; i++)
        rank += (size_t)program->outputs[i].rank;
    size_t numbers = (size_t)(program->room_count + program->number_count);
    counted->outputs = calloc(made + numbers + 1, sizeof *counted->outputs);
    counted->numbers = calloc(numbers + 1, sizeof(int64_t));
    counted->tensors = calloc(made + 1, sizeof *counted->tensors);
    counted->shapes = calloc(rank + 1, sizeof(int64_t));
    counted->known = 0;
    return counted->outputs && counted->numbers && counted->tensors && counted->shapes;
}

void nanoloom_counted_release(struct nanoloom_counted *counted)
{
    free(counted->outputs);
    free(counted->numbers);
    free(counted->tensors);
    free(counted->shapes);
}

void *const *nanoloom_counted_begin(struct nanoloom_counted *counted,
                                    const struct nanoloom_program *program,
                                    void *const *outputs)
{
    int32_t made = nanoloom_made(program);
    counted->known = 0;
    for (int32_t i = 0; i < made; i++)
        counted->outputs[i] = outputs[i];
    for (int32_t i = 0; i < program->room_count + program->number_count; i++)
        counted->outputs[made + i] = &counted->numbers[i];
    return counted->outputs;
}

/* Keeps the first `count` of the elements along an axis, in row-major order. */
static void cut(char *array, int64_t *shape, const struct nanoloom_tensor *tensor,
                int32_t axis, int64_t count)
{
    int64_t rows = 1, bytes = nanoloom_element_bytes(tensor->element);
    for (int32_t d = 0; d < axis; d++)
        rows *= shape[d];
    for (int32_t d = axis + 1; d < tensor->rank; d++)
        bytes *= shape[d];
    for (int64_t row = 1; row < rows; row++)
        memmove(array + row * count * bytes, array + row * shape[axis] * bytes,
                (size_t)(count * bytes));
    shape[axis] = count;
}

void nanoloom_counted_end(struct nanoloom_counted *counted,
                          const struct nanoloom_program *program)
{
    int64_t *shape = counted->shapes, *numbers = counted->numbers + program->room_count;
    for (int32_t i = 0; i < nanoloom_made(program); i++) {
        const struct nanoloom_tensor *tensor = &program->outputs[i];
        for (int32_t d = 0; d < tensor->rank; d++)
            shape[d] = tensor->shape[d];
        counted->tensors[i] = *tensor;
        counted->tensors[i].shape = tensor->rank ? shape : NULL;
        for (int32_t k = 0; k < program->number_count; k++)
            if (program->numbers[k].output == i)
                cut(counted->outputs[i], shape, tensor, program->numbers[k].axis,
                    numbers[k]);
        shape += tensor->rank;
    }
    counted->known = 1;
}
