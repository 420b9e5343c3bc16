"""How many threads: affinity, cgroup quota and OMP_NUM_THREADS, from given files."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

from nanoloom.api.loaded import load
from nanoloom.binary.link import Source, compile_c, link_shared
from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.errors import Error
from nanoloom.runtime.threads import (
    assigned_threads,
    default_threads,
    thread_count,
)
from tests.runtime.native import TRIPLE

V2 = {"/proc/self/cgroup": "0::/user/box\n"}
V1 = {"/proc/self/cgroup": "9:name=systemd:/\n4:cpu,cpuacct:/box\n2:cpuset:/a\n"}


def count(
    cpus: int, files: dict[str, str], environment: dict[str, str] | None = None
) -> int:
    return default_threads(cpus=cpus, environment=environment or {}, read=files.get)


def test_affinity_alone() -> None:
    assert count(6, {}) == 6


@pytest.mark.parametrize(
    ("quota", "threads"),
    [("max 100000", 8), ("300000 100000", 3), ("150000 100000", 1), ("5000 100000", 1)],
)
def test_unified_quota_is_rounded_down(quota: str, threads: int) -> None:
    assert count(8, V2 | {"/sys/fs/cgroup/user/box/cpu.max": quota}) == threads


def test_tightest_enclosing_group_decides() -> None:
    files = {
        "/sys/fs/cgroup/user/box/cpu.max": "600000 100000\n",
        "/sys/fs/cgroup/user/cpu.max": "200000 100000\n",
        "/sys/fs/cgroup/cpu.max": "max 100000\n",
    }
    assert count(8, V2 | files) == 2


def test_a_container_sees_its_group_at_the_mount_point() -> None:
    assert count(8, V2 | {"/sys/fs/cgroup/cpu.max": "400000 100000\n"}) == 4


def test_first_version_of_cgroups() -> None:
    files = {
        "/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "250000\n",
        "/sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "50000\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert count(8, V1 | files) == 5


@pytest.mark.parametrize(
    ("wish", "threads"),
    [("3", 3), ("2,4", 2), ("99", 8), ("1024", 8), (" 5 ", 5), ("", 8)],
)
def test_omp_num_threads_is_an_upper_bound(wish: str, threads: int) -> None:
    assert count(8, {}, {"OMP_NUM_THREADS": wish}) == threads


@pytest.mark.parametrize("wish", ["0", "-1", "2.5", "many", "1000000", "9" * 30])
def test_omp_num_threads_that_is_no_number_of_threads(wish: str) -> None:
    with pytest.raises(
        Error, match=r"OMP_NUM_THREADS is .*; give a whole number from 1"
    ):
        count(8, {}, {"OMP_NUM_THREADS": wish})


@pytest.mark.parametrize("given", [1, 2, 1024, np.int8(3), np.uint64(7)])
def test_numbers_of_threads(given: int) -> None:
    assert thread_count(given) == given and type(thread_count(given)) is int


WRONG = [
    0,
    -1,
    1025,
    10**6,
    2**70,
    "2",
    2.5,
    2.0,
    True,
    False,
    np.True_,
    np.float32(2),
    [2],
]


@pytest.mark.parametrize("given", WRONG)
def test_what_is_no_number_of_threads(given: object) -> None:
    for public in (compile, load):
        with pytest.raises(
            Error, match=r"threads is .*; give a whole number from 1 to 1"
        ):
            public("absent.onnx", threads=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "nonsense", "0::", "::::", "a:b"])
def test_unreadable_files_are_no_limit(text: str) -> None:
    files = {"/proc/self/cgroup": text, "/sys/fs/cgroup/cpu.max": "x y"}
    assert count(8, files) == 8


CALLER = """
#include "cpus.h"
__attribute__((visibility("default"))) int count(void);
int count(void) { return nanoloom_default_threads(); }
"""


def test_c_counts_the_same_way(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [Source("caller", CALLER), Source.of_runtime("cpus")]
    objects = compile_c(sources, triple=TRIPLE, cache=cache)
    output = tmp_path / "cpus.so"
    link_shared(objects, output, exports=["count"], cache=cache)
    library = ctypes.CDLL(str(output))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert library.count() == default_threads()
    all_cpus = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(all_cpus)})
        assert library.count() == default_threads() == 1
    finally:
        os.sched_setaffinity(0, all_cpus)
    monkeypatch.setenv("OMP_NUM_THREADS", "1,8")
    assert library.count() == default_threads() == 1


def test_the_own_variable_comes_first() -> None:
    words = {"OMP_NUM_THREADS": "2", "NANOLOOM_THREADS": " 6 "}
    assert count(4, {}, words) == 6
    assert count(4, {}, {"NANOLOOM_THREADS": ""}) == 4
    for wrong in ("0", "many", "-1", "1025"):
        with pytest.raises(Error, match=r"NANOLOOM_THREADS is .*; give a whole number"):
            count(4, {}, {"NANOLOOM_THREADS": wrong})


def test_an_engine_assigns_cpus_and_its_omp_num_threads_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a worker of Ray, which sets the variable to 1 for other libraries."""
    monkeypatch.delenv("NANOLOOM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    all_cpus = default_threads(environment={})
    assert assigned_threads() == all_cpus
    assert assigned_threads(0.5) == assigned_threads(1) == 1
    assert assigned_threads(all_cpus) == all_cpus == assigned_threads(1000)
    monkeypatch.setenv("NANOLOOM_THREADS", "3")
    assert assigned_threads(1) == 3
