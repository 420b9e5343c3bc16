/* The public functions of a model for machines without an operating system.
 *
 * Compiled once for each model with -DNANOLOOM_MODEL=name and NANOLOOM_SINGLE_THREAD; the
 * generated header declares the functions and says what they do. */
#include "program.h"

#define JOIN_NOW(prefix, model, name) prefix##model##name
#define JOIN(prefix, model, name) JOIN_NOW(prefix, model, name)
#define PUBLIC(name) JOIN(nanoloom_, NANOLOOM_MODEL, _##name)

enum { CACHE_LINE = 64 };

extern const struct nanoloom_program nanoloom_program;

int PUBLIC(run)(const void *const *inputs, void *const *outputs, void *workspace);
const struct nanoloom_tensor *PUBLIC(input)(int32_t index);
const struct nanoloom_tensor *PUBLIC(output)(int32_t index);

int PUBLIC(run)(const void *const *inputs, void *const *outputs, void *workspace)
{
    int status = nanoloom_check_pointers(&nanoloom_program, inputs, outputs);
    if (status)
        return status;
    if (!workspace)
        return NANOLOOM_NULL_POINTER;
    if ((uintptr_t)workspace % CACHE_LINE)
        return NANOLOOM_MISALIGNED;
    struct nanoloom_memory memory = {
        .parameters = nanoloom_program.parameters,
        .inputs = inputs,
        .outputs = outputs,
        .workspace = workspace,
        .threads = 1,
    };
    return nanoloom_run(&nanoloom_program, &memory, NULL, NULL, NULL);
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
