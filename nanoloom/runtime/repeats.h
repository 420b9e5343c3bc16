/* Steps that run several times in a row, their operands each time elsewhere. */
#ifndef NANOLOOM_REPEATS_H
#define NANOLOOM_REPEATS_H

#include <stdint.h>

/* The steps first_step ... + step_count - 1 run `trips` times.  Repeats stand in the order
 * of their first steps, one that holds others in front of them.  One that is `beside` may
 * run at the same time as the one in front of it, behind whose steps its own stand. */
struct nanoloom_repeat {
    int64_t trips;
    int64_t points; /* of all loops in one trip; 0 where nobody knows */
    int32_t first_step;
    int32_t step_count;
    int32_t first_move;
    int32_t move_count;
    int32_t beside;
};

/* Where an operand lies in the next trip: `stride` bytes further; or, if it alternates, as
 * far forth in odd trips and back in even ones, as what one trip leaves to the next. */
struct nanoloom_move {
    int64_t stride;
    int32_t buffer;
    int32_t alternates;
};

/* Moves the operands of a repeat behind its trip number `trip`. */
static inline void nanoloom_move(const struct nanoloom_repeat *repeat,
                                 const struct nanoloom_move *moves, void **pointers,
                                 int64_t trip)
{
    const struct nanoloom_move *end = moves + repeat->first_move + repeat->move_count;
    for (const struct nanoloom_move *m = moves + repeat->first_move; m < end; m++) {
        char *now = pointers[m->buffer];
        int back = m->alternates && (trip & 1);
        pointers[m->buffer] = back ? now - m->stride : now + m->stride;
    }
}

/* Moves the operands to where they were in front of the first trip. */
static inline void nanoloom_move_back(const struct nanoloom_repeat *repeat,
                                      const struct nanoloom_move *moves,
                                      void **pointers)
{
    const struct nanoloom_move *end = moves + repeat->first_move + repeat->move_count;
    for (const struct nanoloom_move *m = moves + repeat->first_move; m < end; m++) {
        int64_t passed = m->alternates ? repeat->trips & 1 : repeat->trips;
        pointers[m->buffer] = (char *)pointers[m->buffer] - passed * m->stride;
    }
}

#endif
