/* Executes a program's table of steps.  With NANOLOOM_SINGLE_THREAD it asks nothing of any
 * system, and measures no time. */
#include "program.h"

#include <stddef.h>

#include "clock.h"
#include "control.h"
#include "kernel_call.h"
#include "slices.h"

enum {
    CACHE_LINE = 64,
    /* A trip of fewer points, most of them multiply-adds, ends before other threads have
     * begun with their parts of it. */
    FEW_POINTS = 3 << 15
};

static int64_t aligned(int64_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static int64_t pointer_bytes(const struct nanoloom_program *program)
{
    return aligned((int64_t)sizeof(void *) * program->buffer_count);
}

static int64_t owner_bytes(int64_t threads)
{
    return aligned((int64_t)sizeof(nanoloom_owner) * threads);
}

int64_t nanoloom_workspace_bytes(const struct nanoloom_program *program, int64_t threads)
{
    int64_t together = threads * program->scratch_bytes, alone = program->alone_bytes;
    return aligned(program->arena_bytes) + pointer_bytes(program) + owner_bytes(threads) +
           (together > alone ? together : alone);
}

static char *owners_of(const struct nanoloom_program *program, void *workspace)
{
    return (char *)workspace + aligned(program->arena_bytes) + pointer_bytes(program);
}

void nanoloom_workspace_prepare(const struct nanoloom_program *program, void *workspace,
                                int64_t threads)
{
    char *owners = owners_of(program, workspace);
    for (int64_t i = 0; i < owner_bytes(threads); i++)
        owners[i] = 0;
}

void *nanoloom_resolve(const struct nanoloom_program *program,
                       const struct nanoloom_buffer *buffer,
                       const struct nanoloom_memory *memory)
{
    /* Kernels take all operands alike as void *; they write none of the const ones. */
    char *base;
    switch (buffer->space) {
    case NANOLOOM_PARAMETERS:
        base = (char *)(uintptr_t)memory->parameters;
        break;
    case NANOLOOM_INPUT:
        base = (char *)(uintptr_t)memory->inputs[buffer->index];
        break;
    case NANOLOOM_OUTPUT:
        base = memory->outputs[buffer->index];
        break;
    case NANOLOOM_SIZES:
        base = (char *)(uintptr_t)program->words;
        break;
    default:
        base = memory->workspace;
        break;
    }
    return base + buffer->offset;
}

/* One run under way. */
struct run {
    const struct nanoloom_program *program;
    void **pointers; /* of all buffers, as they are in this trip */
    struct nanoloom_call call; /* what is the same for all steps */
    nanoloom_parallel parallel;
    void *context;
    int64_t *nanoseconds; /* ticks until the run has ended */
    int64_t before; /* when the last step ended */
};

static void run_step(struct run *run, int32_t number)
{
    const struct nanoloom_step *step = &run->program->steps[number];
    struct nanoloom_call call = run->call;
    call.kernel = step->kernel;
    call.step = number;
    call.buffers = run->pointers + step->first_buffer;
    nanoloom_task task = step->scratch_bytes ? nanoloom_call_tasks : nanoloom_call_alone;
    if (run->parallel && step->tasks > 1)
        run->parallel(run->context, task, &call, step->tasks);
    else
        nanoloom_call_alone(&call, 0, step->tasks);
    if (run->nanoseconds) {
        int64_t after = nanoloom_ticks();
        run->nanoseconds[number] += after - run->before;
        run->before = after;
    }
}

static void run_steps(struct run *run, int32_t step, int32_t end, int32_t next);

static int is_short(const struct nanoloom_repeat *repeat)
{
    return repeat->points && repeat->points < FEW_POINTS;
}

static void run_repeat(struct run *run, int32_t number)
{
    const struct nanoloom_program *program = run->program;
    const struct nanoloom_repeat *repeat = &program->repeats[number];
    int32_t first = repeat->first_step;
    nanoloom_parallel parallel = run->parallel;
    if (is_short(repeat))
        run->parallel = NULL;
    /* There and back: an odd trip begins with the weights that the one before it read
     * last.  Of what outweighs a cache it finds much; in the same order it finds nothing. */
    int backward = run->call.backward;
    int64_t trip = 0, most = nanoloom_most_trips(repeat, run->pointers);
    for (; trip < most && nanoloom_goes_on(repeat, run->pointers); trip++) {
        if (nanoloom_stopped(run->call.control)) /* what was left out may say: for ever */
            break;
        run->call.backward = trip & 1;
        run_steps(run, first, first + repeat->step_count, number + 1);
        nanoloom_move(repeat, program->moves, run->pointers, trip);
    }
    run->call.backward = backward;
    nanoloom_move_back(repeat, program->moves, run->pointers, trip);
    run->parallel = parallel;
}

/* Repeats from number `first` on, one a task: each runs in one thread from its first trip
 * to its last, and waits for nobody in between. */
struct beside {
    const struct run *run;
    int32_t first;
};

static void run_beside(void *argument, int64_t begin, int64_t end)
{
    const struct beside *all = argument;
    struct run own = *all->run;
    int64_t part = nanoloom_scratch_take(&own.call);
    own.call.scratch += part * own.call.scratch_bytes;
    own.parallel = NULL;
    own.before = own.nanoseconds ? nanoloom_ticks() : 0;
    for (int64_t i = begin; i < end; i++)
        run_repeat(&own, all->first + (int32_t)i);
    nanoloom_scratch_return(&own.call, part);
}

int32_t nanoloom_beside(const struct nanoloom_program *program, int32_t repeat)
{
    int32_t count = 1;
    while (repeat + count < program->repeat_count && program->repeats[repeat + count].beside)
        count++;
    return count;
}

/* All from repeat number `next` on that run beside each other; the step behind them. */
static int32_t run_repeats(struct run *run, int32_t next, int32_t count)
{
    /* With more threads, large steps one after the other in all of them are faster. */
    int few = run->call.threads < 2 * (int64_t)count;
    few = few || is_short(&run->program->repeats[next]);
    struct beside all = {run, next};
    if (run->parallel && count > 1 && few) {
        run->parallel(run->context, run_beside, &all, count);
        run->before = run->nanoseconds ? nanoloom_ticks() : 0;
    } else {
        for (int32_t i = 0; i < count; i++)
            run_repeat(run, next + i);
    }
    const struct nanoloom_repeat *last = &run->program->repeats[next + count - 1];
    return last->first_step + last->step_count;
}

/* The steps `step` ... `end` - 1; `next` is the first repeat that may begin there. */
static void run_steps(struct run *run, int32_t step, int32_t end, int32_t next)
{
    const struct nanoloom_program *program = run->program;
    while (step < end && !nanoloom_stopped(run->call.control)) {
        while (next < program->repeat_count && program->repeats[next].first_step < step)
            next++;
        if (next == program->repeat_count || program->repeats[next].first_step > step) {
            run_step(run, step++);
            continue;
        }
        int32_t count = nanoloom_beside(program, next);
        step = run_repeats(run, next, count);
        next += count;
    }
}

int nanoloom_run(const struct nanoloom_program *program,
                 const struct nanoloom_memory *memory, nanoloom_parallel parallel,
                 void *context, int64_t *nanoseconds)
{
    void **pointers =
        (void **)((char *)memory->workspace + aligned(program->arena_bytes));
    nanoloom_owner *owners = (nanoloom_owner *)owners_of(program, memory->workspace);
    char *scratch = (char *)owners + owner_bytes(memory->threads);
    for (int32_t i = 0; i < program->buffer_count; i++)
        pointers[i] = nanoloom_resolve(program, &program->buffers[i], memory);
    for (int32_t i = 0; nanoseconds && i < program->step_count; i++)
        nanoseconds[i] = 0;
    if (nanoseconds)
        nanoloom_prepare_ticks();
    struct nanoloom_slices *slices = nanoseconds ? memory->slices : NULL;
    if (slices)
        atomic_store(&slices->count, 0);
    struct run run = {
        .program = program,
        .pointers = pointers,
        .call = {NULL, NULL, scratch, program->scratch_bytes, owners, memory->threads, 0,
                 memory->control, slices, 0},
        .parallel = parallel,
        .context = context,
        .nanoseconds = nanoseconds,
        .before = nanoseconds ? nanoloom_ticks() : 0,
    };
    int64_t began = run.before;
    run_steps(&run, 0, program->step_count, 0);
    for (int32_t i = 0; nanoseconds && i < program->step_count; i++)
        nanoseconds[i] = nanoloom_nanoseconds(nanoseconds[i]);
    for (int64_t i = 0; slices && i < nanoloom_slices_kept(slices); i++) {
        struct nanoloom_slice *each = &slices->all[i];
        each->begin = nanoloom_nanoseconds(each->begin - began);
        each->end = nanoloom_nanoseconds(each->end - began);
    }
    int64_t index;
    int stopped = nanoloom_stopped(memory->control);
    if (stopped)
        return stopped;
    int failed = nanoloom_failed(program, memory->workspace, &index) != NULL;
    return failed ? NANOLOOM_OUT_OF_RANGE : NANOLOOM_OK;
}
