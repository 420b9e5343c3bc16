/* Steps that run several times in a row, their operands each time elsewhere. */
#ifndef NANOLOOM_REPEATS_H
#define NANOLOOM_REPEATS_H

#include <stddef.h>
#include <stdint.h>

enum { NANOLOOM_NO_BUFFER = -1 };

/* The steps first_step ... + step_count - 1 run `trips` times, or less often: as often as
 * the int64 in buffer `limit` says, and only as long as the byte in buffer `flag` is not 0
 * in front of a trip.  Repeats stand in the order of their first steps, one that holds
 * others in front of them.  One that is `beside` may run at the same time as the one in
 * front of it, behind whose steps its own stand. */
struct nanoloom_repeat {
    int64_t trips;
    int64_t points; /* of all loops in one trip; 0 where nobody knows */
    int32_t first_step;
    int32_t step_count;
    int32_t first_move;
    int32_t move_count;
    int32_t beside;
    int32_t limit; /* NANOLOOM_NO_BUFFER for none */
    int32_t flag;
};

enum nanoloom_way { NANOLOOM_FURTHER = 0, NANOLOOM_ALTERNATES = 1, NANOLOOM_SETTLES = 2 };

/* Where an operand lies in the next trip: `stride` bytes further; or, if it alternates, as
 * far forth in odd trips and back in even ones, as what one trip leaves to the next.  Where
 * only a run knows the number of trips, this settles in the first of its two places: so
 * many bytes are copied there behind an odd number. */
struct nanoloom_move {
    int64_t stride;
    int32_t buffer;
    int32_t way; /* an enum nanoloom_way */
};

static inline int64_t nanoloom_most_trips(const struct nanoloom_repeat *repeat,
                                          void *const *pointers)
{
    if (repeat->limit == NANOLOOM_NO_BUFFER)
        return repeat->trips;
    int64_t limit = *(const int64_t *)pointers[repeat->limit];
    return limit < repeat->trips ? limit : repeat->trips;
}

static inline int nanoloom_goes_on(const struct nanoloom_repeat *repeat,
                                   void *const *pointers)
{
    return repeat->flag == NANOLOOM_NO_BUFFER ||
           *(const unsigned char *)pointers[repeat->flag];
}

/* Moves the operands of a repeat behind its trip number `trip`. */
static inline void nanoloom_move(const struct nanoloom_repeat *repeat,
                                 const struct nanoloom_move *moves, void **pointers,
                                 int64_t trip)
{
    const struct nanoloom_move *end = moves + repeat->first_move + repeat->move_count;
    for (const struct nanoloom_move *m = moves + repeat->first_move; m < end; m++) {
        char *now = pointers[m->buffer];
        int back = m->way == NANOLOOM_ALTERNATES && (trip & 1);
        if (m->way != NANOLOOM_SETTLES)
            pointers[m->buffer] = back ? now - m->stride : now + m->stride;
    }
}

/* Moves the operands to where they were in front of the first of so many trips, and copies
 * what settles. */
static inline void nanoloom_move_back(const struct nanoloom_repeat *repeat,
                                      const struct nanoloom_move *moves,
                                      void **pointers, int64_t trips)
{
    const struct nanoloom_move *end = moves + repeat->first_move + repeat->move_count;
    for (const struct nanoloom_move *m = moves + repeat->first_move; m < end; m++) {
        int64_t passed = m->way == NANOLOOM_FURTHER ? trips : trips & 1;
        char *now = pointers[m->buffer];
        if (m->way != NANOLOOM_SETTLES)
            pointers[m->buffer] = now - passed * m->stride;
        else if (passed)
            __builtin_memcpy(now, now + m->stride, (size_t)m->stride);
    }
}

#endif
