"""This machine as a target, from the cache: LLVM is asked once a machine."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

from nanoloom.cache import Cache, key
from nanoloom.fork_lock import wait_for_compiler
from nanoloom.target.by_name import INSTRUCTION_SETS
from nanoloom.target.facts import Cache as Caches
from nanoloom.target.facts import MatrixUnit, Target, VectorUnit

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SVE_LENGTH = Path("/proc/sys/abi/sve_default_vector_length")
# What /proc/cpuinfo says of a CPU on x86, AArch64 and RISC-V that is true of it at the
# next start, too: no clock rates, no numbers of cores.
_LASTING = frozenset(
    (
        "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
        "CPU implementer", "CPU architecture", "CPU variant", "CPU part",
        "CPU revision", "Features", "isa", "uarch", "mmu", "mvendorid", "marchid",
    )
)  # fmt: skip


def host(cache: Cache) -> Target:
    """`nanoloom.target.host.host()`, remembered for this CPU and this nanoloom.

    It asks the kernel for tile registers as that does, in every process.
    Raises Unsupported for a machine that nanoloom does not know, or that lacks what
    NANOLOOM_HOST names.
    """
    from nanoloom.target.host import enable_amx, held_to, this_machine

    name = _name(enable_amx())
    known = cache.get(name)
    if known is not None:
        return held_to(_remembered(known))
    with wait_for_compiler():
        found = this_machine()
    cache.put(name, json.dumps(to_dict(found)).encode())
    return held_to(found)


@functools.cache
def _name(has_tiles: bool) -> str:
    """This machine's name in the cache: a process asks several times for each model,
    and the kernel writes the file that tells machines apart anew for every CPU."""
    return key("host", identity(), has_tiles)


@functools.lru_cache(maxsize=1)
def _remembered(known: bytes) -> Target:
    return from_dict(json.loads(known))


def identity(
    cpuinfo: Path = _CPUINFO, caches: Path = _CACHES, sve: Path = _SVE_LENGTH
) -> tuple[str, ...]:
    """What tells this CPU from another: the same at every start of the machine."""
    lines = {
        line
        for line in _text(cpuinfo).splitlines()
        if line.partition(":")[0].strip() in _LASTING
    }
    levels = [
        f"{path.parent.name} {path.name} {_text(path).strip()}"
        for index in sorted(caches.glob("index*"))
        for path in (index / "type", index / "level", index / "size")
    ]
    return (*sorted(lines), *levels, _text(sve).strip())


def _text(path: Path) -> str:
    """A file's text, "" where there is none to read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def to_dict(target: Target) -> dict[str, Any]:
    """A target as JSON takes it."""
    facts = dataclasses.asdict(target)
    plain = {"isa": target.isa.name, "extensions": sorted(target.extensions)}
    return {**facts, **plain}


def from_dict(facts: dict[str, Any]) -> Target:
    """The inverse of `to_dict`."""
    made = dict(facts)
    made["isa"] = INSTRUCTION_SETS[facts["isa"]]
    unit = VectorUnit(**facts["vector"])
    # JSON has no tuples.
    rates, latencies = (tuple(map(tuple, x)) for x in (unit.rates, unit.latencies))
    made["vector"] = dataclasses.replace(unit, rates=rates, latencies=latencies)
    made["caches"] = Caches(**facts["caches"])
    made["extensions"] = frozenset(facts["extensions"])
    if facts["matrix"] is not None:
        made["matrix"] = MatrixUnit(**facts["matrix"])
    return Target(**made)
