/* A program whose dimensions are known at run time: bound to numbers, it is a program as
 * any other.  That takes microseconds, and no kernel is made for it. */
#ifndef NANOLOOM_SIZES_H
#define NANOLOOM_SIZES_H

#include "program.h"

enum { NANOLOOM_FACTORS = 6, NANOLOOM_NONE = -1 };

/* (times * dims[dim] + add) / over, rounded down; 0 <= add < over. */
struct nanoloom_floor {
    int32_t dim;
    int64_t add;
    int64_t over;
    int64_t times;
};

/* coefficient * product of dimensions and, behind them, floors; NANOLOOM_NONE for a factor
 * that is not there. */
struct nanoloom_term {
    int64_t coefficient;
    int32_t dims[NANOLOOM_FACTORS];
};

/* What of a buffer the sizes decide: its slot of the arena, and a word that is added to
 * its offset; NANOLOOM_NONE for none.  A state that one trip leaves to the next has two
 * places, `bytes` apart in whole lines: it lies in the second one behind an odd number of
 * `trips`; both are words. */
struct nanoloom_open_buffer {
    int32_t slot;
    int32_t word;
    int32_t bytes;
    int32_t trips;
};

/* What of a step they decide: functions of the kernel's sizes, which are the words from
 * first_word on; NULL where the step's own number holds. */
struct nanoloom_open_step {
    int64_t (*tasks)(const int64_t *sizes);
    int64_t (*scratch)(const int64_t *sizes);
    int64_t first_word;
};

/* What of a check they decide: the slot of its word, and the word with the extent of the
 * axis that its indices are of; NANOLOOM_NONE where low and high are numbers. */
struct nanoloom_open_check {
    int32_t slot;
    int32_t extent;
};

/* For which sizes a repeat runs at all: where `word` is least .. most; NANOLOOM_NONE for
 * all. */
struct nanoloom_range {
    int32_t word;
    int64_t least;
    int64_t most;
};

/* Word i is the sum of terms[word_ends[i - 1] ... word_ends[i] - 1].  Slot i of the arena
 * is as large as the largest of slot_words[slot_ends[i - 1] ... slot_ends[i] - 1]. */
struct nanoloom_sizes {
    const struct nanoloom_program *program; /* the numbers that no size decides */
    const char *const *dims;                /* their names */
    const struct nanoloom_floor *floors;
    const struct nanoloom_term *terms;
    const int32_t *word_ends;
    const int32_t *slot_words;
    const int32_t *slot_ends;
    const struct nanoloom_open_buffer *buffers; /* one for each of the program's */
    const struct nanoloom_open_step *steps;
    const struct nanoloom_open_check *checks;
    const int32_t *shape_words; /* of inputs, then of outputs, one for each axis */
    const struct nanoloom_range *ranges; /* one for each repeat */
    const int32_t *trip_words;  /* of each repeat; NANOLOOM_NONE where a number holds */
    const int32_t *point_words; /* of each repeat, as well */
    const int32_t *move_words;  /* what each stride is times, in whole lines where it
                                 * alternates or settles; NANOLOOM_NONE for nothing */
    const char *const *shape_texts; /* [batch, 64], of inputs, then of outputs */
    const int64_t *least;           /* that each dimension may be, and */
    const int64_t *most;            /* INT64_MAX where there is no bound */
    const int32_t *or_none; /* whether it may be 0 besides: no output has elements then,
                             * and nothing is computed */
    int32_t dim_count;
    int32_t grown_count; /* the last so many of them say how much a session keeps, or how
                          * much room there is for what only the data say */
    int32_t floor_count;
    int32_t word_count;
    int32_t slot_count;
};

/* Whether a number of a dimension is the 0 that stands besides its bounds. */
int nanoloom_is_none(const struct nanoloom_sizes *sizes, int32_t dim, int64_t number);

/* The first dimension whose number is out of its bounds; NANOLOOM_NONE for none. */
int32_t nanoloom_outside(const struct nanoloom_sizes *sizes, const int64_t *dims);

/* The memory that a bound program takes. */
int64_t nanoloom_bound_bytes(const struct nanoloom_sizes *sizes);

/* The program for these dimensions, in `room`, which is 64-byte aligned; NULL where they
 * are out of bounds, make it too large, or a word less than 0.  Its names and kernels are
 * those of sizes->program. */
const struct nanoloom_program *nanoloom_bind(const struct nanoloom_sizes *sizes,
                                             const int64_t *dims, void *room);

/* The working memory of the largest program that the bounds allow; 0 where a dimension has
 * none.  room: as for nanoloom_bind. */
int64_t nanoloom_most_workspace(const struct nanoloom_sizes *sizes, int64_t threads,
                                void *room);

/* A dimension that has another number in an input than in those before it. */
struct nanoloom_contradiction {
    int32_t input;
    int32_t dim; /* NANOLOOM_NONE where there is none */
    int64_t here;
    int64_t before;
};

/* The dimensions of the inputs' shapes, which have the right ranks. */
struct nanoloom_contradiction nanoloom_dims_of(const struct nanoloom_sizes *sizes,
                                               const int64_t *const *shapes,
                                               int64_t *dims);

#endif
