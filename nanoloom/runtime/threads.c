/* The thread pool.  Workers spin a short while for the next fork, then sleep on a futex.
 *
 * One 64-bit word, `claim`, holds the number of the job (high half) and its unclaimed tasks
 * (low half).  A thread claims a chunk by compare-and-swap, so one that comes late, after
 * its job has ended, can never take tasks of that job or mix up two jobs.  The caller waits
 * for finished tasks, not for arrived workers: a worker the system has put aside delays
 * nobody.
 *
 * Callers share the workers.  `bound` threads compute at once: each caller at work is one
 * of them, so as many workers take part as callers leave room for. */
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

void nanoloom_pool_grow(struct nanoloom_pool *pool, int threads)
{
    (void)pool;
    (void)threads;
}

void nanoloom_pool_bound(struct nanoloom_pool *pool, int threads)
{
    (void)pool;
    (void)threads;
}

void nanoloom_pool_place(struct nanoloom_pool *pool, const uint64_t *words, int count)
{
    (void)pool;
    (void)words;
    (void)count;
}

void nanoloom_pool_destroy(struct nanoloom_pool *pool)
{
    (void)pool;
}

int nanoloom_pool_enter(void *member, const struct nanoloom_control *control)
{
    (void)member;
    (void)control;
    return NANOLOOM_OK;
}

void nanoloom_pool_leave(void *member)
{
    (void)member;
}

int nanoloom_pool_threads(const struct nanoloom_pool *pool)
{
    return pool->threads;
}

