/* How many threads suit this process. */
#ifndef NANOLOOM_CPUS_H
#define NANOLOOM_CPUS_H

/* The CPUs of the affinity mask, bounded by the cgroup's CPU quota and OMP_NUM_THREADS;
 * at least 1.  nanoloom/runtime/threads.py counts the same way. */
int nanoloom_default_threads(void);

/* Asks Linux for the AMX tile registers; 0 when the kernels may use them. */
int nanoloom_request_tiles(void);

#endif
