"""All programs of a process, and all their callers, share its threads."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nanoloom.binary.link import Source, compile_c, link_shared
from nanoloom.cache import Cache
from nanoloom.runtime.threads import default_threads
from tests.c_libraries import lend_runtime
from tests.runtime.native import TRIPLE

SHARING = r"""
#define _GNU_SOURCE
#include "threads.h"
#include "clock.h"
#include "control.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#define PUBLIC __attribute__((visibility("default")))

static _Atomic int inside, most, wrong;
static struct nanoloom_member member;

static void most_of(_Atomic int *most, int now)
{
    for (int seen = atomic_load(most); seen < now;)
        atomic_compare_exchange_weak(most, &seen, now);
}

static void task(void *done, int64_t begin, int64_t end)
{
    for (; begin < end; begin++)
        atomic_fetch_add((_Atomic int64_t *)done, 1);
}

static void *call(void *rounds)
{
    for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
        _Atomic int64_t done = 0;
        if (nanoloom_pool_enter(&member, NULL))
            atomic_fetch_add(&wrong, 1);
        most_of(&most, atomic_fetch_add(&inside, 1) + 1);
        nanoloom_pool_run(&member, task, &done, 61);
        if (i % 16 == 0)
            usleep(100);
        atomic_fetch_sub(&inside, 1);
        nanoloom_pool_leave(&member);
        if (done != 61)
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

/* The most callers at work at once; -1 where a task was lost or done twice. */
PUBLIC int callers(int count, int threads, int bound, int rounds)
{
    pthread_t started[16];
    member = (struct nanoloom_member){nanoloom_pool_create(threads), threads};
    nanoloom_pool_bound(member.pool, bound);
    atomic_store(&most, 0);
    for (int i = 0; i < count; i++)
        pthread_create(&started[i], NULL, call, (void *)(intptr_t)rounds);
    for (int i = 0; i < count; i++)
        pthread_join(started[i], NULL);
    nanoloom_pool_destroy(member.pool);
    return atomic_load(&wrong) ? -1 : atomic_load(&most);
}

/* What a caller gets whose deadline ends while another one is in; and the number of
 * threads that take part in a job beside another caller. */
PUBLIC int late(int threads)
{
    member = (struct nanoloom_member){nanoloom_pool_create(threads), threads};
    nanoloom_pool_bound(member.pool, 1);
    struct nanoloom_control control = {nanoloom_now() + 20000000, NULL};
    int first = nanoloom_pool_enter(&member, &control);
    int second = nanoloom_pool_enter(&member, &control);
    nanoloom_pool_leave(&member);
    int third = nanoloom_pool_enter(&member, NULL);
    nanoloom_pool_leave(&member);
    nanoloom_pool_destroy(member.pool);
    return first || third ? -1 : second;
}

/* Threads after a pool has grown, twice. */
PUBLIC int grown(int first, int second)
{
    struct nanoloom_pool *pool = nanoloom_pool_create(first);
    nanoloom_pool_grow(pool, second);
    nanoloom_pool_grow(pool, 1);
    int threads = nanoloom_pool_threads(pool);
    nanoloom_pool_destroy(pool);
    return threads;
}
"""


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> ctypes.CDLL:
    pool = [Source.of_runtime(x) for x in ("threads", "pool", "control", "clock")]
    sources = [*pool, Source("sharing", SHARING)]
    objects = compile_c(sources, triple=TRIPLE, cache=cache)
    output = tmp_path_factory.mktemp("sharing") / "sharing.so"
    names = ["callers", "late", "grown"]
    link_shared(objects, output, exports=names, cache=cache)
    return ctypes.CDLL(str(output))


@pytest.mark.parametrize(
    ("count", "threads", "bound"), [(6, 2, 2), (3, 4, 1), (5, 3, 4)]
)
def test_no_more_callers_than_may_compute(
    sharing: ctypes.CDLL, count: int, threads: int, bound: int
) -> None:
    assert 1 <= sharing.callers(count, threads, bound, 400) <= bound


def test_a_deadline_counts_while_waiting(sharing: ctypes.CDLL) -> None:
    assert sharing.late(1) == sharing.late(2) == 14  # NANOLOOM_LATE


def test_pools_grow(sharing: ctypes.CDLL) -> None:
    assert sharing.grown(1, 3) == sharing.grown(3, 2) == 3


PROGRAMS = """
import gc, os, sys, threading
from concurrent.futures import ThreadPoolExecutor
from collections.abc import Iterator
from pathlib import Path
import numpy as np
from onnx.parser import parse_model
import nanoloom
from nanoloom.cache import Cache
from nanoloom.runtime import shared_pool

def program(n, threads):
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[n, {n}] x) ' \\
        f'=> (float[n, {n}] y) {{ e = Exp(x) y = Softmax(e) }}'
    return nanoloom.compile(parse_model(text), threads=threads, cache=STORE)

