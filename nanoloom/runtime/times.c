/* The times of an executable's runs and of their steps: reports, and a timeline. */
#include "times.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "refusal.h"

enum {
    MOST_ROWS = 1000, /* of which more would tell no more of a median */
    CONTROL = 0x20    /* characters below it are no text of JSON */
};

static void *room_for(size_t count)
{
    void *room = calloc(count + 1, sizeof(int64_t));
    if (!room)
        nanoloom_refuse("--repeat", "no memory for the times");
    return room;
}

void nanoloom_times_prepare(struct nanoloom_times *times,
                            const struct nanoloom_program *program, int runs, int profile)
{
    int rows = runs < MOST_ROWS ? runs : MOST_ROWS;
    *times = (struct nanoloom_times){.program = program, .rows = rows};
    times->runs = room_for((size_t)runs);
    if (!profile)
        return;
    times->begins = room_for((size_t)rows);
    times->steps = room_for((size_t)rows * (size_t)program->step_count);
}

int64_t *nanoloom_times_row(const struct nanoloom_times *times)
{
    int row = times->count % times->rows;
    return times->steps ? times->steps + (int64_t)row * times->program->step_count : NULL;
}

void nanoloom_times_add(struct nanoloom_times *times, int64_t begin, int64_t nanoseconds)
{
    if (times->begins)
        times->begins[times->count % times->rows] = begin;
    times->runs[times->count++] = nanoseconds;
}

static double milliseconds(double nanoseconds)
{
    return nanoseconds / 1e6;
}

/* Of milliseconds: below a tenth all digits of nanoseconds, as three would be few. */
static int decimals(double nanoseconds)
{
    return nanoseconds < 1e5 ? 6 : 3;
}

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Between two of `count` sorted numbers, as numpy.quantile. */
static double quantile(const int64_t *sorted, int count, double part)
{
    double place = part * (count - 1);
    int at = (int)place;
    double rest = place - at;
    return (double)sorted[at] + (rest > 0 ? rest * (double)(sorted[at + 1] - sorted[at]) : 0);
}

void nanoloom_times_report(struct nanoloom_times *times)
{
    int runs = times->count;
    qsort(times->runs, (size_t)runs, sizeof *times->runs, by_size);
    double median = quantile(times->runs, runs, 0.5), least = (double)times->runs[0];
    printf("%d run%s: median %.*f ms, least %.*f ms\n", runs, runs == 1 ? "" : "s",
           decimals(median), milliseconds(median), decimals(least), milliseconds(least));
}

static int rows_of(const struct nanoloom_times *times)
{
    return times->count < times->rows ? times->count : times->rows;
}

/* The sums of the steps begin ... end - 1 in each run, sorted. */
static void sum_steps(const struct nanoloom_times *times, int32_t begin, int32_t end,
                      int64_t *sums)
{
    int rows = rows_of(times);
    for (int row = 0; row < rows; row++) {
        const int64_t *steps = times->steps + (int64_t)row * times->program->step_count;
        sums[row] = 0;
        for (int32_t i = begin; i < end; i++)
            sums[row] += steps[i];
    }
    qsort(sums, (size_t)rows, sizeof *sums, by_size);
}

static void print_layer(const int64_t *sums, int rows, double whole, const char *name)
{
    double median = quantile(sums, rows, 0.5);
    double spread = quantile(sums, rows, 0.9) - quantile(sums, rows, 0.1);
    printf("%10.*f  %5.1f  %5.1f  %s\n", decimals(median), milliseconds(median),
           median > 0 ? 100 * spread / median : 0.0, whole > 0 ? 100 * median / whole : 0.0,
           name);
}

void nanoloom_times_report_layers(const struct nanoloom_times *times)
{
    const struct nanoloom_program *program = times->program;
    int rows = rows_of(times);
    int64_t *sums = room_for((size_t)rows);
    sum_steps(times, 0, program->step_count, sums);
    double whole = quantile(sums, rows, 0.5);
    printf("        ms  spread%%     %%  layer\n");
    for (int32_t begin = 0, end; begin < program->step_count; begin = end) {
        const char *name = program->steps[begin].name;
        for (end = begin + 1; end < program->step_count; end++)
            if (strcmp(program->steps[end].name, name) != 0)
                break;
        sum_steps(times, begin, end, sums);
        if (sums[rows - 1]) /* else of a repeat without a trip */
            print_layer(sums, rows, whole, name);
    }
    sum_steps(times, 0, program->step_count, sums);
    print_layer(sums, rows, whole, "all layers");
    free(sums);
}

static void print_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < CONTROL)
            fprintf(file, "\\u%04x", c);
        else
            fprintf(file, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
}

/* One slice, in microseconds; step: its number, -1 for none. */
static void print_slice(FILE *file, const char *name, int64_t begin, int64_t duration,
                        int32_t step)
{
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"");
    print_text(file, name);
    fprintf(file, "\",\"ts\":%.3f,\"dur\":%.3f", (double)begin / 1e3, (double)duration / 1e3);
    if (step >= 0)
        fprintf(file, ",\"args\":{\"step\":%d}", step);
    fprintf(file, "}");
}

static void print_run(FILE *file, const struct nanoloom_times *times, int run)
{
    const struct nanoloom_program *program = times->program;
    int row = run % times->rows;
    const int64_t *steps = times->steps + (int64_t)row * program->step_count;
    int64_t at = times->begins[row], whole = 0;
    char name[32];
    snprintf(name, sizeof name, "run %d", run);
    for (int32_t i = 0; i < program->step_count; i++)
        whole += steps[i];
    print_slice(file, name, at, whole, -1);
    for (int32_t i = 0; i < program->step_count; at += steps[i++])
        print_slice(file, program->steps[i].name, at, steps[i], i);
}

void nanoloom_times_trace(const struct nanoloom_times *times, const char *path,
                          const char *model, int64_t threads)
{
    FILE *file = fopen(path, "w");
    if (!file)
        nanoloom_refuse(path, "cannot be written to: %s", strerror(errno));
    fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                  "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"");
    print_text(file, model);
    fprintf(file, "\"}},\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,"
                  "\"args\":{\"name\":\"steps, %" PRId64 " threads\"}}", threads);
    for (int run = times->count - rows_of(times); run < times->count; run++)
        print_run(file, times, run);
    fprintf(file, "]}\n");
    int wrong = ferror(file);
    if (fclose(file) || wrong)
        nanoloom_refuse(path, "cannot be written to: %s", strerror(errno));
}
