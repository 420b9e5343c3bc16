/* Runs a model on threads whose stacks are measured; loaded by test_small_stacks.py. */
#define _GNU_SOURCE
#include "types.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define PUBLIC __attribute__((visibility("default")))

enum { STACK_BYTES = 1 << 20, UNTOUCHED = 0xA5 };

/* A stack, and where on it the work began. */
struct measured {
    unsigned char *lowest;
    unsigned char *begin;
    void *(*work)(void *);
    void *context;
};

static void *begin(void *context)
{
    struct measured *stack = context;
    stack->begin = __builtin_frame_address(0);
    return stack->work(stack->context);
}

static pthread_t start(struct measured *stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    stack->lowest = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(stack->lowest, UNTOUCHED, STACK_BYTES);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack->lowest, STACK_BYTES);
    pthread_create(&thread, &attributes, begin, stack);
    pthread_attr_destroy(&attributes);
    return thread;
}

/* Waits for the thread; how many bytes of its stack were written below the beginning. */
static int64_t depth(pthread_t thread, struct measured *stack)
{
    pthread_join(thread, NULL);
    unsigned char *lowest = stack->lowest;
    while (lowest < stack->begin && *lowest == UNTOUCHED)
        lowest++;
    munmap(stack->lowest, STACK_BYTES);
    return stack->begin - lowest;
}

struct half {
    nanoloom_task task;
    void *argument;
    int64_t end;
};

static void *first_half(void *context)
{
    struct half *half = context;
    half->task(half->argument, 0, half->end);
    return NULL;
}

/* A nanoloom_parallel: half of the tasks on another thread; *context is the most depth. */
PUBLIC void on_two_stacks(void *context, nanoloom_task task, void *argument, int64_t tasks)
{
    struct half half = {task, argument, tasks / 2};
    struct measured stack = {.work = first_half, .context = &half};
    pthread_t thread = start(&stack);
    task(argument, half.end, tasks);
    int64_t found = depth(thread, &stack), *most = context;
    if (found > *most)
        *most = found;
}

struct run {
    int (*run)(void *, const void *const *, void *const *);
    void *handle;
    const void *const *inputs;
    void *const *outputs;
    int status;
};

static void *run(void *context)
{
    struct run *run = context;
    run->status = run->run(run->handle, run->inputs, run->outputs);
    return NULL;
}

/* Runs a handle; how deep the stack of its thread became, -1 if the run failed. */
PUBLIC int64_t depth_of_run(int (*function)(void *, const void *const *, void *const *),
                            void *handle, const void *const *inputs, void *const *outputs)
{
    struct run given = {function, handle, inputs, outputs, -1};
    struct measured stack = {.work = run, .context = &given};
    int64_t found = depth(start(&stack), &stack);
    return given.status ? -1 : found;
}
