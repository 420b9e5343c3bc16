/* Working memory straight from the system: the kernel's pages, huge ones where it can. */
#define _GNU_SOURCE
#include "arena.h"

#include <stddef.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

static size_t mapped(int64_t bytes)
{
    size_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    size_t wanted = bytes > 0 ? (size_t)bytes : 1;
    return (wanted + page - 1) / page * page;
}

void *nanoloom_arena_create(int64_t bytes)
{
    size_t size = mapped(bytes);
    size_t slack = size >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *start = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (!slack)
        return start;
    size_t front = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
    if (front)
        munmap(start, front);
    if (slack - front)
        munmap(start + front + size, slack - front);
    madvise(start + front, size, MADV_HUGEPAGE); /* a wish: refusal costs only speed */
    return start + front;
}

void nanoloom_arena_destroy(void *arena, int64_t bytes)
{
    if (arena)
        munmap(arena, mapped(bytes));
}
