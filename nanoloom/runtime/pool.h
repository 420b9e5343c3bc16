/* A pool as its own files see it: pool.c has its life, threads.c the jobs that it does. */
#ifndef NANOLOOM_POOL_H
#define NANOLOOM_POOL_H

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads.h"

enum { CACHE_LINE = 64 };

struct nanoloom_pool {
    alignas(CACHE_LINE) _Atomic uint64_t claim;     /* job << 32 | tasks not yet claimed */
    alignas(CACHE_LINE) _Atomic uint32_t finished;  /* tasks of this job that are done */
    _Atomic uint32_t caller_sleeps;
    alignas(CACHE_LINE) _Atomic uint32_t published; /* the job's number; workers wait on it */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t stop;
    /* The job.  Atomic because a late worker may look while the next one is written; what
     * it then sees is thrown away with the failing compare-and-swap. */
    _Atomic nanoloom_task task;
    _Atomic(void *) argument;
    _Atomic uint32_t tasks;
    _Atomic uint32_t most;                       /* workers that may take part */
    alignas(CACHE_LINE) _Atomic uint32_t joined; /* workers that do */
    alignas(CACHE_LINE) _Atomic uint32_t busy;   /* a caller holds the workers */
    _Atomic uint32_t callers;                    /* runs under way */
    _Atomic uint32_t waiting;                    /* callers that are not let in yet */
    _Atomic uint32_t bound;   /* threads that compute at once; 0 for all there are */
    _Atomic uint32_t workers; /* running */
    int wanted;               /* workers asked for */
    int avoided;              /* the CPU they keep off, -1 for none */
    cpu_set_t cpus;           /* theirs: of the thread that made the pool */
    _Atomic int *owner;       /* the process whose workers these are; see pool.c */
    bool wiped;               /* whether the system makes that 0 in a child */
    pthread_mutex_t changing; /* held by whoever starts workers */
    pthread_t threads[NANOLOOM_MOST_THREADS];
};

static inline void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Threads that may compute at once. */
static inline uint32_t bound_of(struct nanoloom_pool *pool)
{
    uint32_t bound = atomic_load_explicit(&pool->bound, memory_order_relaxed);
    return bound ? bound : atomic_load(&pool->workers) + 1;
}

/* Workers that all callers leave room for, the one that asks among them. */
static inline uint32_t room(struct nanoloom_pool *pool)
{
    uint32_t bound = bound_of(pool), callers = atomic_load(&pool->callers);
    callers += !callers;
    return bound > callers ? bound - callers : 0;
}

/* What a worker does: the context is the pool. */
void *nanoloom_pool_work(void *context);

/* True when the pool is this process's.  A forked child's has no workers: it starts new
 * ones, from a state as after creation, since whatever held the pool stayed with the
 * parent; false while another thread of the child is at it. */
bool nanoloom_pool_is_own(struct nanoloom_pool *pool);

/* Keeps workers that are about to wake off the caller's CPU.  A sleeping one is often woken
 * there and waits until the system moves it, milliseconds later: on virtual machines an
 * idle CPU does not look idle. */
void nanoloom_pool_keep_apart(struct nanoloom_pool *pool);

#endif
