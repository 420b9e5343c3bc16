/* Drives the thread pool hard; loaded by test_threads.py. */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

enum { MOST_TASKS = 4096 };

struct work {
    uint32_t seed;
    uint32_t results[MOST_TASKS];
    _Atomic uint32_t visits[MOST_TASKS];
};

static uint32_t mix(uint32_t seed, uint32_t task)
{
    uint32_t value = seed ^ (task * 2654435761u);
    for (int i = 0; i < 20; i++)
        value = value * 1664525u + 1013904223u;
    return value;
}

static void mix_tasks(void *argument, int64_t begin, int64_t end)
{
    struct work *work = argument;
    for (int64_t task = begin; task < end; task++) {
        work->results[task] = mix(work->seed, (uint32_t)task);
        atomic_fetch_add_explicit(&work->visits[task], 1, memory_order_relaxed);
    }
}

/* Tasks not done exactly once, or done wrongly, over `rounds` forks and joins. */
static int64_t rounds_on(struct nanoloom_pool *pool, struct work *work, int64_t rounds)
{
    struct nanoloom_member member = {pool, nanoloom_pool_threads(pool)};
    int64_t wrong = 0;
    for (int64_t round = 0; round < rounds; round++) {
        uint32_t tasks = mix((uint32_t)round, 7) % (round % 50 ? 37 : MOST_TASKS) + 1;
        memset(work->visits, 0, sizeof work->visits[0] * tasks);
        work->seed = (uint32_t)round;
        nanoloom_pool_run(&member, mix_tasks, work, tasks);
        for (uint32_t task = 0; task < tasks; task++)
            wrong += work->visits[task] != 1 ||
                     work->results[task] != mix((uint32_t)round, task);
        if (round % 1000 == 999)
            usleep(200); /* long enough for the workers to fall asleep */
    }
    return wrong;
}

PUBLIC int64_t stress(int threads, int64_t rounds)
{
    struct nanoloom_pool *pool = nanoloom_pool_create(threads);
    struct work *work = calloc(1, sizeof *work);
    int64_t wrong = rounds_on(pool, work, rounds);
    wrong += nanoloom_pool_threads(pool) != threads;
    free(work);
    nanoloom_pool_destroy(pool);
    return wrong;
}

struct caller {
    struct nanoloom_pool *pool;
    int64_t rounds;
    int64_t wrong;
};

static void *call(void *context)
{
    struct caller *caller = context;
    struct work *work = calloc(1, sizeof *work);
    caller->wrong = rounds_on(caller->pool, work, caller->rounds);
    free(work);
    return NULL;
}

/* `callers` threads fork on the same pool, or on one each. */
PUBLIC int64_t stress_callers(int callers, int threads, int one_pool, int64_t rounds)
{
    struct nanoloom_pool *shared = one_pool ? nanoloom_pool_create(threads) : NULL;
    struct caller states[16];
    pthread_t started[16];
    int64_t wrong = 0;
    for (int i = 0; i < callers; i++) {
        states[i].pool = shared ? shared : nanoloom_pool_create(threads);
        states[i].rounds = rounds;
        pthread_create(&started[i], NULL, call, &states[i]);
    }
    for (int i = 0; i < callers; i++) {
        pthread_join(started[i], NULL);
        wrong += states[i].wrong;
        if (!shared)
            nanoloom_pool_destroy(states[i].pool);
    }
    nanoloom_pool_destroy(shared);
    return wrong;
}

/* Threads that took part; more than one needs each to wait for another. */
struct meeting {
    _Atomic int arrived;
    int wanted;
};

static void meet(void *argument, int64_t begin, int64_t end)
{
    struct meeting *meeting = argument;
    (void)begin;
    (void)end;
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < meeting->wanted)
        usleep(10);
}

/* In a forked child: 0 when its pool works and has threads of its own again. */
static int child(struct nanoloom_pool *pool, struct work *work, int threads)
{
    alarm(20); /* a hang ends as a failure */
    int64_t wrong = rounds_on(pool, work, 500);
    struct meeting meeting = {0, threads};
    struct nanoloom_member member = {pool, threads};
    nanoloom_pool_run(&member, meet, &meeting, threads);
    nanoloom_pool_destroy(pool);
    return wrong != 0;
}

/* Forks while another thread keeps the pool busy; children that failed. */
PUBLIC int64_t stress_fork(int threads, int children)
{
    struct nanoloom_pool *pool = nanoloom_pool_create(threads);
    struct work *work = calloc(1, sizeof *work);
    struct caller busy = {pool, 20000, 0};
    pthread_t thread;
    int64_t failed = rounds_on(pool, work, 100);
    pthread_create(&thread, NULL, call, &busy);
    for (int i = 0; i < children; i++) {
        pid_t process = fork();
        if (!process)
            _exit(child(pool, work, threads));
        int status = 1;
        waitpid(process, &status, 0);
        failed += status != 0;
    }
    pthread_join(thread, NULL);
    failed += busy.wrong + rounds_on(pool, work, 100);
    free(work);
    nanoloom_pool_destroy(pool);
    return failed;
}

/* Pools made and ended, asleep or not. */
PUBLIC int64_t stress_lives(int threads, int64_t lives)
{
    struct work *work = calloc(1, sizeof *work);
    int64_t wrong = 0;
    for (int64_t life = 0; life < lives; life++) {
        struct nanoloom_pool *pool = nanoloom_pool_create(threads);
        wrong += rounds_on(pool, work, life % 3);
        if (life % 16 == 0)
            usleep(200);
        nanoloom_pool_destroy(pool);
    }
    free(work);
    return wrong;
}
