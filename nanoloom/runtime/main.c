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
#include "isa.h"
#include "npy.h"
#include "program.h"
#include "refusal.h"
#include "reports.h"
#include "results.h"
#include "tensors.h"
#include "threads.h"
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
    int32_t wanted = nanoloom_program.input_count;
    if (asked->input_count < wanted)
        nanoloom_refuse(NULL,
                        "%d of %d inputs given, input %s is missing; --help shows the usage",
                        asked->input_count, wanted,
                        nanoloom_program.inputs[asked->input_count].name);
    if (asked->input_count > wanted)
        nanoloom_refuse(asked->inputs[wanted], "the model has %d input%s only", wanted,
                        wanted == 1 ? "" : "s");
}

/* One run; its time, and those of its steps added to `steps` unless that is NULL. */
static int64_t run(const struct nanoloom_program *program,
                   const struct nanoloom_memory *memory, struct nanoloom_pool *pool,
                   int64_t *step_times, int64_t *steps)
{
    int64_t before = now(), index;
    if (nanoloom_run(program, memory, nanoloom_pool_run, pool, step_times)) {
        const struct nanoloom_check *check =
            nanoloom_failed(program, memory->workspace, &index);
        if (!*check->what)
            nanoloom_refuse(NULL, "%s", check->where);
        nanoloom_refuse(check->where, "%s %" PRId64 " is outside %" PRId64 "..%" PRId64,
                        check->what, index, check->low, check->high);
    }
    int64_t after = now();
    for (int32_t i = 0; steps && i < program->step_count; i++)
        steps[i] += step_times[i];
    return after - before;
}

/* All runs, and what is to be said of their times. */
static void run_all(const struct nanoloom_arguments *asked,
                    const struct nanoloom_program *program,
                    const struct nanoloom_memory *memory, struct nanoloom_pool *pool)
{
    int runs = asked->repeat ? asked->repeat : 1;
    size_t steps = (size_t)program->step_count + 1;
    int64_t *times = memory_for(sizeof *times * (size_t)runs, "times");
    int64_t *step_times = calloc(2 * steps, sizeof *step_times);
    if (!step_times)
        nanoloom_refuse("--profile", "no memory");
    int64_t *sums = step_times + steps;
    for (int i = 0; i < runs; i++)
        times[i] = run(program, memory, pool, asked->profile ? step_times : NULL,
                       asked->profile ? sums : NULL);
    if (asked->repeat)
        nanoloom_report_times(times, runs);
    if (asked->profile)
        nanoloom_report_layers(program, sums, runs);
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

static void work(const struct nanoloom_arguments *asked)
{
    check_file();
    check_inputs(asked);
    struct nanoloom_results results =
        nanoloom_results_at(asked->outputs, asked->output_count, nanoloom_program.outputs,
                            nanoloom_made(&nanoloom_program));
    check_cpu();
    if (nanoloom_program.needs_tiles && nanoloom_request_tiles())
        nanoloom_refuse(NULL, "the system grants no AMX tile registers");
    const struct nanoloom_program *program =
        nanoloom_given(&nanoloom_program, nanoloom_open_sizes, asked->inputs);
    void **inputs =
        arrays_of(program->inputs, program->input_count, asked->inputs);
    void **given = arrays_of(program->outputs, nanoloom_made(program), NULL);
    struct nanoloom_counted counted;
    if (!nanoloom_counted_prepare(&counted, program))
        nanoloom_refuse(NULL, "no memory for the shapes of the outputs");
    void *const *outputs = nanoloom_counted_begin(&counted, program, given);
    int wanted = asked->threads ? asked->threads : nanoloom_default_threads();
    struct nanoloom_pool *pool = nanoloom_pool_create(wanted);
    int64_t threads = pool ? nanoloom_pool_threads(pool) : 0;
    int64_t bytes = nanoloom_workspace_bytes(program, threads);
    void *workspace = pool ? nanoloom_arena_create(bytes) : NULL;
    if (!workspace)
        nanoloom_refuse(NULL, "no memory for a workspace of %" PRId64 " bytes", bytes);
    struct nanoloom_memory memory = {program->parameters, (const void *const *)inputs,
                                     outputs, workspace, threads};
    run_all(asked, program, &memory, pool);
    nanoloom_counted_end(&counted, program);
    give(&results, counted.tensors, outputs);
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
    if (fflush(stdout))
        nanoloom_refuse("stdout", "cannot be written to");
    return EXIT_SUCCESS;
}
