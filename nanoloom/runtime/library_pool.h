/* The threads of a library's handles: one pool, as long as one of them is there. */
#ifndef NANOLOOM_LIBRARY_POOL_H
#define NANOLOOM_LIBRARY_POOL_H

struct nanoloom_pool;

/* The pool, with so many threads at least; NULL when memory is out.  As many compute at
 * once as this process may use CPUs, or as the most that was asked for. */
struct nanoloom_pool *nanoloom_library_pool_take(int threads);

/* One handle less; the last one ends the threads.  No run of it may be under way. */
void nanoloom_library_pool_give_back(void);

#endif
