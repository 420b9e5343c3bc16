"""Which CPUs suit a number of threads: a node of memory's own, fast cores first."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nanoloom.runtime.threads import ReadText

CPUS, NODES = "/sys/devices/system/cpu", "/sys/devices/system/node"
# Kinds of cores on x86, each with a file of its CPUs; Linux has no capacity for them.
_FAST, _SLOW = "/sys/devices/cpu_core/cpus", "/sys/devices/cpu_atom/cpus"


@dataclass(frozen=True)
class Cpu:
    """number: Linux's.  speed: beside the others of a machine.  core: the least of the
    CPUs that share its units.  node: of memory."""

    number: int
    speed: int
    core: int
    node: int


@dataclass(frozen=True)
class Topology:
    """The CPUs that a process may use, and the one that it is on."""

    cpus: tuple[Cpu, ...]
    here: int = 0

    @classmethod
    def of_system(cls) -> Topology:
        """This machine, for the process's affinity as it is now."""
        allowed = frozenset(os.sched_getaffinity(0))
        return _read_once(allowed)

    @classmethod
    def read(cls, allowed: Iterable[int], read: ReadText, here: int) -> Topology:
        """As the files of /sys say.  read: their text, None where there is none."""
        nodes = {
            cpu: node
            for node in numbers(read(f"{NODES}/online"))
            for cpu in numbers(read(f"{NODES}/node{node}/cpulist"))
        }
        fast, slow = numbers(read(_FAST)), numbers(read(_SLOW))
        found: list[Cpu] = []
        for cpu in sorted(allowed):
            folder = f"{CPUS}/cpu{cpu}"
            speed = _number(read(f"{folder}/cpu_capacity"))
            if fast and slow:
                speed = int(cpu in fast)
            shared = numbers(read(f"{folder}/topology/thread_siblings_list"))
            found.append(Cpu(cpu, speed, min(shared, default=cpu), nodes.get(cpu, 0)))
        return cls(tuple(found), here)


def workers_cpus(topology: Topology, threads: int) -> frozenset[int] | None:
    """Where workers of so many threads belong; None for anywhere.

    Whole classes of equal cores of a node, so that processes which choose alike still
    find room beside each other: of the node that the process is on, then of others,
    the fast ones first, until there is a core for each thread.
    """
    cpus = topology.cpus
    home = next((x.node for x in cpus if x.number == topology.here), 0)
    classes = sorted({(x.node != home, x.node, -x.speed) for x in cpus})
    chosen: set[Cpu] = set()
    for _, node, speed in classes:
        chosen |= {x for x in cpus if (x.node, -x.speed) == (node, speed)}
        if len({x.core for x in chosen}) >= threads:
            break
    if len(chosen) == len(cpus):
        return None
    return frozenset(x.number for x in chosen)


def memory_nodes(topology: Topology, threads: int) -> frozenset[int] | None:
    """The nodes whose memory such workers should have; None on a machine of one."""
    if len({x.node for x in topology.cpus}) < 2:
        return None
    chosen = workers_cpus(topology, threads)
    used = [x for x in topology.cpus if chosen is None or x.number in chosen]
    return frozenset(x.node for x in used)


def numbers(text: str | None) -> frozenset[int]:
    """Of a list of Linux's: `0-3,8`; none where there is no list."""
    found: set[int] = set()
    for part in (text or "").strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found |= {*range(int(first), int(last or first) + 1)}
    return frozenset(found)


def _number(text: str | None) -> int:
    word = (text or "").strip()
    return int(word) if word.isdecimal() else 0


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


@functools.lru_cache(maxsize=8)
def _read_once(allowed: frozenset[int]) -> Topology:
    """Reading hundreds of files takes longer than loading a program."""
    return Topology.read(allowed, _text, _here())


def _here() -> int:
    """The CPU that this thread is on: field 39 of its line in /proc."""
    line = _text("/proc/thread-self/stat") or ""
    fields = line.rpartition(")")[2].split()
    return int(fields[36]) if len(fields) > 36 else 0
