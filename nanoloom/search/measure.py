"""A kernel's objects by their times: loaded and run in a worker, in turns.

A candidate that crashes ends the worker, not the compiler.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

from nanoloom.binary.kernel import CompiledKernel
from nanoloom.nest.contraction import bits
from nanoloom.nest.nest import Buffer, LoopNest
from nanoloom.workers.messages import Stage

ENTRY = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
LINE = 64  # bytes of a line of the cache
TURNS = 7
BURST = 0.002  # seconds of a candidate in a turn
HOPELESS = 2.0  # times the fastest: one call is enough to know
FLOATS = ("f16", "bf16", "f32", "f64")
WIDEST = 64  # bits: of a result no buffer tells the type
NUMBER = 0x3C  # of every byte of a float: small, and no denormal in any type
Run = Callable[[], None]


@dataclass(frozen=True)
class TimeKernels:
    """Seconds of one call of each of some objects, medians of turns.

    kernels: the bytes of CompiledKernels, with equal arguments.  symbols: their names.
    sizes: bytes of the arguments of each; floats: which of those hold floats.  limit:
    seconds that all of it may take.
    """

    kernels: tuple[bytes, ...]
    symbols: tuple[str, ...]
    sizes: tuple[tuple[int, ...], ...]
    floats: tuple[bool, ...]
    limit: float

    def run(self, stage: Stage) -> list[float]:
        begun = time.perf_counter()
        with stage("search"):
            known = zip(self.kernels, self.symbols, self.sizes, strict=True)
            runs = [
                Loaded(CompiledKernel.from_bytes(code), symbol, sizes, self.floats)
                for code, symbol, sizes in known
            ]
            first = [seconds(run) for run in runs]
            near = [n for n, one in enumerate(first) if one < HOPELESS * min(first)]
            times = [[one] for one in first]
            for n in near:
                times[n].clear()
            for turn in range(TURNS):
                if turn and time.perf_counter() - begun > self.limit:
                    break
                for n in near:
                    count = max(1, int(BURST / max(first[n], 1e-7)))
                    times[n].append(seconds(runs[n], count))
        return [statistics.median(found) for found in times]


def seconds(run: Run, count: int = 1) -> float:
    """Of one call, the mean of some behind one that is not counted."""
    run()
    begun = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begun) / count


class Loaded:
    """All phases of a kernel on memory of its own, as one thread runs them."""

    def __init__(
        self,
        kernel: CompiledKernel,
        symbol: str,
        sizes: Sequence[int],
        floats: Sequence[bool],
    ) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(kernel.object))
        self.engine.finalize_object()
        known = zip(sizes, floats, strict=True)
        self.held = [memory(size, NUMBER * is_float) for size, is_float in known]
        self.held += [memory(size, 0) for size in kernel.arena_bytes]
        addresses = (array.ctypes.data for array in self.held)
        self.pointers = (ctypes.c_void_p * len(self.held))(*addresses)
        self.phases = [
            (ENTRY(self.engine.get_function_address(f"{symbol}_{n}")), tasks, own)
            for n, (tasks, own) in enumerate(
                zip(kernel.tasks, map(scratch, kernel.scratch_bytes), strict=True)
            )
        ]

    def __call__(self) -> None:
        table = ctypes.addressof(self.pointers)
        for entry, tasks, own in self.phases:
            if tasks:
                entry(table, 0, tasks, own.ctypes.data)


def scratch(size: int) -> np.ndarray:
    return memory(size, 0)


def memory(size: int, byte: int) -> np.ndarray:
    """Bytes that begin with a line of the cache."""
    whole = np.full(size + 2 * LINE, byte, np.uint8)
    begin = -whole.ctypes.data % LINE
    return whole[begin : begin + size + LINE]


def sizes_of(
    nest: LoopNest, shapes: Sequence[tuple[int, ...]], kernel: CompiledKernel
) -> tuple[int, ...]:
    """Bytes of a kernel's arguments, weights as it wants them packed.

    shapes: of the arguments, as a model has them.
    """
    packed = {each.argument: each for each in kernel.packings}
    found: list[int] = []
    for number, (shape, buffer) in enumerate(
        zip(shapes, arguments(nest, len(shapes)), strict=True)
    ):
        width = WIDEST if buffer is None else max(8, bits(buffer.element))
        if number in packed:
            panels = packed[number].panels
            shape = panels.shape(shape)
            width = max(width, panels.bits)
        found.append(int(np.prod(shape, dtype=np.int64)) * width // 8)
    return tuple(found)


def arguments(nest: LoopNest, count: int) -> list[Buffer | None]:
    """The buffer of each argument that is read; None for others."""
    known = {b.argument: b for b in nest.buffers}
    return [known.get(number) for number in range(count)]


def are_floats(nest: LoopNest, count: int) -> tuple[bool, ...]:
    """Which arguments hold floats; the others are all zeros, no index leads out."""
    given = arguments(nest, count)
    return tuple(b is not None and b.element in FLOATS for b in given)
