"""Which CPUs are chosen, of machines as their /sys describes them."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from nanoloom.runtime import node_memory
from nanoloom.runtime.topology import (
    CPUS,
    NODES,
    Topology,
    memory_nodes,
    numbers,
    workers_cpus,
)


def machine(
    nodes: list[str],
    siblings: list[str] | None = None,
    kinds: tuple[str, str] | None = None,
    capacities: dict[int, int] | None = None,
) -> dict[str, str]:
    """The files: CPUs of each node, those that share a core, fast and slow ones."""
    files = {f"{NODES}/online": f"0-{len(nodes) - 1}\n"}
    files |= {f"{NODES}/node{n}/cpulist": f"{x}\n" for n, x in enumerate(nodes)}
    for group in siblings or []:
        for cpu in numbers(group):
            name = f"{CPUS}/cpu{cpu}/topology/thread_siblings_list"
            files[name] = f"{group}\n"
    for name, cpus in zip(("core", "atom"), kinds or (), strict=False):
        files[f"/sys/devices/cpu_{name}/cpus"] = f"{cpus}\n"
    for cpu, speed in (capacities or {}).items():
        files[f"{CPUS}/cpu{cpu}/cpu_capacity"] = f"{speed}\n"
    return files


# An Alder Lake 12700: 8 fast cores of two threads each, 4 slow ones of one.
HYBRID = machine(
    ["0-19"], [f"{2 * i}-{2 * i + 1}" for i in range(8)], ("0-15", "16-19")
)
# An RK3588: four slow cores and four fast ones.
BIG_LITTLE = machine(["0-7"], None, None, {i: 1024 if i > 3 else 530 for i in range(8)})
# Two sockets of four cores, two threads each.
TWO_NODES = machine(
    ["0-3,8-11", "4-7,12-15"], [f"{i},{i + 8}" for i in range(8)]
)  # fmt: skip
PLAIN = machine(["0-3"])
BARE: dict[str, str] = {}  # a container without /sys


def read(files: dict[str, str], cpus: str, here: int = 0) -> Topology:
    return Topology.read(numbers(cpus), files.get, here)


@pytest.mark.parametrize(
    ("files", "allowed", "here", "threads", "wanted"),
    [
        (PLAIN, "0-3", 0, 2, None),
        (BARE, "0-3", 0, 2, None),
        (HYBRID, "0-19", 17, 4, "0-15"),
        (HYBRID, "0-19", 0, 8, "0-15"),
        (HYBRID, "0-19", 0, 9, None),
        (HYBRID, "14-19", 17, 1, "14-15"),
        (HYBRID, "16-19", 17, 2, None),
        (BIG_LITTLE, "0-7", 0, 4, "4-7"),
        (BIG_LITTLE, "0-7", 0, 6, None),
        (TWO_NODES, "0-15", 0, 2, "0-3,8-11"),
        (TWO_NODES, "0-15", 13, 4, "4-7,12-15"),
        (TWO_NODES, "0-15", 13, 5, None),
        (TWO_NODES, "2-3,12-15", 2, 2, "2-3"),
        (TWO_NODES, "2-3,12-15", 2, 3, None),
    ],
)
def test_cpus_of_workers(
    files: dict[str, str], allowed: str, here: int, threads: int, wanted: str | None
) -> None:
    found = workers_cpus(read(files, allowed, here), threads)
    assert found == (None if wanted is None else numbers(wanted))


@pytest.mark.parametrize(
    ("files", "here", "threads", "wanted"),
    [
        (PLAIN, 0, 4, None),
        (TWO_NODES, 0, 4, {0}),
        (TWO_NODES, 6, 3, {1}),
        (TWO_NODES, 6, 8, {0, 1}),
    ],
)
def test_nodes_of_memory(
    files: dict[str, str], here: int, threads: int, wanted: set[int] | None
) -> None:
    assert memory_nodes(read(files, "0-15", here), threads) == wanted


def test_memory_goes_where_it_is_kept() -> None:
    """On the one node that is here; a node that no machine has is refused."""
    with mmap.mmap(-1, 1 << 16) as memory:
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        supported = node_memory.keep_on_nodes(start, 1 << 16, {0})
        assert not node_memory.keep_on_nodes(start, 1 << 16, {1000})
        assert not node_memory.keep_on_nodes(start, 1 << 16, set())
        assert supported in (True, False)  # not every kernel has nodes
        memory[:] = b"x" * (1 << 16)
    assert node_memory.policy({3}) != node_memory.policy({0, 1})


def test_lists_of_numbers() -> None:
    assert numbers("0-2,7\n") == {0, 1, 2, 7}
    assert numbers("") == numbers(None) == numbers("junk,-1,a-b") == set()
