/* A model as a program of its own: reads arrays, runs, writes arrays. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "arena.h"
#include "arguments.h"
#include "counted.h"
#include "cpus.h"
#include "given_sizes.h"
#include "growth.h"
#include "isa.h"
#include "npy.h"
#include "program.h"
#include "refusal.h"
#include "reports.h"
#include "results.h"
#include "tensors.h"
#include "threads.h"
#include "times.h"
#include "whole.h"

enum { CACHE_LINE = 64, SENTENCE = 512 };

/* Defined by the generated table of the executable. */
extern const struct nanoloom_identity nanoloom_identity;
extern const struct nanoloom_program nanoloom_program;
extern const struct nanoloom_sizes *const nanoloom_open_sizes; /* NULL where it has none */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *memory_for(size_t bytes, const char *what)
{
    void *memory;
    size_t whole = (bytes + CACHE_LINE) / CACHE_LINE * CACHE_LINE;
    if (posix_memalign(&memory, CACHE_LINE, whole))
        nanoloom_refuse(what, "no memory for %zu bytes", bytes);
    return memory;
}

/* What runs: a program, bound to its sizes, on its memory. */
struct job {
    const struct nanoloom_program *program;
    const void *const *inputs; /* of the files */
    void **outputs;
    struct nanoloom_member member; /* of its pool */
    int64_t threads;
    struct nanoloom_memory memory;
    struct nanoloom_counted counted;
    struct nanoloom_growth growth; /* of a program with sizes */
};

/* Memory for each tensor: the inputs', read from their files, or the outputs'. */
static void **arrays_of(const struct nanoloom_tensor *tensors, int32_t count, char **files)
{
    void **arrays = memory_for(sizeof(void *) * (size_t)count, "arrays");
    for (int32_t i = 0; i < count; i++) {
        size_t bytes = (size_t)nanoloom_tensor_bytes(&tensors[i]);
        arrays[i] = memory_for(bytes, tensors[i].name);
        if (files)
            nanoloom_npy_read(files[i], &tensors[i], arrays[i]);
    }
    return arrays;
}

static void check_inputs(const struct nanoloom_arguments *asked)
{
    int32_t wanted = nanoloom_given_count(&nanoloom_program);
    if (asked->input_count < wanted)
        nanoloom_refuse(NULL,
                        "%d of %d inputs given, input %s is missing; --help shows the usage",
                        asked->input_count, wanted,
                        nanoloom_program.inputs[asked->input_count].name);
    if (asked->input_count > wanted)
        nanoloom_refuse(asked->inputs[wanted], "the model has %d input%s only", wanted,
                        wanted == 1 ? "" : "s");
}

/* One run; steps: receives the times of its steps, unless it is NULL. */
static void run(const struct job *job, int64_t *steps)
{
    int64_t index;
    if (!nanoloom_run(job->program, &job->memory, nanoloom_pool_run,
                      (void *)(uintptr_t)&job->member, steps))
        return;
    const struct nanoloom_check *check =
        nanoloom_failed(job->program, job->memory.workspace, &index);
    if (!*check->what)
        nanoloom_refuse(NULL, "%s", check->where);
    nanoloom_refuse(check->where, "%s %" PRId64 " is outside %" PRId64 "..%" PRId64,
                    check->what, index, check->low, check->high);
}

/* All runs, and what is to be said of their times. */
static void run_all(const struct nanoloom_arguments *asked, struct job *job)
{
    struct nanoloom_times times;
    int runs = asked->repeat ? asked->repeat : 1, profile = asked->profile || asked->trace;
    nanoloom_times_prepare(&times, job->program, runs, profile, job->threads);
    for (int64_t first = now(); times.count < runs;) {
        job->memory.slices = nanoloom_times_slices(&times);
        int64_t before = now();
        run(job, nanoloom_times_row(&times));
        nanoloom_times_add(&times, before - first, now() - before);
    }
    if (asked->trace)
        nanoloom_times_trace(&times, asked->trace, nanoloom_identity.model);
    if (asked->repeat)
        nanoloom_times_report(&times);
    if (asked->profile)
        nanoloom_times_report_layers(&times);
}

static void give(const struct nanoloom_results *results,
                 const struct nanoloom_tensor *tensors, void *const *outputs)
{
    for (int32_t i = 0; i < results->count; i++)
        if (!results->paths[i])
            nanoloom_report_values(&tensors[i], outputs[i]);
    nanoloom_results_write(results, tensors, outputs);
}

static void check_cpu(void)
{
    char lacks[SENTENCE];
    if (nanoloom_identity.refusal)
        nanoloom_refuse(NULL, "%s", nanoloom_identity.refusal);
    const char *wish = getenv("NANOLOOM_ISA");
    if (wish && *wish && !nanoloom_is_named(&nanoloom_identity, wish))
        nanoloom_refuse(NULL, "NANOLOOM_ISA is %s: the program is compiled for %s", wish,
                        nanoloom_identity.target);
    if (nanoloom_cpu_lacks(&nanoloom_identity, lacks, sizeof lacks))
        nanoloom_refuse(NULL, "%s", lacks);
}

