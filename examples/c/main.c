/* Runs a model that nanoloom compiled, from plain C.  README.md beside this file says how
 * to build it.
 *
 *     ./main [SIZE...]      numbers of the named dimensions, 1 where none is given
 *
 * Every f32 input is filled with 0, 0.25, 0.5, ... 1.5, over and over, all others with
 * zeros; the first elements of every f32 output are printed. */
#include <stdio.h>
#include <stdlib.h>

#ifndef HEADER
#define HEADER "model.h"
#endif
#include HEADER

enum { SHOWN = 8, SENTENCE = 256 };

static void stop(const struct nanoloom_model *model, int status)
{
    char text[SENTENCE];
    nanoloom_model_explain(model, status, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

/* Names, types and shapes: those of the handle where the model has sizes. */
#ifdef NANOLOOM_MODEL_SIZES

static const struct nanoloom_tensor *input(struct nanoloom_model *model, int32_t index)
{
    return nanoloom_model_input_of(model, index);
}

static const struct nanoloom_tensor *output(struct nanoloom_model *model, int32_t index)
{
    return nanoloom_model_output_of(model, index);
}

static void choose_sizes(struct nanoloom_model *model, int given, char **numbers)
{
    int64_t sizes[NANOLOOM_MODEL_SIZES];
    for (int i = 0; i < NANOLOOM_MODEL_SIZES; i++)
        sizes[i] = i < given ? atoll(numbers[i]) : 1;
    int status = nanoloom_model_resize(model, sizes);
    if (status)
        stop(model, status);
}

#else

static const struct nanoloom_tensor *input(struct nanoloom_model *model, int32_t index)
{
    (void)model;
    return nanoloom_model_input(index);
}

static const struct nanoloom_tensor *output(struct nanoloom_model *model, int32_t index)
{
    (void)model;
    return nanoloom_model_output(index);
}

static void choose_sizes(struct nanoloom_model *model, int given, char **numbers)
{
    (void)model, (void)given, (void)numbers;
}

#endif

static int64_t elements(const struct nanoloom_tensor *tensor)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        count *= tensor->shape[axis];
    return count;
}

/* Memory for a tensor: eight bytes an element are enough for every type. */
static void *allocate(const struct nanoloom_tensor *tensor)
{
    void *memory = calloc((size_t)elements(tensor) + 1, 8);
    if (!memory) {
        fprintf(stderr, "no memory for %s\n", tensor->name);
        exit(1);
    }
    return memory;
}

static void fill(const struct nanoloom_tensor *tensor, void *memory)
{
    float *values = memory;
    if (tensor->element != NANOLOOM_F32)
        return;
    for (int64_t i = 0; i < elements(tensor); i++)
        values[i] = (float)(i % 7) * 0.25f;
}

static void show(const struct nanoloom_tensor *tensor, const void *memory)
{
    const float *values = memory;
    printf("%s:", tensor->name);
    if (tensor->element == NANOLOOM_F32)
        for (int64_t i = 0; i < elements(tensor) && i < SHOWN; i++)
            printf(" %g", values[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    const void *inputs[NANOLOOM_MODEL_INPUTS + 1] = {NULL};
    void *outputs[NANOLOOM_MODEL_OUTPUTS + 1] = {NULL};

    struct nanoloom_model *model = nanoloom_model_create(0);
    if (!model) {
        fprintf(stderr, "no memory for the model\n");
        return 1;
    }
    choose_sizes(model, argc - 1, argv + 1);
    for (int32_t i = 0; i < NANOLOOM_MODEL_INPUTS; i++) {
        void *memory = allocate(input(model, i));
        fill(input(model, i), memory);
        inputs[i] = memory;
    }
    for (int32_t i = 0; i < NANOLOOM_MODEL_OUTPUTS; i++)
        outputs[i] = allocate(output(model, i));

    int status = nanoloom_model_run(model, inputs, outputs);
    if (status)
        stop(model, status);
    for (int32_t i = 0; i < NANOLOOM_MODEL_OUTPUTS; i++)
        show(output(model, i), outputs[i]);

    nanoloom_model_destroy(model);
    for (int32_t i = 0; i < NANOLOOM_MODEL_INPUTS; i++)
        free((void *)(uintptr_t)inputs[i]);
    for (int32_t i = 0; i < NANOLOOM_MODEL_OUTPUTS; i++)
        free(outputs[i]);
    return 0;
}
