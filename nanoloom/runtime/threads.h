/* The thread pool: a fixed number of workers, one fork and join per call. */
#ifndef NANOLOOM_THREADS_H
#define NANOLOOM_THREADS_H

#include "types.h"

struct nanoloom_pool;

enum { NANOLOOM_MOST_THREADS = 1024 }; /* as nanoloom/runtime/threads.py says it */

/* A pool of `threads` threads, the caller being one of them; NULL when memory is out.
 * Fewer threads than asked for when the system refuses to start more. */
struct nanoloom_pool *nanoloom_pool_create(int threads);

/* Ends the workers.  No call may be running; NULL is allowed. */
void nanoloom_pool_destroy(struct nanoloom_pool *pool);

/* How many threads take part, the caller included. */
int nanoloom_pool_threads(const struct nanoloom_pool *pool);

/* A nanoloom_parallel: `pool` is the context; 0 <= tasks < 2^31.  May be called from several
 * threads at once: whoever finds the pool taken does its tasks alone, without waiting.
 * After fork() the child's first call starts workers of its own. */
void nanoloom_pool_run(void *pool, nanoloom_task task, void *argument, int64_t tasks);

#endif