def tasks():
    return len(os.listdir("/proc/self/task"))

STORE = Cache(Path(sys.argv[1]))
programs = [program(n, threads) for n, threads in ((5, 3), (6, 2), (7, None), (8, 1))]
inputs = [np.ones((301, n), np.float32) for n in (5, 6, 7, 8)]
right = [p({"x": x})["y"] for p, x in zip(programs, inputs)]
import time
before = tasks()
pool = shared_pool._Shared.pool
assert pool.users == 4, pool.users
assert [v.instance.threads for p in programs for v in p.variants._entries and
    [e[0] for e in p.variants._entries.values()]] == [3, 2, ASSIGNED, 1]

def call(i):
    made = programs[i % 4]({"x": inputs[i % 4]})["y"]
    assert made.tobytes() == right[i % 4].tobytes()

with ThreadPoolExecutor(8) as callers:
    list(callers.map(call, range(400)))
assert shared_pool._Shared.pool is pool
workers = max(3, ASSIGNED) - 1
assert int(pool.entry.pool_threads(pool.address)) == workers + 1

child = os.fork()
if not child:
    for i in range(8):
        call(i)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0

first = programs.pop(0)  # the one whose code the pool is
del first
gc.collect()
assert shared_pool._Shared.pool is pool and pool.users == 3
for i in range(3):
    assert programs[i]({"x": inputs[i + 1]})["y"].tobytes() == right[i + 1].tobytes()
threads = tasks()
del programs
gc.collect()
assert shared_pool._Shared.pool is None
assert tasks() == threads - workers
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache, for which the first of these processes compiles."""
    folder = tmp_path_factory.mktemp("store")
    lend_runtime(Cache(folder))
    return folder


@pytest.mark.parametrize("cpus", ["one", "all"])
def test_programs_share_threads(store: Path, cpus: str) -> None:
    """Under the affinity of the process: as many compute as it has CPUs."""
    everything = sorted(os.sched_getaffinity(0))
    kept = everything[:1] if cpus == "one" else everything
    assigned = default_threads(cpus=len(kept), environment={})
    script = PROGRAMS.replace("ASSIGNED", str(assigned))
    begin = f"import os; os.sched_setaffinity(0, {kept})\n"
    words = [sys.executable, "-c", begin + script, str(store)]
    own = {k: v for k, v in os.environ.items() if not k.endswith("_THREADS")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=own)
    assert done.returncode == 0, done.stderr[-3000:]


def groups() -> list[Path]:
    """Where this process may make a control group with a quota of CPUs."""
    first, second = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    files = {first: "cpu.cfs_period_us", second: "cgroup.subtree_control"}
    found = [place for place, name in files.items() if os.access(place / name, os.W_OK)]
    return [x for x in found if x == first or "cpu" in (x / files[x]).read_text()]


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A control group with the time of one CPU."""
    made = Path(request.param, f"nanoloom-test-{os.getpid()}")
    made.mkdir()
    try:
        if (made / "cpu.max").exists():
            (made / "cpu.max").write_text("100000 100000")
        else:
            (made / "cpu.cfs_quota_us").write_text("100000")
        yield made
    finally:
        made.rmdir()


IN_GROUP = """
import os, sys
from collections.abc import Iterator
from pathlib import Path
Path(sys.argv.pop(), "cgroup.procs").write_text(str(os.getpid()))
"""


@pytest.mark.parametrize("group", groups(), indirect=True, ids=str)
def test_a_quota_is_shared(group: Path, store: Path) -> None:
    """Of one CPU: programs that name no number have a thread, others what they ask."""
    script = IN_GROUP + PROGRAMS.replace("ASSIGNED", "1")
    words = [sys.executable, "-c", script, str(store), str(group)]
    own = {k: v for k, v in os.environ.items() if not k.endswith("_THREADS")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=own)
    assert done.returncode == 0, done.stderr[-3000:]