static void check_file(void)
{
    int64_t wanted, bytes = nanoloom_file_ends(&wanted);
    if (bytes)
        nanoloom_refuse(NULL,
                        "the program's file ends at %" PRId64 " of %" PRId64
                        " bytes: copy it again",
                        bytes, wanted);
}

/* Binds the program to sizes and gives it memory. */
static void prepare(struct job *job)
{
    job->program = nanoloom_bound_to(&nanoloom_program, nanoloom_open_sizes,
                                     job->growth.dims);
    const struct nanoloom_program *program = job->program;
    int64_t bytes = nanoloom_workspace_bytes(program, job->threads);
    void *workspace = nanoloom_arena_create(bytes);
    if (!workspace)
        nanoloom_refuse(NULL, "no memory for a workspace of %" PRId64 " bytes", bytes);
    job->outputs = arrays_of(program->outputs, nanoloom_made(program), NULL);
    job->memory = (struct nanoloom_memory){
        .parameters = program->parameters,
        .inputs = program->room_count
                      ? nanoloom_growth_inputs(&job->growth, program, job->inputs)
                      : job->inputs,
        .outputs = nanoloom_counted_begin(&job->counted, program, job->outputs),
        .workspace = workspace,
        .threads = job->threads,
    };
}

static void release(struct job *job)
{
    for (int32_t i = 0; i < nanoloom_made(job->program); i++)
        free(job->outputs[i]);
    free(job->outputs);
    nanoloom_arena_destroy(job->memory.workspace,
                           nanoloom_workspace_bytes(job->program, job->threads));
}

/* Runs until there is room for what only the data say; all that was wrong until then comes
 * of it. */
static void settle(struct job *job)
{
    struct nanoloom_growth *growth = &job->growth;
    enum nanoloom_fit fit = NANOLOOM_GROWS;
    for (int runs = 0; runs < NANOLOOM_MOST_RUNS && fit == NANOLOOM_GROWS; runs++) {
        nanoloom_run(job->program, &job->memory, nanoloom_pool_run, &job->member, NULL);
        fit = nanoloom_growth_after(growth, nanoloom_open_sizes, job->counted.numbers);
        if (fit == NANOLOOM_GROWS) {
            release(job);
            nanoloom_growth_take(growth);
            prepare(job);
        }
    }
    if (fit == NANOLOOM_BEYOND)
        nanoloom_refuse(nanoloom_growth_where(growth, &nanoloom_program),
                        "the data want %" PRId64 " elements", growth->wanted);
    if (fit == NANOLOOM_GROWS)
        nanoloom_refuse(NULL, "sizes that depend on data do not settle");
}

static void work(const struct nanoloom_arguments *asked)
{
    check_file();
    check_inputs(asked);
    struct nanoloom_results results =
        nanoloom_results_at(asked->outputs, asked->output_count, nanoloom_program.outputs,
                            nanoloom_made(&nanoloom_program), asked->trace);
    check_cpu();
    if (nanoloom_program.needs_tiles && nanoloom_request_tiles())
        nanoloom_refuse(NULL, "the system grants no AMX tile registers");
    const struct nanoloom_sizes *sizes = nanoloom_open_sizes;
    struct job job = {.program = &nanoloom_program};
    if (sizes && !nanoloom_growth_prepare(&job.growth, sizes))
        nanoloom_refuse(NULL, "no memory for the sizes");
    if (sizes)
        nanoloom_given_dims(sizes, asked->inputs, job.growth.dims);
    const struct nanoloom_program *first =
        nanoloom_bound_to(&nanoloom_program, sizes, job.growth.dims);
    job.inputs = (const void *const *)arrays_of(
        first->inputs, nanoloom_given_count(first), asked->inputs);
    if (!nanoloom_counted_prepare(&job.counted, first))
        nanoloom_refuse(NULL, "no memory for the shapes of the outputs");
    struct nanoloom_pool *pool = nanoloom_pool_create(
        asked->threads ? asked->threads : nanoloom_default_threads());
    if (!pool)
        nanoloom_refuse(NULL, "no memory for a thread pool");
    job.threads = nanoloom_pool_threads(pool);
    job.member = (struct nanoloom_member){pool, job.threads};
    prepare(&job);
    if (job.program->room_count)
        settle(&job);
    run_all(asked, &job);
    nanoloom_counted_end(&job.counted, job.program);
    give(&results, job.counted.tensors, job.outputs);
}

int main(int count, char **words)
{
    nanoloom_name_program(count ? words[0] : NULL);
    struct nanoloom_arguments asked = nanoloom_arguments_read(count, words);
    if (asked.help)
        nanoloom_report_usage(&nanoloom_identity, &nanoloom_program, nanoloom_open_sizes);
    else if (asked.info)
        nanoloom_report_identity(&nanoloom_identity, &nanoloom_program, nanoloom_open_sizes);
    else if (asked.shape)
        nanoloom_report_shapes(&nanoloom_program, nanoloom_open_sizes);
    else
        work(&asked);
    if (fflush(stdout) || ferror(stdout)) /* now, or at a line before */
        nanoloom_refuse("stdout", "cannot be written to");
    return EXIT_SUCCESS;
}
