"""The thread pool: every task exactly once, whoever calls and whatever forks."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from nanoloom.binary.link import Source, compile_c, link_shared
from nanoloom.binary.stack_frames import FRAME_BYTES
from nanoloom.cache import Cache
from tests.runtime.native import TRIPLE, c_library

HERE = Path(__file__).parent
THREADS = (1, 2, 3, 7)
POOL = ("threads", "pool", "control", "clock")  # of the runtime's files


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("pool")
    library = c_library(HERE / "pool_stress.c", folder, cache, ["stress*"])
    for name in ("stress", "stress_callers", "stress_fork", "stress_lives"):
        getattr(library, name).restype = ctypes.c_int64
    return library


@pytest.mark.parametrize("threads", THREADS)
def test_every_task_is_done_once(pool: ctypes.CDLL, threads: int) -> None:
    assert pool.stress(threads, ctypes.c_int64(3000)) == 0


@pytest.mark.parametrize("threads", THREADS)
def test_pools_begin_and_end(pool: ctypes.CDLL, threads: int) -> None:
    assert pool.stress_lives(threads, ctypes.c_int64(100)) == 0


@pytest.mark.parametrize("threads", (2, 3))
def test_callers_share_a_pool(pool: ctypes.CDLL, threads: int) -> None:
    assert pool.stress_callers(3, threads, 1, ctypes.c_int64(1000)) == 0


def test_callers_have_a_pool_each(pool: ctypes.CDLL) -> None:
    assert pool.stress_callers(3, 2, 0, ctypes.c_int64(1000)) == 0


@pytest.mark.parametrize("threads", THREADS)
def test_forked_children_get_threads_of_their_own(
    pool: ctypes.CDLL, threads: int
) -> None:
    assert pool.stress_fork(threads, 8) == 0


@pytest.mark.parametrize("threads", THREADS)
def test_children_are_known_where_no_page_can_be_cleared(
    threads: int, tmp_path: Path, cache: Cache
) -> None:
    """A system that does not know the advice is asked for the process's number."""
    stub = "int madvise(void *, unsigned long, int);\n"
    stub += "int madvise(void *p, unsigned long n, int a)\n"
    stub += "{ (void)p, (void)n, (void)a; return -1; }"
    stress = Source("pool_stress", (HERE / "pool_stress.c").read_text("utf-8"))
    sources = [*map(Source.of_runtime, POOL), stress, Source("refusing", stub)]
    objects = compile_c(sources, triple=TRIPLE, cache=cache)
    output = tmp_path / "refusing.so"
    link_shared(objects, output, exports=["stress_fork"], cache=cache)
    assert ctypes.CDLL(str(output)).stress_fork(threads, 8) == 0


APART = """
#define _GNU_SOURCE
#include "threads.h"
#include <sched.h>
#include <unistd.h>
static int caller, cpus;
static void look(void *unused, int64_t begin, int64_t end)
{
    cpu_set_t mine;
    (void)unused, (void)begin, (void)end;
    if (gettid() != caller && !sched_getaffinity(0, sizeof mine, &mine))
        cpus = CPU_COUNT(&mine);
    usleep(2000);
}
/* How many CPUs a worker may use after it has slept; 0 if none took part. */
__attribute__((visibility("default"))) int usable(void)
{
    caller = gettid();
    struct nanoloom_pool *pool = nanoloom_pool_create(2);
    struct nanoloom_member member = {pool, 2};
    for (int i = 0; i < 20 && i < 3 + 17 * !cpus; i++) {
        usleep(20000);
        nanoloom_pool_run(&member, look, 0, 8);
    }
    nanoloom_pool_destroy(pool);
    return cpus;
}
"""


STACK = """
#define _GNU_SOURCE
#include "threads.h"
#include <pthread.h>
#include <unistd.h>
static int caller;
static size_t bytes;
static void look(void *unused, int64_t begin, int64_t end)
{
    pthread_attr_t attributes;
    (void)unused, (void)begin, (void)end;
    usleep(2000);
    if (gettid() == caller || pthread_getattr_np(pthread_self(), &attributes))
        return;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
}
/* Bytes of a worker's stack; 0 if none took part. */
__attribute__((visibility("default"))) int stack(void)
{
    caller = gettid();
    struct nanoloom_pool *pool = nanoloom_pool_create(2);
    struct nanoloom_member member = {pool, 2};
    for (int i = 0; i < 50 && !bytes; i++)
        nanoloom_pool_run(&member, look, 0, 8);
    nanoloom_pool_destroy(pool);
    return (int)bytes;
}
"""


def test_stacks_are_small_and_large_enough(tmp_path: Path, cache: Cache) -> None:
    """A frame has up to FRAME_BYTES, and what it calls as many again, with room."""
    sources = [*(Source.of_runtime(x) for x in POOL), Source("stack", STACK)]
    objects = compile_c(sources, triple=TRIPLE, cache=cache)
    output = tmp_path / "stack.so"
    link_shared(objects, output, exports=["stack"], cache=cache)
    assert 4 * FRAME_BYTES <= ctypes.CDLL(str(output)).stack() <= 16 * FRAME_BYTES


def test_a_worker_wakes_beside_its_caller(tmp_path: Path, cache: Cache) -> None:
    """Not on the caller's CPU, unless that is the only one."""
    sources = [*(Source.of_runtime(x) for x in POOL), Source("apart", APART)]
    objects = compile_c(sources, triple=TRIPLE, cache=cache)
    output = tmp_path / "apart.so"
    link_shared(objects, output, exports=["usable"], cache=cache)
    every = len(os.sched_getaffinity(0))
    assert ctypes.CDLL(str(output)).usable() == max(1, every - 1)
