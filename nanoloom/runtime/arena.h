/* Working memory: zeroed, aligned to 64 bytes, to 2 MB huge pages when it is large. */
#ifndef NANOLOOM_ARENA_H
#define NANOLOOM_ARENA_H

#include <stdint.h>

/* NULL when memory is out. */
void *nanoloom_arena_create(int64_t bytes);

/* `bytes` as given at creation; NULL is allowed. */
void nanoloom_arena_destroy(void *arena, int64_t bytes);

#endif
