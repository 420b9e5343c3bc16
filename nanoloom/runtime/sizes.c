/* Binds a program to the numbers of its dimensions. */
#include "sizes.h"

#include <stddef.h>

enum { LINE = 64, MOST_DIMS = 16 };

static const int64_t MOST_TASKS = ((int64_t)1 << 31) - 1;
static const int64_t MOST_BYTES = (int64_t)1 << 46;

/* What lies in the memory of a bound program, one behind the other. */
struct parts {
    struct nanoloom_program *program;
    int64_t *factors; /* dimensions, then floors */
    int64_t *words;
    int64_t *slots; /* where each begins, and where the last ends */
    struct nanoloom_step *steps;
    struct nanoloom_buffer *buffers;
    struct nanoloom_check *checks;
    struct nanoloom_repeat *repeats;
    struct nanoloom_move *moves;
    struct nanoloom_tensor *tensors; /* inputs, then outputs */
    int64_t *extents;
    char *end;
};

static int64_t in_lines(int64_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static char *behind(char **end, int64_t bytes)
{
    char *begin = *end;
    *end += in_lines(bytes);
    return begin;
}

static int32_t move_count(const struct nanoloom_program *program)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < program->repeat_count; i++)
        sum += program->repeats[i].move_count;
    return sum;
}

static int64_t axes(const struct nanoloom_program *program)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < program->input_count; i++)
        sum += program->inputs[i].rank;
    for (int32_t i = 0; i < program->output_count; i++)
        sum += program->outputs[i].rank;
    return sum;
}

static struct parts parts_of(const struct nanoloom_sizes *sizes, char *room)
{
    const struct nanoloom_program *p = sizes->program;
    int64_t tensors = p->input_count + p->output_count;
    struct parts made;
    made.program = (void *)behind(&room, sizeof *made.program);
    made.factors = (void *)behind(
        &room, (sizes->dim_count + sizes->floor_count) * (int64_t)sizeof(int64_t));
    made.words = (void *)behind(&room, sizes->word_count * (int64_t)sizeof(int64_t));
    made.slots =
        (void *)behind(&room, (sizes->slot_count + 1) * (int64_t)sizeof(int64_t));
    made.steps = (void *)behind(&room, p->step_count * (int64_t)sizeof *made.steps);
    made.buffers = (void *)behind(&room, p->buffer_count * (int64_t)sizeof *made.buffers);
    made.checks = (void *)behind(&room, p->check_count * (int64_t)sizeof *made.checks);
    made.repeats = (void *)behind(&room, p->repeat_count * (int64_t)sizeof *made.repeats);
    made.moves = (void *)behind(&room, move_count(p) * (int64_t)sizeof *made.moves);
    made.tensors = (void *)behind(&room, tensors * (int64_t)sizeof *made.tensors);
    made.extents = (void *)behind(&room, axes(p) * (int64_t)sizeof(int64_t));
    made.end = room;
    return made;
}

int64_t nanoloom_bound_bytes(const struct nanoloom_sizes *sizes)
{
    static char nothing;
    return parts_of(sizes, &nothing).end - &nothing;
}

/* What terms are products of; 0 for dimensions beyond MOST_BYTES. */
static int divide(const struct nanoloom_sizes *sizes, const int64_t *dims,
                  int64_t *factors)
{
    for (int32_t i = 0; i < sizes->dim_count; i++)
        factors[i] = dims[i];
    for (int32_t i = 0; i < sizes->floor_count; i++) {
        struct nanoloom_floor floor = sizes->floors[i];
        int64_t dim = dims[floor.dim];
        if (dim < 0 || dim > MOST_BYTES / floor.times)
            return 0;
        int64_t sum = floor.times * dim + floor.add;
        factors[sizes->dim_count + i] = sum / floor.over;
    }
    return 1;
}

/* Every word; 0 where one is more than MOST_BYTES or below 0. */
static int evaluate(const struct nanoloom_sizes *sizes, const int64_t *factors,
                    int64_t *words)
{
    int32_t term = 0;
    for (int32_t i = 0; i < sizes->word_count; i++) {
        int64_t sum = 0;
        for (; term < sizes->word_ends[i]; term++) {
            int64_t product = sizes->terms[term].coefficient;
            for (int k = 0; k < NANOLOOM_FACTORS; k++) {
                int32_t dim = sizes->terms[term].dims[k];
                if (dim != NANOLOOM_NONE &&
                    __builtin_mul_overflow(product, factors[dim], &product))
                    return 0;
            }
            if (__builtin_add_overflow(sum, product, &sum))
                return 0;
        }
        if (sum < 0 || sum > MOST_BYTES)
            return 0;
        words[i] = sum;
    }
    return 1;
}

