/* The entry of a library that Python loads. */
#include "library.h"

#include "arena.h"
#include "cpus.h"

const struct nanoloom_library nanoloom_library = {
    .version = NANOLOOM_LIBRARY_VERSION,
    .program = &nanoloom_program,
    .workspace_bytes = nanoloom_workspace_bytes,
    .run_pointers = nanoloom_run_pointers,
    .failed = nanoloom_failed,
    .run_arrays = nanoloom_run_arrays,
    .rows_together = nanoloom_rows_together,
    .rows_bytes = nanoloom_rows_bytes,
    .run_rows = nanoloom_run_rows,
    .pool_run = nanoloom_pool_run,
    .pool_enter = nanoloom_pool_enter,
    .pool_leave = nanoloom_pool_leave,
    .pool_create = nanoloom_pool_create,
    .pool_grow = nanoloom_pool_grow,
    .pool_bound = nanoloom_pool_bound,
    .pool_place = nanoloom_pool_place,
    .pool_destroy = nanoloom_pool_destroy,
    .pool_threads = nanoloom_pool_threads,
    .arena_create = nanoloom_arena_create,
    .arena_destroy = nanoloom_arena_destroy,
    .request_tiles = nanoloom_request_tiles,
    .sizes = &nanoloom_open_sizes,
    .bound_bytes = nanoloom_bound_bytes,
    .bind = nanoloom_bind,
    .same_words = nanoloom_same_words,
};
