/* Sizes without a bound, about which only the data decide. */
#include "growth.h"

#include <stdlib.h>
#include <string.h>

static const int64_t most_room = (int64_t)1 << 40; /* elements */

int nanoloom_growth_prepare(struct nanoloom_growth *growth,
                            const struct nanoloom_sizes *sizes)
{
    size_t dims = (size_t)sizes->dim_count, inputs = (size_t)sizes->program->input_count;
    growth->refused = NANOLOOM_NONE;
    growth->dims = calloc(dims + 1, sizeof *growth->dims);
    growth->next = calloc(dims + 1, sizeof *growth->next);
    growth->before = calloc(dims + 1, sizeof *growth->before);
    growth->inputs = calloc(inputs + 1, sizeof *growth->inputs);
    if (!growth->dims || !growth->next || !growth->before || !growth->inputs)
        return 0;
    for (size_t i = 0; i < dims; i++)
        growth->dims[i] = growth->next[i] = NANOLOOM_FIRST_ROOM;
    return 1;
}

void nanoloom_growth_release(struct nanoloom_growth *growth)
{
    free(growth->dims);
    free(growth->next);
    free(growth->before);
    free(growth->inputs);
}

const void *const *nanoloom_growth_inputs(struct nanoloom_growth *growth,
                                          const struct nanoloom_program *program,
                                          const void *const *inputs)
{
    static const int64_t nothing;
    int32_t given = nanoloom_given_count(program);
    for (int32_t i = 0; i < program->input_count; i++)
        growth->inputs[i] = i < given ? inputs[i] : &nothing;
    return growth->inputs;
}

static int64_t grown(const struct nanoloom_room *room, int64_t size, int64_t need)
{
    if (room->exact)
        return need;
    if (need <= size)
        return size;
    return need > 2 * size ? need : 2 * size;
}

enum nanoloom_fit nanoloom_growth_after(struct nanoloom_growth *growth,
                                        const struct nanoloom_sizes *sizes,
                                        const int64_t *needed)
{
    const struct nanoloom_program *program = sizes->program;
    int32_t first = sizes->dim_count - program->room_count;
    enum nanoloom_fit fit = NANOLOOM_FITS;
    memcpy(growth->next, growth->dims, sizeof *growth->next * (size_t)sizes->dim_count);
    growth->refused = NANOLOOM_NONE;
    for (int32_t i = 0; i < program->room_count; i++) {
        const struct nanoloom_room *room = &program->rooms[i];
        int64_t size = growth->dims[first + i], need = needed[room->needed];
        int64_t next = grown(room, size, need);
        if (next != size) {
            growth->refused = i; /* unless it is bound to */
            growth->wanted = need;
            fit = NANOLOOM_GROWS;
        }
        if (need < 0 || need >= most_room)
            return NANOLOOM_BEYOND;
        growth->next[first + i] = next;
    }
    return fit;
}

void nanoloom_growth_take(struct nanoloom_growth *growth)
{
    int64_t *dims = growth->next;
    growth->next = growth->dims;
    growth->dims = dims;
    growth->refused = NANOLOOM_NONE;
}

void nanoloom_growth_begin(struct nanoloom_growth *growth,
                           const struct nanoloom_sizes *sizes)
{
    memcpy(growth->before, growth->dims, sizeof *growth->dims * (size_t)sizes->dim_count);
}

void nanoloom_growth_back(struct nanoloom_growth *growth,
                          const struct nanoloom_sizes *sizes)
{
    memcpy(growth->dims, growth->before, sizeof *growth->dims * (size_t)sizes->dim_count);
}

void nanoloom_growth_first(struct nanoloom_growth *growth,
                           const struct nanoloom_sizes *sizes)
{
    for (int32_t i = sizes->dim_count - sizes->program->room_count; i < sizes->dim_count; i++)
        growth->next[i] = NANOLOOM_FIRST_ROOM;
}

const char *nanoloom_growth_where(const struct nanoloom_growth *growth,
                                  const struct nanoloom_program *program)
{
    int known = growth->refused != NANOLOOM_NONE;
    return known ? program->rooms[growth->refused].where : NULL;
}