void nanoloom_pool_run(void *member, nanoloom_task task, void *argument, int64_t tasks)
{
    (void)member;
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

#include "control.h"

enum {
    CACHE_LINE = 64,
    SPIN_NANOSECONDS = 50000, /* a few futex wake-ups; steps follow each other faster */
    SPINS_PER_LOOK_AT_CLOCK = 32,
    CHUNKS_PER_THREAD = 2, /* of what is left: chunks shrink towards the end of a job */
    LOOK_NANOSECONDS = 5000000, /* how often one who waits looks whether it still should */
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
    _Atomic uint32_t most;                       /* workers that may take part */
    alignas(CACHE_LINE) _Atomic uint32_t joined; /* workers that do */
    alignas(CACHE_LINE) _Atomic uint32_t busy;   /* a caller holds the workers */
    _Atomic int owner;                           /* the process whose workers these are */
    _Atomic uint32_t callers;                    /* runs under way */
    _Atomic uint32_t waiting;                    /* callers that are not let in yet */
    _Atomic uint32_t bound;   /* threads that compute at once; 0 for all there are */
    _Atomic uint32_t workers; /* running */
    int wanted;               /* workers asked for */
    int avoided;              /* the CPU they keep off, -1 for none */
    cpu_set_t cpus;           /* theirs: of the thread that made the pool */
    pthread_mutex_t changing; /* held by whoever starts workers */
    pthread_t threads[NANOLOOM_MOST_THREADS];
};

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Threads that may compute at once. */
static uint32_t bound_of(struct nanoloom_pool *pool)
{
    uint32_t bound = atomic_load_explicit(&pool->bound, memory_order_relaxed);
    return bound ? bound : atomic_load(&pool->workers) + 1;
}

/* Workers that all callers leave room for, the one that asks among them. */
static uint32_t room(struct nanoloom_pool *pool)
{
    uint32_t bound = bound_of(pool), callers = atomic_load(&pool->callers);
    callers += !callers;
    return bound > callers ? bound - callers : 0;
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` does nothing on most cores */
#endif
}

/* True when *word has become `value` (wanted) or left it (not wanted) within the spin. */
static bool spin(_Atomic uint32_t *word, uint32_t value, bool wanted)
{
    for (int64_t end = 0, time = 0; time <= end; time = nanoloom_now()) {
        for (int i = 0; i < SPINS_PER_LOOK_AT_CLOCK; i++) {
            uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
            if ((seen == value) == wanted)
                return true;
            pause_core();
        }
        if (!end)
            end = nanoloom_now() + SPIN_NANOSECONDS;
    }
    return false;
}

static void finish(struct nanoloom_pool *pool, uint32_t chunk, uint32_t tasks)
{
    if (atomic_fetch_add(&pool->finished, chunk) + chunk == tasks &&
        atomic_load(&pool->caller_sleeps))
        futex(&pool->finished, FUTEX_WAKE_PRIVATE, 1);
}

/* Whether a worker is to leave a job since callers have come; then it has left. */
static bool gives_way(struct nanoloom_pool *pool)
{
    uint32_t joined = atomic_load(&pool->joined);
    while (joined > smaller(atomic_load(&pool->most), room(pool)))
        if (atomic_compare_exchange_weak(&pool->joined, &joined, joined - 1))
            return true;
    return false;
}

/* Claims and does tasks until none is left to claim: true; or gives way to callers. */
static bool take_part(struct nanoloom_pool *pool, bool worker)
{
    uint64_t claim = atomic_load_explicit(&pool->claim, memory_order_acquire);
    for (uint32_t left; (left = (uint32_t)claim) > 0;) {
        if (worker && gives_way(pool))
            return false;
        nanoloom_task task = atomic_load_explicit(&pool->task, memory_order_relaxed);
        void *argument = atomic_load_explicit(&pool->argument, memory_order_relaxed);
        uint32_t tasks = atomic_load_explicit(&pool->tasks, memory_order_relaxed);
        uint32_t share = atomic_load_explicit(&pool->most, memory_order_relaxed) + 1;
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
    return true;
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
        atomic_fetch_add(&pool->joined, 1);
        if (gives_way(pool) || !take_part(pool, true))
            continue;
        atomic_fetch_sub(&pool->joined, 1);
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
    for (int i = (int)atomic_load(&pool->workers); i < pool->wanted; i++) {
        if (pthread_create(&pool->threads[i], &attributes, work, pool))
            break;
        if (CPU_COUNT(&pool->cpus))
            pthread_setaffinity_np(pool->threads[i], sizeof pool->cpus, &pool->cpus);
        atomic_store(&pool->workers, (uint32_t)i + 1);
    }
    pool->avoided = -1;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* True when the pool is this process's.  A forked child's has no workers: it starts new
 * ones, from a state as after creation, since whatever held the pool stayed with the
 * parent; false while another thread of the child is at it. */
static bool is_own(struct nanoloom_pool *pool)
{
    int process = getpid();
    int owner = atomic_load(&pool->owner);
    if (owner == process)
        return true;
    if (!owner || !atomic_compare_exchange_strong(&pool->owner, &owner, 0))
        return false;
    pool->changing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    _Atomic uint32_t *words[] = {&pool->published, &pool->sleepers, &pool->caller_sleeps,
                                 &pool->joined,    &pool->busy,     &pool->callers,
                                 &pool->waiting,   &pool->workers};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        atomic_store(words[i], 0);
    atomic_store(&pool->claim, 0);
    start(pool);
    atomic_store(&pool->owner, process);
    return true;
}

/* The same, as soon as no other thread of a child is at it. */
static void make_own(struct nanoloom_pool *pool)
{
    while (!is_own(pool))
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
    if (sched_getaffinity(0, sizeof pool->cpus, &pool->cpus))
        CPU_ZERO(&pool->cpus);
    atomic_store(&pool->owner, getpid());
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
    if (atomic_load(&pool->owner) == getpid()) {
        atomic_store(&pool->stop, 1);
        atomic_fetch_add(&pool->published, 1);
        futex(&pool->published, FUTEX_WAKE_PRIVATE, INT32_MAX);
        for (uint32_t i = 0; i < atomic_load(&pool->workers); i++)
            pthread_join(pool->threads[i], NULL);
    }
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

/* A sleeping worker is often woken on its waker's CPU and waits there until the system
 * moves it, milliseconds later: on virtual machines an idle CPU does not look idle. */
static void keep_apart(struct nanoloom_pool *pool)
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

static void publish(struct nanoloom_pool *pool, nanoloom_task task, void *argument,
                    uint32_t tasks, uint32_t most)
{
    uint32_t job = atomic_load(&pool->published) + 1;
    atomic_store_explicit(&pool->task, task, memory_order_relaxed);
    atomic_store_explicit(&pool->argument, argument, memory_order_relaxed);
    atomic_store_explicit(&pool->tasks, tasks, memory_order_relaxed);
    atomic_store_explicit(&pool->most, most, memory_order_relaxed);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->claim, (uint64_t)job << 32 | tasks, memory_order_release);
    atomic_store(&pool->published, job);
    uint32_t sleepers = atomic_load(&pool->sleepers);
    if (sleepers) { /* the caller takes one share itself */
        keep_apart(pool);
        futex(&pool->published, FUTEX_WAKE_PRIVATE, smaller(most, tasks - 1));
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

/* Workers that may help this member now. */
static uint32_t helpers(const struct nanoloom_member *member)
{
    struct nanoloom_pool *pool = member->pool;
    if (member->threads < 2 || !is_own(pool))
        return 0; /* steps of recurrences take less time than getpid */
    uint32_t most = smaller(atomic_load(&pool->workers), room(pool));
    return smaller((uint32_t)member->threads - 1, most);
}

void nanoloom_pool_run(void *context, nanoloom_task task, void *argument, int64_t tasks)
{
    const struct nanoloom_member *member = context;
    struct nanoloom_pool *pool = member->pool;
    uint32_t most = tasks < 2 ? 0 : helpers(member);
    if (!most || atomic_exchange(&pool->busy, 1)) {
        task(argument, 0, tasks);
        return;
    }
    publish(pool, task, argument, (uint32_t)tasks, most);
    take_part(pool, false);
    wait_for(pool, (uint32_t)tasks);
    atomic_store_explicit(&pool->busy, 0, memory_order_release);
}

#endif
