/* The thread pool.  Workers spin a short while for the next fork, then sleep on a futex.
 *
 * One 64-bit word, `claim`, holds the number of the job (high half) and its unclaimed tasks
 * (low half).  A thread claims a chunk by compare-and-swap, so one that comes late, after
 * its job has ended, can never take tasks of that job or mix up two jobs.  The caller waits
 * for finished tasks, not for arrived workers: a worker the system has put aside delays
 * nobody. */
#ifdef NANOLOOM_SINGLE_THREAD

#include "threads.h"

#include <stddef.h>

struct nanoloom_pool {
    int threads;
};

static struct nanoloom_pool only = {1};

struct nanoloom_pool *nanoloom_pool_create(int threads)
{
    (void)threads;
    return &only;
}

void nanoloom_pool_destroy(struct nanoloom_pool *pool)
{
    (void)pool;
}

int nanoloom_pool_threads(const struct nanoloom_pool *pool)
{
    return pool->threads;
}

void nanoloom_pool_run(void *pool, nanoloom_task task, void *argument, int64_t tasks)
{
    (void)pool;
    task(argument, 0, tasks);
}

#else

#define _GNU_SOURCE
#include "threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    CACHE_LINE = 64,
    SPIN_NANOSECONDS = 50000, /* a few futex wake-ups; steps follow each other faster */
    SPINS_PER_LOOK_AT_CLOCK = 32,
    CHUNKS_PER_THREAD = 2, /* of what is left: chunks shrink towards the end of a job */
    FEW_TASKS = 8, /* a thread: one chunk then, tasks fetch what the next one reads */
    STACK_BYTES = 256 << 10 /* tasks need 64 KiB, the C library some of its own */
};

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
    alignas(CACHE_LINE) _Atomic uint32_t busy; /* a caller holds the pool */
    _Atomic int owner;                         /* the process whose workers these are */
    int wanted;                                /* workers asked for */
    int workers;                               /* workers running */
    int avoided;                               /* the CPU they keep off, -1 for none */
    cpu_set_t cpus;                            /* those of the thread that made the pool */
    pthread_t threads[];
};

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` does nothing on most cores */
#endif
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* True when *word has become `value` (wanted) or left it (not wanted) within the spin. */
static bool spin(_Atomic uint32_t *word, uint32_t value, bool wanted)
{
    for (int64_t end = 0, time = 0; time <= end; time = now()) {
        for (int i = 0; i < SPINS_PER_LOOK_AT_CLOCK; i++) {
            uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
            if ((seen == value) == wanted)
                return true;
            pause_core();
        }
        if (!end)
            end = now() + SPIN_NANOSECONDS;
    }
    return false;
}

static void finish(struct nanoloom_pool *pool, uint32_t chunk, uint32_t tasks)
{
    if (atomic_fetch_add(&pool->finished, chunk) + chunk == tasks &&
        atomic_load(&pool->caller_sleeps))
        futex(&pool->finished, FUTEX_WAKE_PRIVATE, 1);
}

/* Claims and does tasks until none is left to claim. */
static void take_part(struct nanoloom_pool *pool)
{
    uint64_t claim = atomic_load_explicit(&pool->claim, memory_order_acquire);
    for (uint32_t left; (left = (uint32_t)claim) > 0;) {
        nanoloom_task task = atomic_load_explicit(&pool->task, memory_order_relaxed);
        void *argument = atomic_load_explicit(&pool->argument, memory_order_relaxed);
        uint32_t tasks = atomic_load_explicit(&pool->tasks, memory_order_relaxed);
        uint32_t share = (uint32_t)(pool->workers + 1);
        if (left > FEW_TASKS * share)
            share *= CHUNKS_PER_THREAD;
        uint32_t chunk = left / share + (left < share);
        if (!atomic_compare_exchange_weak_explicit(&pool->claim, &claim, claim - chunk,
                                                   memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        int64_t begin = tasks - left;
        task(argument, begin, begin + chunk);
        finish(pool, chunk, tasks);
        claim = atomic_load_explicit(&pool->claim, memory_order_acquire);
    }
}

static void *work(void *context)
{
    struct nanoloom_pool *pool = context;
    uint32_t seen = 0;
    while (!atomic_load(&pool->stop)) {
        if (!spin(&pool->published, seen, false)) {
            atomic_fetch_add(&pool->sleepers, 1);
            futex(&pool->published, FUTEX_WAIT_PRIVATE, seen);
            atomic_fetch_sub(&pool->sleepers, 1);
        }
        seen = atomic_load(&pool->published);
        take_part(pool);
    }
    return NULL;
}

/* Starts the workers with all signals blocked: those are the caller's to handle. */
static void start(struct nanoloom_pool *pool)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pool->avoided = -1;
    if (sched_getaffinity(0, sizeof pool->cpus, &pool->cpus))
        CPU_ZERO(&pool->cpus);
    int started = 0;
    while (started < pool->wanted &&
           !pthread_create(&pool->threads[started], &attributes, work, pool))
        started++;
    pool->workers = started;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct nanoloom_pool *nanoloom_pool_create(int threads)
{
    int workers = threads > 1 ? threads - 1 : 0;
    size_t bytes = sizeof(struct nanoloom_pool) + (size_t)workers * sizeof(pthread_t);
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *memory;
    if (posix_memalign(&memory, CACHE_LINE, bytes))
        return NULL;
    struct nanoloom_pool *pool = memory;
    *pool = (struct nanoloom_pool){.wanted = workers};
    start(pool);
    atomic_store(&pool->owner, getpid());
    return pool;
}

void nanoloom_pool_destroy(struct nanoloom_pool *pool)
{
    if (!pool)
        return;
    if (atomic_load(&pool->owner) == getpid()) {
        atomic_store(&pool->stop, 1);
        atomic_fetch_add(&pool->published, 1);
        futex(&pool->published, FUTEX_WAKE_PRIVATE, INT32_MAX);
        for (int i = 0; i < pool->workers; i++)
            pthread_join(pool->threads[i], NULL);
    }
    free(pool);
}

int nanoloom_pool_threads(const struct nanoloom_pool *pool)
{
    return pool->workers + 1;
}

/* True when the workers live in this process.  A forked child has none: it starts new ones,
 * from a state as after creation, since whatever held the pool stayed with the parent. */
static bool has_workers(struct nanoloom_pool *pool)
{
    if (!pool->wanted)
        return false; /* steps of recurrences take less time than getpid */
    int process = getpid();
    int owner = atomic_load(&pool->owner);
    if (owner == process)
        return pool->workers > 0;
    if (!owner || !atomic_compare_exchange_strong(&pool->owner, &owner, 0))
        return false; /* another thread of the child is at it */
    atomic_store(&pool->claim, 0);
    atomic_store(&pool->published, 0);
    atomic_store(&pool->sleepers, 0);
    atomic_store(&pool->caller_sleeps, 0);
    atomic_store(&pool->busy, 0);
    start(pool);
    atomic_store(&pool->owner, process);
    return pool->workers > 0;
}

/* A sleeping worker is often woken on its waker's CPU and waits there until the system
 * moves it, milliseconds later: on virtual machines an idle CPU does not look idle. */
static void keep_apart(struct nanoloom_pool *pool)
{
    int here = sched_getcpu();
    if (here < 0 || here == pool->avoided)
        return;
    cpu_set_t others = pool->cpus;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) < pool->workers)
        return;
    for (int i = 0; i < pool->workers; i++)
        pthread_setaffinity_np(pool->threads[i], sizeof others, &others);
    pool->avoided = here;
}

static void publish(struct nanoloom_pool *pool, nanoloom_task task, void *argument,
                    uint32_t tasks)
{
    uint32_t job = atomic_load(&pool->published) + 1;
    atomic_store_explicit(&pool->task, task, memory_order_relaxed);
    atomic_store_explicit(&pool->argument, argument, memory_order_relaxed);
    atomic_store_explicit(&pool->tasks, tasks, memory_order_relaxed);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->claim, (uint64_t)job << 32 | tasks, memory_order_release);
    atomic_store(&pool->published, job);
    uint32_t sleepers = atomic_load(&pool->sleepers);
    if (sleepers) { /* the caller takes one share itself */
        keep_apart(pool);
        futex(&pool->published, FUTEX_WAKE_PRIVATE, sleepers < tasks ? sleepers : tasks - 1);
    }
}

static void wait_for(struct nanoloom_pool *pool, uint32_t tasks)
{
    if (spin(&pool->finished, tasks, true))
        return;
    atomic_store(&pool->caller_sleeps, 1);
    for (uint32_t done; (done = atomic_load(&pool->finished)) != tasks;)
        futex(&pool->finished, FUTEX_WAIT_PRIVATE, done);
    atomic_store(&pool->caller_sleeps, 0);
}

void nanoloom_pool_run(void *context, nanoloom_task task, void *argument, int64_t tasks)
{
    struct nanoloom_pool *pool = context;
    if (tasks < 2 || !has_workers(pool) || atomic_exchange(&pool->busy, 1)) {
        task(argument, 0, tasks);
        return;
    }
    publish(pool, task, argument, (uint32_t)tasks);
    take_part(pool);
    wait_for(pool, (uint32_t)tasks);
    atomic_store_explicit(&pool->busy, 0, memory_order_release);
}

#endif