static int place_slots(const struct nanoloom_sizes *sizes, struct parts *to)
{
    int32_t at = 0;
    to->slots[0] = 0;
    for (int32_t i = 0; i < sizes->slot_count; i++) {
        int64_t most = 1;
        for (; at < sizes->slot_ends[i]; at++) {
            int64_t bytes = to->words[sizes->slot_words[at]];
            most = bytes > most ? bytes : most;
        }
        to->slots[i + 1] = to->slots[i] + in_lines(most);
        if (to->slots[i + 1] > MOST_BYTES)
            return 0;
    }
    return 1;
}

static void place_buffers(const struct nanoloom_sizes *sizes, struct parts *to)
{
    for (int32_t i = 0; i < sizes->program->buffer_count; i++) {
        struct nanoloom_open_buffer open = sizes->buffers[i];
        to->buffers[i] = sizes->program->buffers[i];
        if (open.slot != NANOLOOM_NONE)
            to->buffers[i].offset += to->slots[open.slot];
        if (open.word != NANOLOOM_NONE)
            to->buffers[i].offset += to->words[open.word];
        if (open.bytes != NANOLOOM_NONE && to->words[open.trips] % 2)
            to->buffers[i].offset += in_lines(to->words[open.bytes]);
    }
}

/* Whether a step is in a repeat that runs beside another one. */
static int runs_beside(const struct nanoloom_program *program, int32_t step)
{
    int32_t count;
    for (int32_t i = 0; i < program->repeat_count; i += count) {
        count = nanoloom_beside(program, i);
        const struct nanoloom_repeat *first = &program->repeats[i];
        const struct nanoloom_repeat *last = first + count - 1;
        if (count > 1 && step >= first->first_step &&
            step < last->first_step + last->step_count)
            return 1;
    }
    return 0;
}

/* Tasks and scratch memory of every step. */
static int count_tasks(const struct nanoloom_sizes *sizes, struct parts *to)
{
    struct nanoloom_program *program = to->program;
    program->scratch_bytes = program->alone_bytes = 0;
    for (int32_t i = 0; i < program->step_count; i++) {
        const struct nanoloom_open_step *open = &sizes->steps[i];
        struct nanoloom_step *step = &to->steps[i];
        *step = sizes->program->steps[i];
        if (open->tasks)
            step->tasks = open->tasks(to->words + open->first_word);
        if (open->scratch)
            step->scratch_bytes = open->scratch(to->words + open->first_word);
        if (step->tasks > MOST_TASKS || step->scratch_bytes > MOST_BYTES)
            return 0;
        int several = step->tasks > 1 || runs_beside(program, i);
        int64_t *most = several ? &program->scratch_bytes : &program->alone_bytes;
        if (step->scratch_bytes > *most)
            *most = step->scratch_bytes;
    }
    return 1;
}

static void shape_tensors(const struct nanoloom_sizes *sizes, struct parts *to)
{
    const struct nanoloom_program *from = sizes->program;
    int64_t *extent = to->extents;
    const int32_t *word = sizes->shape_words;
    for (int32_t i = 0; i < from->input_count + from->output_count; i++) {
        int inside = i < from->input_count;
        struct nanoloom_tensor *tensor = &to->tensors[i];
        *tensor = inside ? from->inputs[i] : from->outputs[i - from->input_count];
        const int64_t *known = tensor->shape;
        tensor->shape = tensor->rank ? extent : NULL;
        for (int32_t k = 0; k < tensor->rank; k++, word++)
            *extent++ = *word == NANOLOOM_NONE ? known[k] : to->words[*word];
    }
}

static void limit_indices(const struct nanoloom_sizes *sizes, struct parts *to)
{
    for (int32_t i = 0; i < to->program->check_count; i++) {
        struct nanoloom_open_check open = sizes->checks[i];
        struct nanoloom_check *check = &to->checks[i];
        *check = sizes->program->checks[i];
        check->offset += to->slots[open.slot];
        if (open.extent == NANOLOOM_NONE)
            continue;
        int64_t extent = to->words[open.extent];
        check->low = check->low < 0 ? -extent : 0;
        check->high = extent - 1;
    }
}

int nanoloom_is_none(const struct nanoloom_sizes *sizes, int32_t dim, int64_t number)
{
    return number == 0 && sizes->least[dim] > 0 && sizes->or_none[dim];
}

int32_t nanoloom_outside(const struct nanoloom_sizes *sizes, const int64_t *dims)
{
    for (int32_t i = 0; i < sizes->dim_count; i++)
        if ((dims[i] < sizes->least[i] && !nanoloom_is_none(sizes, i, dims[i])) ||
            dims[i] > sizes->most[i])
            return i;
    return NANOLOOM_NONE;
}

/* Kernels are for one at least: where a dimension is 0 besides, none runs. */
static void compute_nothing(const struct nanoloom_sizes *sizes, const int64_t *dims,
                            struct nanoloom_program *program)
{
    for (int32_t i = 0; i < sizes->dim_count; i++)
        if (nanoloom_is_none(sizes, i, dims[i]))
            program->step_count = program->repeat_count = program->check_count = 0;
}

