/* The threads of a library's handles: one pool, as long as one of them is there. */
#include "library_pool.h"

#include <pthread.h>

#include "cpus.h"
#include "threads.h"

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct nanoloom_pool *pool;
static int users, most;

struct nanoloom_pool *nanoloom_library_pool_take(int threads)
{
    int assigned = nanoloom_default_threads();
    pthread_mutex_lock(&changing);
    if (!pool)
        pool = nanoloom_pool_create(1);
    struct nanoloom_pool *taken = pool;
    if (taken) {
        users++;
        most = threads > most ? threads : most;
        nanoloom_pool_bound(taken, most > assigned ? most : assigned);
        nanoloom_pool_grow(taken, threads);
    }
    pthread_mutex_unlock(&changing);
    return taken;
}

void nanoloom_library_pool_give_back(void)
{
    pthread_mutex_lock(&changing);
    struct nanoloom_pool *last = --users ? NULL : pool;
    if (last) {
        pool = NULL;
        most = 0;
    }
    pthread_mutex_unlock(&changing);
    nanoloom_pool_destroy(last);
}
