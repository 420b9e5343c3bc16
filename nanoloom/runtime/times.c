/* The times of an executable's runs and of their steps: reports, and a timeline. */
#include "times.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "refusal.h"
#include "threads.h"

enum {
    MOST_ROWS = 1000, /* of which more would tell no more of a median */
    MOST_SLICES = 1 << 14, /* of a run: half a megabyte, untouched where there are fewer */
    FIRST_LANE = 2, /* of a timeline, of a thread; in front of it that of the steps */
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
                            const struct nanoloom_program *program, int runs, int profile,
                            int64_t threads)
{
    int rows = runs < MOST_ROWS ? runs : MOST_ROWS;
    *times = (struct nanoloom_times){.program = program, .rows = rows, .threads = threads};
    times->runs = room_for((size_t)runs);
    if (!profile)
        return;
    times->begins = room_for((size_t)rows);
    times->steps = room_for((size_t)rows * (size_t)program->step_count);
    size_t words = sizeof(struct nanoloom_slice) / sizeof(int64_t);
    for (int i = 0; threads > 1 && i < runs && i < NANOLOOM_WATCHED; i++)
        times->watched[i] = (struct nanoloom_slices){
            .all = room_for(MOST_SLICES * words), .room = MOST_SLICES};
}

struct nanoloom_slices *nanoloom_times_slices(struct nanoloom_times *times)
{
    struct nanoloom_slices *own = &times->watched[times->count % NANOLOOM_WATCHED];
    return own->all ? own : NULL;
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

/* Of the threads' time in these steps, in the last runs, the part in which they have none
 * of their tasks; -1 where it is not known. */
static double waiting(struct nanoloom_times *times, int32_t begin, int32_t end)
{
    int64_t busy = 0, whole = 0;
    int first = times->count < NANOLOOM_WATCHED ? 0 : times->count - NANOLOOM_WATCHED;
    for (int run = first; run < times->count; run++) {
        struct nanoloom_slices *slices = &times->watched[run % NANOLOOM_WATCHED];
        int64_t kept = nanoloom_slices_kept(slices);
        if (!slices->all || kept < atomic_load(&slices->count))
            return -1;
        int row = run % times->rows;
        for (int32_t i = begin; i < end; i++)
            whole += times->steps[(int64_t)row * times->program->step_count + i];
        for (int64_t i = 0; i < kept; i++)
            if (begin <= slices->all[i].step && slices->all[i].step < end)
                busy += slices->all[i].end - slices->all[i].begin;
    }
    double share = whole ? 1 - (double)busy / ((double)whole * (double)times->threads) : 0;
    return share > 0 ? share : 0; /* repeats beside each other overlap */
}

/* The steps begin ... end - 1.  sums: of them, sorted. */
static void print_layer(struct nanoloom_times *times, const int64_t *sums, double whole,
                        int32_t begin, int32_t end, const char *name)
{
    int rows = rows_of(times);
    double median = quantile(sums, rows, 0.5), idle = waiting(times, begin, end);
    double spread = quantile(sums, rows, 0.9) - quantile(sums, rows, 0.1);
    printf("%10.*f  %5.1f  %5.1f  ", decimals(median), milliseconds(median),
           median > 0 ? 100 * spread / median : 0.0, whole > 0 ? 100 * median / whole : 0.0);
    if (idle < 0)
        printf("       -  %s\n", name);
    else
        printf("%8.1f  %s\n", 100 * idle, name);
}

void nanoloom_times_report_layers(struct nanoloom_times *times)
{
    const struct nanoloom_program *program = times->program;
    int rows = rows_of(times);
    int64_t *sums = room_for((size_t)rows);
    sum_steps(times, 0, program->step_count, sums);
    double whole = quantile(sums, rows, 0.5);
    printf("        ms  spread%%     %%  waiting%%  layer\n");
    for (int32_t begin = 0, end; begin < program->step_count; begin = end) {
        const char *name = program->steps[begin].name;
        for (end = begin + 1; end < program->step_count; end++)
            if (strcmp(program->steps[end].name, name) != 0)
                break;
        sum_steps(times, begin, end, sums);
        if (sums[rows - 1]) /* else of a repeat without a trip */
            print_layer(times, sums, whole, begin, end, name);
    }
    sum_steps(times, 0, program->step_count, sums);
    print_layer(times, sums, whole, 0, program->step_count, "all layers");
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
static void print_slice(FILE *file, int lane, const char *name, int64_t begin,
                        int64_t duration, int64_t step)
{
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"", lane);
    print_text(file, name);
    fprintf(file, "\",\"ts\":%.3f,\"dur\":%.3f", (double)begin / 1e3, (double)duration / 1e3);
    if (step >= 0)
        fprintf(file, ",\"args\":{\"step\":%" PRId64 "}", step);
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
    print_slice(file, 1, name, at, whole, -1);
    for (int32_t i = 0; i < program->step_count; at += steps[i++])
        print_slice(file, 1, program->steps[i].name, at, steps[i], i);
}

static void print_lane(FILE *file, int lane)
{
    fprintf(file, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%d,"
                  "\"args\":{\"name\":\"thread %d\"}}", lane, lane - FIRST_LANE + 1);
}

/* What the threads did in a run, a lane each.  threads: of the lanes that there are. */
static int print_threads(FILE *file, struct nanoloom_times *times, int run,
                         int64_t *threads, int count)
{
    struct nanoloom_slices *slices = &times->watched[run % NANOLOOM_WATCHED];
    int64_t begin = times->begins[run % times->rows], kept = nanoloom_slices_kept(slices);
    for (int64_t i = 0; i < kept; i++) {
        const struct nanoloom_slice *each = &slices->all[i];
        int lane = 0;
        while (lane < count && threads[lane] != each->thread)
            lane++;
        if (lane == NANOLOOM_MOST_THREADS)
            continue;
        if (lane == count) {
            threads[count++] = each->thread;
            print_lane(file, lane + FIRST_LANE);
        }
        print_slice(file, lane + FIRST_LANE, times->program->steps[each->step].name,
                    begin + each->begin, each->end - each->begin, each->step);
    }
    return count;
}

void nanoloom_times_trace(struct nanoloom_times *times, const char *path, const char *model)
{
    int64_t threads[NANOLOOM_MOST_THREADS];
    int lanes = 0;
    FILE *file = fopen(path, "w");
    if (!file)
        nanoloom_refuse(path, "cannot be written to: %s", strerror(errno));
    fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                  "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"");
    print_text(file, model);
    fprintf(file, "\"}},\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,"
                  "\"args\":{\"name\":\"steps, %" PRId64 " threads\"}}", times->threads);
    for (int run = times->count - rows_of(times); run < times->count; run++) {
        print_run(file, times, run);
        if (times->count - run <= NANOLOOM_WATCHED)
            lanes = print_threads(file, times, run, threads, lanes);
    }
    fprintf(file, "]}\n");
    int wrong = ferror(file);
    if (fclose(file) || wrong)
        nanoloom_refuse(path, "cannot be written to: %s", strerror(errno));
}