/* How often repeats run, and how far their operands move. */
static void count_trips(const struct nanoloom_sizes *sizes, struct parts *to)
{
    for (int32_t i = 0; i < move_count(sizes->program); i++) {
        struct nanoloom_move *move = &to->moves[i];
        *move = sizes->program->moves[i];
        if (sizes->move_words[i] == NANOLOOM_NONE)
            continue;
        int64_t bytes = to->words[sizes->move_words[i]];
        move->stride *= move->way ? in_lines(bytes) : bytes;
    }
    for (int32_t i = 0; i < sizes->program->repeat_count; i++) {
        to->repeats[i] = sizes->program->repeats[i];
        if (sizes->trip_words[i] != NANOLOOM_NONE)
            to->repeats[i].trips = to->words[sizes->trip_words[i]];
        if (sizes->point_words[i] != NANOLOOM_NONE)
            to->repeats[i].points = to->words[sizes->point_words[i]];
        struct nanoloom_range range = sizes->ranges[i];
        if (range.word != NANOLOOM_NONE && (to->words[range.word] < range.least ||
                                            to->words[range.word] > range.most))
            to->repeats[i].trips = 0;
    }
}

const struct nanoloom_program *nanoloom_bind(const struct nanoloom_sizes *sizes,
                                             const int64_t *dims, void *room)
{
    struct parts to = parts_of(sizes, room);
    *to.program = *sizes->program;
    if (nanoloom_outside(sizes, dims) != NANOLOOM_NONE || !divide(sizes, dims, to.factors) ||
        !evaluate(sizes, to.factors, to.words) || !place_slots(sizes, &to) ||
        !count_tasks(sizes, &to))
        return NULL;
    place_buffers(sizes, &to);
    shape_tensors(sizes, &to);
    limit_indices(sizes, &to);
    count_trips(sizes, &to);
    to.program->words = to.words;
    to.program->steps = to.steps;
    to.program->buffers = to.buffers;
    to.program->checks = to.checks;
    to.program->repeats = to.repeats;
    to.program->moves = to.moves;
    to.program->inputs = to.tensors;
    to.program->outputs = to.tensors + to.program->input_count;
    to.program->arena_bytes += to.slots[sizes->slot_count];
    compute_nothing(sizes, dims, to.program);
    return to.program;
}

int64_t nanoloom_most_workspace(const struct nanoloom_sizes *sizes, int64_t threads,
                                void *room)
{
    int64_t dims[MOST_DIMS], most = 0;
    if (sizes->dim_count > MOST_DIMS)
        return 0;
    for (int32_t i = 0; i < sizes->dim_count; i++)
        if (sizes->most[i] == INT64_MAX)
            return 0;
    /* A size that falls with a dimension is largest at its least. */
    for (int32_t corner = 0; corner < 1 << sizes->dim_count; corner++) {
        for (int32_t i = 0; i < sizes->dim_count; i++)
            dims[i] = (corner >> i & 1) ? sizes->least[i] : sizes->most[i];
        const struct nanoloom_program *bound = nanoloom_bind(sizes, dims, room);
        int64_t bytes = bound ? nanoloom_workspace_bytes(bound, threads) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The dimension that a word is, with nothing added and nothing multiplied. */
static int32_t dim_of(const struct nanoloom_sizes *sizes, int32_t word)
{
    if (word == NANOLOOM_NONE)
        return NANOLOOM_NONE;
    int32_t begin = word ? sizes->word_ends[word - 1] : 0;
    const struct nanoloom_term *term = &sizes->terms[begin];
    int plain = sizes->word_ends[word] == begin + 1 && term->coefficient == 1 &&
                term->dims[0] < sizes->dim_count && term->dims[1] == NANOLOOM_NONE;
    return plain ? term->dims[0] : NANOLOOM_NONE;
}

struct nanoloom_contradiction nanoloom_dims_of(const struct nanoloom_sizes *sizes,
                                               const int64_t *const *shapes,
                                               int64_t *dims)
{
    const struct nanoloom_program *program = sizes->program;
    const int32_t *word = sizes->shape_words;
    for (int32_t i = 0; i < sizes->dim_count; i++)
        dims[i] = -1;
    for (int32_t i = 0; i < program->input_count; i++)
        for (int32_t k = 0; k < program->inputs[i].rank; k++, word++) {
            int32_t dim = dim_of(sizes, *word);
            if (dim == NANOLOOM_NONE)
                continue;
            int64_t before = dims[dim], here = shapes[i][k];
            if (before != -1 && before != here)
                return (struct nanoloom_contradiction){i, dim, here, before};
            dims[dim] = here;
        }
    return (struct nanoloom_contradiction){.dim = NANOLOOM_NONE};
}
