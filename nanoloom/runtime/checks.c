/* What is checked: the pointers of a call in front of a run, indices behind it. */
#include "program.h"

#include <stddef.h>

int64_t nanoloom_element_bytes(int32_t element)
{
    static const int8_t bytes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return bytes[element];
}

int32_t nanoloom_given_count(const struct nanoloom_program *program)
{
    return program->input_count - program->kept_count - program->room_count;
}

int32_t nanoloom_made(const struct nanoloom_program *program)
{
    int32_t own = program->kept_count + program->number_count + program->room_count;
    return program->output_count - own;
}

static int check(const struct nanoloom_tensor *tensor, const void *pointer)
{
    if (!pointer)
        return NANOLOOM_NULL_POINTER;
    if ((uintptr_t)pointer % (uintptr_t)nanoloom_element_bytes(tensor->element))
        return NANOLOOM_MISALIGNED;
    return NANOLOOM_OK;
}

int nanoloom_check_inputs(const struct nanoloom_program *program,
                          const void *const *inputs)
{
    int32_t given = nanoloom_given_count(program);
    if (given && !inputs)
        return NANOLOOM_NULL_POINTER;
    for (int32_t i = 0; i < given; i++) {
        int status = check(&program->inputs[i], inputs[i]);
        if (status)
            return status;
    }
    return NANOLOOM_OK;
}

int nanoloom_check_pointers(const struct nanoloom_program *program,
                            const void *const *inputs, void *const *outputs)
{
    int32_t made = nanoloom_made(program);
    if (made && !outputs)
        return NANOLOOM_NULL_POINTER;
    int wrong = nanoloom_check_inputs(program, inputs);
    if (wrong)
        return wrong;
    for (int32_t i = 0; i < made; i++) {
        int status = check(&program->outputs[i], outputs[i]);
        if (status)
            return status;
    }
    return NANOLOOM_OK;
}

const struct nanoloom_check *nanoloom_failed(const struct nanoloom_program *program,
                                             const void *workspace, int64_t *index)
{
    for (int32_t i = 0; i < program->check_count; i++) {
        const struct nanoloom_check *check = &program->checks[i];
        uint64_t word = *(const uint64_t *)((const char *)workspace + check->offset);
        if (word <= (uint64_t)check->high - (uint64_t)check->low)
            continue;
        int turned = check->low < 0 && (word & 1);
        uint64_t size = check->low < 0 ? word >> 1 : word;
        *index = (int64_t)(turned ? ~size : size);
        return check;
    }
    return NULL;
}
