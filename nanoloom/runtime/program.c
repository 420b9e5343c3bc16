/* Executes a program's table of steps.  With NANOLOOM_SINGLE_THREAD it asks nothing of any
 * system, and measures no time. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <stdatomic.h>
#include <stddef.h>
#ifndef NANOLOOM_SINGLE_THREAD
#include <errno.h>
#include <sched.h>
#endif

#include "clock.h"
#include "control.h"
#include "floating.h"
#include "slices.h"

enum {
    CACHE_LINE = 64,
    IN_USE = 1,
    /* A trip of fewer points, most of them multiply-adds, ends before other threads have
     * begun with their parts of it. */
    FEW_POINTS = 3 << 15
};

/* Whose a part of scratch memory was last, and whether it is in use. */
typedef _Atomic uintptr_t owner;

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
    return aligned((int64_t)sizeof(owner) * threads);
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

struct call {
    nanoloom_kernel kernel;
    void *const *buffers;
    char *scratch;
    int64_t scratch_bytes; /* of each part of it */
    owner *owners;         /* one a part */
    int64_t threads;       /* parts */
    int backward;          /* the last task first */
    const struct nanoloom_control *control;
    struct nanoloom_slices *slices; /* NULL where nobody asks */
    int32_t step;
};

/* An address that no other thread has. */
static uintptr_t own_number(void)
{
#ifdef NANOLOOM_SINGLE_THREAD
    return 0;
#else
    return (uintptr_t)&errno;
#endif
}

static void note(const struct call *call, int64_t begin)
{
    struct nanoloom_slices *slices = call->slices;
    int64_t place = atomic_fetch_add(&slices->count, 1);
    if (place < slices->room)
        slices->all[place] = (struct nanoloom_slice){(int64_t)own_number(), call->step, begin,
                                                     nanoloom_ticks()};
}

static void run_alone(void *argument, int64_t begin, int64_t end)
{
    const struct call *call = argument;
    if (nanoloom_stopped(call->control))
        return;
    int64_t started = call->slices ? nanoloom_ticks() : 0;
    uint64_t before = nanoloom_floating_enter();
    for (; call->backward && end - begin > 1; end--)
        call->kernel(call->buffers, end - 1, end, call->scratch);
    call->kernel(call->buffers, begin, end, call->scratch);
    nanoloom_floating_leave(before);
    if (call->slices)
        note(call, started);
}

#ifdef NANOLOOM_SINGLE_THREAD

static int64_t take(const struct call *call)
{
    (void)call;
    return 0;
}

static void give_back(const struct call *call, int64_t part)
{
    (void)call;
    (void)part;
}

#else

/* The part of scratch memory that is now this thread's: the one it had before, which its
 * caches may still hold, or any that is free. */
static int64_t take(const struct call *call)
{
    uintptr_t self = own_number();
    for (;; sched_yield())
        for (int any = 0; any < 2; any++)
            for (int64_t part = 0; part < call->threads; part++) {
                uintptr_t seen = atomic_load(&call->owners[part]);
                if ((any ? !(seen & IN_USE) : seen == self) &&
                    atomic_compare_exchange_strong(&call->owners[part], &seen,
                                                   self | IN_USE))
                    return part;
            }
}

static void give_back(const struct call *call, int64_t part)
{
    atomic_store(&call->owners[part], own_number());
}

#endif

static void run_tasks(void *argument, int64_t begin, int64_t end)
{
    struct call own = *(const struct call *)argument;
    int64_t part = take(&own);
    own.scratch += part * own.scratch_bytes;
    run_alone(&own, begin, end);
    give_back(&own, part);
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

/* One run under way. */
struct run {
    const struct nanoloom_program *program;
    void **pointers; /* of all buffers, as they are in this trip */
    struct call call; /* what is the same for all steps */
    nanoloom_parallel parallel;
    void *context;
    int64_t *nanoseconds; /* ticks until the run has ended */
    int64_t before; /* when the last step ended */
};

static void run_step(struct run *run, int32_t number)
{
    const struct nanoloom_step *step = &run->program->steps[number];
    struct call call = run->call;
    call.kernel = step->kernel;
    call.step = number;
    call.buffers = run->pointers + step->first_buffer;
    nanoloom_task task = step->scratch_bytes ? run_tasks : run_alone;
    if (run->parallel && step->tasks > 1)
        run->parallel(run->context, task, &call, step->tasks);
    else
        run_alone(&call, 0, step->tasks);
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
    int64_t part = take(&own.call);
    own.call.scratch += part * own.call.scratch_bytes;
    own.parallel = NULL;
    own.before = own.nanoseconds ? nanoloom_ticks() : 0;
    for (int64_t i = begin; i < end; i++)
        run_repeat(&own, all->first + (int32_t)i);
    give_back(&own.call, part);
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
    owner *owners = (owner *)owners_of(program, memory->workspace);
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
