/* The life of a thread pool: its workers, whose process they are of, and its callers.
 *
 * Callers share the workers.  `bound` threads compute at once: each caller at work is one
 * of them, so as many workers take part as callers leave room for. */
#define _GNU_SOURCE
#include "pool.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "control.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

enum {
    STARTING = -1, /* in the place of an owner: a thread of a child is at it */
    LOOK_NANOSECONDS = 5000000, /* how often one who waits looks whether it still should */
    STACK_BYTES = 256 << 10 /* tasks need 64 KiB, the C library some of its own */
};

/* Starts the workers with all signals blocked: those are the caller's to handle. */
static void start(struct nanoloom_pool *pool)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = (int)atomic_load(&pool->workers); i < pool->wanted; i++) {
        if (pthread_create(&pool->threads[i], &attributes, nanoloom_pool_work, pool))
            break;
        if (CPU_COUNT(&pool->cpus))
            pthread_setaffinity_np(pool->threads[i], sizeof pool->cpus, &pool->cpus);
        atomic_store(&pool->workers, (uint32_t)i + 1);
    }
    pool->avoided = -1;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The word of a pool that says whose it is, on a page that the system clears in a child:
 * asking for the process's number at each call takes longer than a small step.  Where the
 * system does not know how, it is asked nevertheless. */
static bool make_owner(struct nanoloom_pool *pool)
{
    void *page = mmap(NULL, sizeof *pool->owner, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    pool->owner = page;
    pool->wiped = !madvise(page, sizeof *pool->owner, MADV_WIPEONFORK);
    atomic_store(pool->owner, getpid());
    return true;
}

static bool owns(const struct nanoloom_pool *pool, int owner)
{
    return owner > 0 && (pool->wiped || owner == getpid());
}

bool nanoloom_pool_is_own(struct nanoloom_pool *pool)
{
    int owner = atomic_load_explicit(pool->owner, memory_order_acquire);
    if (owns(pool, owner))
        return true;
    if (owner == STARTING ||
        !atomic_compare_exchange_strong(pool->owner, &owner, STARTING))
        return false;
    pool->changing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    _Atomic uint32_t *words[] = {&pool->published, &pool->sleepers, &pool->caller_sleeps,
                                 &pool->joined,    &pool->busy,     &pool->callers,
                                 &pool->waiting,   &pool->workers};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        atomic_store(words[i], 0);
    atomic_store(&pool->claim, 0);
    start(pool);
    atomic_store(pool->owner, getpid());
    return true;
}

/* The same, as soon as no other thread of a child is at it. */
static void make_own(struct nanoloom_pool *pool)
{
    while (!nanoloom_pool_is_own(pool))
        sched_yield();
}

struct nanoloom_pool *nanoloom_pool_create(int threads)
{
    size_t bytes = (sizeof(struct nanoloom_pool) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *memory;
    if (posix_memalign(&memory, CACHE_LINE, bytes))
        return NULL;
    struct nanoloom_pool *pool = memory;
    *pool = (struct nanoloom_pool){.changing = PTHREAD_MUTEX_INITIALIZER};
    if (!make_owner(pool)) {
        free(pool);
        return NULL;
    }
    if (sched_getaffinity(0, sizeof pool->cpus, &pool->cpus))
        CPU_ZERO(&pool->cpus);
    nanoloom_pool_grow(pool, threads);
    return pool;
}

void nanoloom_pool_grow(struct nanoloom_pool *pool, int threads)
{
    make_own(pool);
    pthread_mutex_lock(&pool->changing);
    if (threads - 1 > pool->wanted) {
        pool->wanted = threads - 1;
        start(pool);
    }
    pthread_mutex_unlock(&pool->changing);
}

void nanoloom_pool_bound(struct nanoloom_pool *pool, int threads)
{
    atomic_store(&pool->bound, threads > 1 ? (uint32_t)threads : 1);
    if (atomic_load(&pool->waiting))
        futex(&pool->callers, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

void nanoloom_pool_place(struct nanoloom_pool *pool, const uint64_t *words, int count)
{
    make_own(pool);
    pthread_mutex_lock(&pool->changing);
    CPU_ZERO(&pool->cpus);
    for (int cpu = 0; cpu < 64 * count && cpu < CPU_SETSIZE; cpu++)
        if (words[cpu / 64] >> cpu % 64 & 1)
            CPU_SET(cpu, &pool->cpus);
    pool->avoided = -1;
    for (uint32_t i = 0; CPU_COUNT(&pool->cpus) && i < atomic_load(&pool->workers); i++)
        pthread_setaffinity_np(pool->threads[i], sizeof pool->cpus, &pool->cpus);
    pthread_mutex_unlock(&pool->changing);
}

void nanoloom_pool_destroy(struct nanoloom_pool *pool)
{
    if (!pool)
        return;
    if (owns(pool, atomic_load(pool->owner))) {
        atomic_store(&pool->stop, 1);
        atomic_fetch_add(&pool->published, 1);
        futex(&pool->published, FUTEX_WAKE_PRIVATE, INT32_MAX);
        for (uint32_t i = 0; i < atomic_load(&pool->workers); i++)
            pthread_join(pool->threads[i], NULL);
    }
    munmap((void *)pool->owner, sizeof *pool->owner);
    free(pool);
}

int nanoloom_pool_threads(const struct nanoloom_pool *pool)
{
    return (int)atomic_load(&pool->workers) + 1;
}

/* Sleeps until a caller leaves; for a moment where there may be another reason to end. */
static void wait_for_leave(struct nanoloom_pool *pool, uint32_t callers, bool briefly)
{
    struct timespec moment = {0, LOOK_NANOSECONDS};
    atomic_fetch_add(&pool->waiting, 1);
    syscall(SYS_futex, &pool->callers, FUTEX_WAIT_PRIVATE, callers,
            briefly ? &moment : NULL, NULL, 0);
    atomic_fetch_sub(&pool->waiting, 1);
}

int nanoloom_pool_enter(void *context, const struct nanoloom_control *control)
{
    struct nanoloom_pool *pool = ((const struct nanoloom_member *)context)->pool;
    make_own(pool);
    uint32_t callers = atomic_load(&pool->callers);
    for (;;) {
        int stopped = nanoloom_stopped(control);
        if (stopped)
            return stopped;
        if (callers >= bound_of(pool)) {
            wait_for_leave(pool, callers, control != NULL);
            callers = atomic_load(&pool->callers);
        } else if (atomic_compare_exchange_weak(&pool->callers, &callers, callers + 1)) {
            return NANOLOOM_OK;
        }
    }
}

void nanoloom_pool_leave(void *context)
{
    struct nanoloom_pool *pool = ((const struct nanoloom_member *)context)->pool;
    atomic_fetch_sub(&pool->callers, 1);
    if (atomic_load(&pool->waiting))
        futex(&pool->callers, FUTEX_WAKE_PRIVATE, 1);
}

void nanoloom_pool_keep_apart(struct nanoloom_pool *pool)
{
    int here = sched_getcpu();
    if (here < 0 || here == pool->avoided)
        return;
    cpu_set_t others = pool->cpus;
    CPU_CLR(here, &others);
    uint32_t workers = atomic_load(&pool->workers);
    if (CPU_COUNT(&others) < (int)workers)
        return;
    for (uint32_t i = 0; i < workers; i++)
        pthread_setaffinity_np(pool->threads[i], sizeof others, &others);
    pool->avoided = here;
}

