/* Runs model.so once on arrays from files, each in memory of exactly its size, so that
 * valgrind sees a byte too far.  Arguments: a file of raw numbers for each input. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

static const size_t WIDTH[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

static size_t bytes_of(const struct nanoloom_tensor *tensor)
{
    size_t count = WIDTH[tensor->element];
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        count *= (size_t)tensor->shape[axis];
    return count;
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        exit(3);
    return memory;
}

static void *read_file(const char *name, size_t bytes)
{
    void *memory = allocate(bytes);
    FILE *file = fopen(name, "rb");
    if (!file || fread(memory, 1, bytes, file) != bytes)
        exit(3);
    fclose(file);
    return memory;
}

int main(int count, char **names)
{
    const void *inputs[NANOLOOM_MODEL_INPUTS + 1] = {NULL};
    void *outputs[NANOLOOM_MODEL_OUTPUTS + 1] = {NULL};
    unsigned sum = 0;

    if (count != NANOLOOM_MODEL_INPUTS + 1)
        return 3;
    for (int32_t i = 0; i < NANOLOOM_MODEL_INPUTS; i++)
        inputs[i] = read_file(names[i + 1], bytes_of(nanoloom_model_input(i)));
    for (int32_t i = 0; i < NANOLOOM_MODEL_OUTPUTS; i++)
        outputs[i] = allocate(bytes_of(nanoloom_model_output(i)));
    struct nanoloom_model *model = nanoloom_model_create(2);
    if (!model || nanoloom_model_run(model, inputs, outputs))
        return 3;
    nanoloom_model_destroy(model);
    for (int32_t i = 0; i < NANOLOOM_MODEL_OUTPUTS; i++) {
        const unsigned char *bytes = outputs[i];
        for (size_t n = 0; n < bytes_of(nanoloom_model_output(i)); n++)
            sum += bytes[n];
        free(outputs[i]);
    }
    for (int32_t i = 0; i < NANOLOOM_MODEL_INPUTS; i++)
        free((void *)inputs[i]);
    printf("%u\n", sum); /* so that numbers that were never written are an error */
    return 0;
}
