/* A program of one row on many: its steps run for some rows together. */
#include "rows.h"

#include "control.h"
#include "floating.h"

enum {
    CACHE_LINE = 64,
    CACHE_BYTES = 256 << 10, /* of a core alone: what most have, or half of it */
    MOST_TOGETHER = 64       /* of more, what is read once is nothing beside the rest */
};

static int64_t aligned(int64_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static int64_t bytes_of(const struct nanoloom_tensor *tensor)
{
    int64_t bytes = nanoloom_element_bytes(tensor->element);
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        bytes *= tensor->shape[axis];
    return bytes;
}

/* Of one row: its arena and its pointers. */
static int64_t own_bytes(const struct nanoloom_program *program)
{
    return aligned(program->arena_bytes) +
           aligned((int64_t)sizeof(void *) * program->buffer_count);
}

int64_t nanoloom_rows_together(const struct nanoloom_program *program)
{
    int64_t bytes = own_bytes(program);
    for (int32_t i = 0; i < program->input_count; i++)
        bytes += bytes_of(&program->inputs[i]);
    for (int32_t i = 0; i < program->output_count; i++)
        bytes += bytes_of(&program->outputs[i]);
    int64_t held = bytes ? CACHE_BYTES / bytes : MOST_TOGETHER;
    if (held < 2 || program->repeat_count) /* how many trips it makes each row says */
        return 1;
    return held < MOST_TOGETHER ? held : MOST_TOGETHER;
}

int64_t nanoloom_rows_bytes(const struct nanoloom_program *program, int64_t together)
{
    if (together == 1)
        return nanoloom_workspace_bytes(program, 1);
    int64_t scratch = program->scratch_bytes, alone = program->alone_bytes;
    return together * own_bytes(program) + (scratch > alone ? scratch : alone);
}

/* Of the row that is `row` behind the one in `memory`: what each buffer points to. */
static void resolve_row(const struct nanoloom_program *program,
                        const struct nanoloom_memory *memory, int64_t row)
{
    struct nanoloom_memory own = *memory;
    own.workspace = (char *)memory->workspace + row * own_bytes(program);
    void **pointers = (void **)((char *)own.workspace + aligned(program->arena_bytes));
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const struct nanoloom_buffer *buffer = &program->buffers[i];
        int64_t behind = 0;
        if (buffer->space == NANOLOOM_INPUT)
            behind = row * bytes_of(&program->inputs[buffer->index]);
        if (buffer->space == NANOLOOM_OUTPUT)
            behind = row * bytes_of(&program->outputs[buffer->index]);
        pointers[i] = (char *)nanoloom_resolve(program, buffer, &own) + behind;
    }
}

static void run_step(const struct nanoloom_program *program, const struct nanoloom_step *step,
                     char *workspace, int64_t rows, char *scratch)
{
    int64_t own = own_bytes(program), arena = aligned(program->arena_bytes);
    for (int64_t task = 0; task < step->tasks; task++)
        for (int64_t row = 0; row < rows; row++) {
            void *const *pointers = (void *const *)(workspace + row * own + arena);
            step->kernel(pointers + step->first_buffer, task, task + 1, scratch);
        }
}

/* All steps for so many rows; no program with repeats. */
static int run_together(const struct nanoloom_program *program,
                        const struct nanoloom_memory *memory, int64_t rows, int64_t together)
{
    char *workspace = memory->workspace, *scratch = workspace + together * own_bytes(program);
    int status = NANOLOOM_OK;
    for (int64_t row = 0; row < rows; row++)
        resolve_row(program, memory, row);
    uint64_t before = nanoloom_floating_enter();
    for (int32_t i = 0; i < program->step_count && !status; i++) {
        run_step(program, &program->steps[i], workspace, rows, scratch);
        status = nanoloom_stopped(memory->control);
    }
    nanoloom_floating_leave(before);
    int64_t index;
    for (int64_t row = 0; row < rows && !status; row++)
        if (nanoloom_failed(program, workspace + row * own_bytes(program), &index))
            status = NANOLOOM_OUT_OF_RANGE;
    return status;
}

/* Has the pointers in a call's memory be those of the row so many rows further on. */
static void go_on(const struct nanoloom_call *call, int64_t rows)
{
    const char **read = (const char **)(uintptr_t)call->memory->inputs;
    char **written = (char **)(uintptr_t)call->memory->outputs;
    for (int32_t i = 0; i < call->program->input_count; i++)
        read[i] += rows * bytes_of(&call->program->inputs[i]);
    for (int32_t i = 0; i < call->program->output_count; i++)
        written[i] += rows * bytes_of(&call->program->outputs[i]);
}

int nanoloom_run_rows(const struct nanoloom_call *call, int64_t rows, int64_t together)
{
    int status = call->enter(call->context, call->memory->control);
    if (status)
        return status;
    for (int64_t done = 0, now; done < rows && !status; done += now) {
        now = rows - done < together ? rows - done : together;
        status = together == 1
                     ? nanoloom_run(call->program, call->memory, NULL, NULL, NULL)
                     : run_together(call->program, call->memory, now, together);
        go_on(call, now);
    }
    call->leave(call->context);
    return status;
}
