/* The thread pool: workers, and the callers that share them; one fork and join per call. */
#ifndef NANOLOOM_THREADS_H
#define NANOLOOM_THREADS_H

#include "types.h"

struct nanoloom_control;
struct nanoloom_pool;

enum { NANOLOOM_MOST_THREADS = 1024 }; /* as nanoloom/runtime/threads.py says it */

/* Who uses a pool, and how many of its threads at most: the context of nanoloom_pool_run. */
struct nanoloom_member {
    struct nanoloom_pool *pool;
    int64_t threads;
};

/* A pool of `threads` threads, the caller being one of them; NULL when memory is out.
 * Fewer threads than asked for when the system refuses to start more. */
struct nanoloom_pool *nanoloom_pool_create(int threads);

/* Has at least so many threads from now on, where the system starts them. */
void nanoloom_pool_grow(struct nanoloom_pool *pool, int threads);

/* So many threads may compute at once, callers and workers together; as many as it has
 * until then, and always one. */
void nanoloom_pool_bound(struct nanoloom_pool *pool, int threads);

/* Keeps the workers on these CPUs, the numbers of the bits of `words`. */
void nanoloom_pool_place(struct nanoloom_pool *pool, const uint64_t *words, int count);

/* Ends the workers.  No call may be running; NULL is allowed. */
void nanoloom_pool_destroy(struct nanoloom_pool *pool);

/* How many threads take part, the caller included. */
int nanoloom_pool_threads(const struct nanoloom_pool *pool);

/* In front of a run of several calls, and behind it: waits as long as so many callers are at
 * work as threads may compute at once.  NANOLOOM_OK, or why `control`, which may be NULL,
 * ends the waiting; then there is nothing to leave. */
int nanoloom_pool_enter(void *member, const struct nanoloom_control *control);
void nanoloom_pool_leave(void *member);

/* A nanoloom_parallel: the context is a nanoloom_member; 0 <= tasks < 2^31.  May be called
 * from several threads at once: whoever finds the pool taken does its tasks alone.
 * After fork() the child's first call starts workers of its own. */
void nanoloom_pool_run(void *member, nanoloom_task task, void *argument, int64_t tasks);

#endif
