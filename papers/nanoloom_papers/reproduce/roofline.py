"""The most that a machine can reach on a task: by its arithmetic or by its memory.

    GFLOP/s <= min(peak, bandwidth * operations / bytes)

with the bandwidth of the cache that the task's data fits in when it is run again and
again, as it is here.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from nanoloom.target.facts import Target
from nanoloom.target.peak_loops import SCRATCH_BYTES, module_text
from nanoloom.target.peaks import Peaks, measure
from nanoloom_papers.reproduce.chains import Arithmetic

# The units that an arithmetic may be computed with, by their names in the peaks.
UNITS: dict[Arithmetic, tuple[str, ...]] = {
    "f32": ("f32",),
    "bf16": ("bf16-amx", "bf16", "f32"),
    "bf16-flat": ("bf16-amx", "bf16", "f32"),
    "mixed": ("bf16-amx", "bf16", "f32"),
    "int8": ("u8s8-amx", "u8s8", "s8s8"),
}
LEVEL3_BYTES = 8 << 20  # of each thread: more than a second level holds
TURNS, ROUNDS = 4, 5
Read = Callable[[int, int, int, int], None]  # address, bytes, turns, scratch


@dataclass(frozen=True)
class Limits:
    """Rates measured together: GFLOP/s of a target's units, GB/s of its caches."""

    target: Target
    threads: int
    peaks: Peaks
    level3: float

    def peak(self, arithmetic: Arithmetic) -> float | None:
        """GFLOP/s (int8: GOP/s) of the fastest unit for it; None without one."""
        unit = self.unit(arithmetic)
        return self.peaks.best(unit, self.threads) if unit else None

    def unit(self, arithmetic: Arithmetic) -> str:
        """The name of the fastest unit for it, "" without one."""
        rates = {u: self.peaks.best(u, self.threads) or 0.0 for u in UNITS[arithmetic]}
        best = max(rates, key=lambda unit: rates[unit])
        return best if rates[best] else ""

    def bandwidth(self, size: int) -> tuple[str, float]:
        """The level that so many bytes are read from, and its GB/s."""
        caches = self.target.caches
        if size <= caches.l2 * self.threads:
            return "L2", self.peaks.best("l2", self.threads) or 0.0
        if caches.l3 and size <= caches.l3:
            return "L3", self.level3
        return "memory", self.peaks.best("memory", self.threads) or 0.0

    def seconds(self, arithmetic: Arithmetic, flops: float, size: int) -> float:
        """The least time for so many operations, and to move so many bytes."""
        moving = size / self.bandwidth(size)[1]
        return max(moving, flops / (self.peak(arithmetic) or math.inf)) / 1e9

    def bound(self, peak: float, flops: float, size: int) -> float:
        """The most GFLOP/s for so many operations on so many bytes."""
        return min(peak, self.bandwidth(size)[1] * flops / size)


def limits(target: Target, threads: int) -> Limits:
    """Measure this machine's rates; raises Error if it is not such a target."""
    return Limits(target, threads, measure(target, threads), level3(target, threads))


def level3(target: Target, threads: int) -> float:
    """GB/s that threads read, again and again, of what no second level holds."""
    engine, read = compiled_read(target)
    size = max(LEVEL3_BYTES, 2 * target.caches.l2)
    buffers = [np.ones(size + SCRATCH_BYTES, np.uint8) for _ in range(threads)]
    addresses = [buffer.ctypes.data for buffer in buffers]
    together(read, addresses, size)
    best = min(together(read, addresses, size) for _ in range(ROUNDS))
    del engine  # until here its code is used
    return threads * TURNS * size / best / 1e9


def together(read: Read, addresses: Sequence[int], size: int) -> float:
    """Seconds from the first start to the last end, a thread a buffer."""
    barrier = threading.Barrier(len(addresses))
    spans: list[tuple[float, float]] = []

    def one(address: int) -> None:
        barrier.wait()
        begin = time.perf_counter()
        read(address, size, TURNS, address + size)  # without the interpreter's lock
        spans.append((begin, time.perf_counter()))

    threads = [threading.Thread(target=one, args=(a,)) for a in addresses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begins, ends = zip(*spans, strict=True)
    return max(ends) - min(begins)


def compiled_read(target: Target) -> tuple[Any, Read]:
    """The loop that reads a buffer, and what keeps its code alive."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic"
    )
    module = llvm.parse_assembly(module_text(target))
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    engine = cast("Any", llvm.create_mcjit_compiler(module, machine))
    engine.finalize_object()
    i64, pointer = ctypes.c_int64, ctypes.c_void_p
    function = ctypes.CFUNCTYPE(None, pointer, i64, i64, pointer)
    return engine, cast("Read", function(engine.get_function_address("read")))
