/* What a loaded library shows to nanoloom's own loader, nanoloom/runtime/library.py. */
#ifndef NANOLOOM_LIBRARY_H
#define NANOLOOM_LIBRARY_H

#include "arrays.h"
#include "program.h"
#include "rows.h"
#include "sizes.h"
#include "threads.h"

#define NANOLOOM_PUBLIC __attribute__((visibility("default")))

/* Counted up whenever a struct of program.h, arrays.h, threads.h or this one changes. */
enum { NANOLOOM_LIBRARY_VERSION = 15 };

struct nanoloom_library {
    int64_t version;
    const struct nanoloom_program *program;
    int64_t (*workspace_bytes)(const struct nanoloom_program *, int64_t);
    int (*run_pointers)(const struct nanoloom_call *, int64_t *);
    const struct nanoloom_check *(*failed)(const struct nanoloom_program *, const void *,
                                           int64_t *);
    int (*run_arrays)(const struct nanoloom_call *, int64_t *);
    int64_t (*rows_together)(const struct nanoloom_program *);
    int64_t (*rows_bytes)(const struct nanoloom_program *, int64_t);
    int (*run_rows)(const struct nanoloom_call *, int64_t, int64_t);
    nanoloom_parallel pool_run;
    int (*pool_enter)(void *, const struct nanoloom_control *);
    void (*pool_leave)(void *);
    struct nanoloom_pool *(*pool_create)(int);
    void (*pool_grow)(struct nanoloom_pool *, int);
    void (*pool_bound)(struct nanoloom_pool *, int);
    void (*pool_place)(struct nanoloom_pool *, const uint64_t *, int);
    void (*pool_destroy)(struct nanoloom_pool *);
    int (*pool_threads)(const struct nanoloom_pool *);
    void *(*arena_create)(int64_t);
    void (*arena_destroy)(void *, int64_t);
    int (*request_tiles)(void);
    const struct nanoloom_sizes *const *sizes; /* of its programs: *sizes is NULL for one
                                                  whose shapes are known */
    int64_t (*bound_bytes)(const struct nanoloom_sizes *);
    const struct nanoloom_program *(*bind)(const struct nanoloom_sizes *, const int64_t *,
                                           void *);
    int (*same_words)(const struct nanoloom_words *, const void *const *);
};

/* The one name the loader looks up; every library has its own. */
NANOLOOM_PUBLIC extern const struct nanoloom_library nanoloom_library;

/* Defined by the generated table of the model. */
extern const struct nanoloom_program nanoloom_program;
extern const struct nanoloom_sizes *const nanoloom_open_sizes;

#endif
