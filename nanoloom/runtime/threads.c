/* The thread pool.  Workers spin a short while for the next fork, then sleep on a futex.
 *
 * One 64-bit word, `claim`, holds the number of the job (high half) and its unclaimed tasks
 * (low half).  A thread claims a chunk by compare-and-swap, so one that comes late, after
 * its job has ended, can never take tasks of that job or mix up two jobs.  The caller waits
 * for finished tasks, not for arrived workers: a worker the system has put aside delays
 * nobody.
 */
#define _GNU_SOURCE
#include "pool.h"

#include "clock.h"

enum {
    SPIN_NANOSECONDS = 50000, /* a few futex wake-ups; steps follow each other faster */
    SPINS_PER_LOOK_AT_CLOCK = 32,
    CHUNKS_PER_THREAD = 2, /* of what is left: chunks shrink towards the end of a job */
    FEW_TASKS = 8 /* a thread: one chunk then, tasks fetch what the next one reads */
};

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

void *nanoloom_pool_work(void *context)
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
        nanoloom_pool_keep_apart(pool);
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
    if (member->threads < 2 || !nanoloom_pool_is_own(pool))
        return 0;
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
