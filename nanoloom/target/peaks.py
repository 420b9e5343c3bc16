"""The speed of light of this machine: what its arithmetic and its caches reach.

Measured by generated loops (`peak_loops.py`), so that a kernel's percentage of the peak
has a denominator that was seen, on the clock and in the company of the moment.
"""

from __future__ import annotations

import ctypes
import mmap
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from nanoloom.errors import Error
from nanoloom.target.facts import Target
from nanoloom.target.peak_loops import (
    SCRATCH_BYTES,
    loops_of,
    module_text,
    sums_of,
    symbol,
)

ONE_RUN = 0.02  # seconds, as kernels run: in bursts of 2 ms the clock is 4 % higher
ROUNDS = 6  # each measures everything once: a neighbour's burst does not hit one alone
MEMORY_BYTES = 16 << 20  # of each thread
MEMORY_AT_MOST = 256 << 20
_FILL = 0x3C  # a small normal number in f32, f64 and bf16, 60 in i8: nothing denormal


@dataclass(frozen=True)
class Rate:
    """10^9 per second: operations (multiply and add are two) or bytes read."""

    what: str  # f32, f64, bf16, u8s8, s8s8, bf16-amx, u8s8-amx; l1, l2, memory
    threads: int
    best: float
    median: float


@dataclass(frozen=True)
class Peaks:
    """What `measure` found; `dataclasses.asdict` of it is ready for JSON."""

    target: str
    threads: int
    rates: tuple[Rate, ...]

    def best(self, what: str, threads: int = 1) -> float | None:
        """The best rate of `what` by this many threads; None when not measured."""
        for rate in self.rates:
            if (rate.what, rate.threads) == (what, threads):
                return rate.best
        return None

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Peaks:
        """The inverse of `dataclasses.asdict`."""
        rates = tuple(Rate(**rate) for rate in data["rates"])
        return Peaks(data["target"], data["threads"], rates)


@dataclass(frozen=True)
class _Work:
    """A call for one thread: runs `turns` and says how much was done a turn."""

    what: str
    per_turn: float  # operations or bytes
    run: Callable[[int, int], None]  # thread, turns
    prepare: Callable[[int], None] | None = None  # thread; and one turn a run


def measure(target: Target, threads: int) -> Peaks:
    """Measure one thread and then `threads` of them, in a few seconds.

    Raises:
        Error: this machine does not run code for `target`.
    """
    _check_runs_here(target)
    code = _compile(target)
    size = _memory_bytes(target)
    with mmap.mmap(-1, threads * (SCRATCH_BYTES + size)) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)  # it is not the page walks that count
        view = (ctypes.c_char * len(memory)).from_buffer(memory)
        ctypes.memset(view, _FILL, len(memory))  # one zero page would be no memory
        base = ctypes.addressof(view)
        works = _arithmetic(target, code, base)
        works += _reading(target, code, (base, base + threads * SCRATCH_BYTES), size)
        rates = _rates(works, sorted({1, threads}))
        del view  # a mapping with a view cannot be closed
    return Peaks(target.name, threads, rates)


def steady(
    target: Target, what: str, threads: int
) -> tuple[Callable[[], float], float]:
    """A unit's loop by itself, for comparisons that give it turns of its own.

    Gives a function that runs it in all threads for about ONE_RUN, and its operations.

    Raises:
        Error: this machine does not run code for `target`, or has no such unit.
    """
    _check_runs_here(target)
    code = _compile(target)
    size = threads * SCRATCH_BYTES
    scratch = ctypes.create_string_buffer(bytes([_FILL]) * size, size)
    works = _arithmetic(target, code, ctypes.addressof(scratch))
    work = next((work for work in works if work.what == what), None)
    if work is None:
        raise Error(f"{target} has no unit that computes {what}")
    turns = _turns(work)

    def run() -> float:
        assert code and scratch, "they live as long as this function"
        return _together(work, threads, turns)

    return run, threads * turns * work.per_turn


def assembly(target: Target) -> str:
    """The assembly text of the measured loops, for any target."""
    machine, module = _machine_and_module(target)
    return str(machine.emit_assembly(module))


def _check_runs_here(target: Target) -> None:
    from nanoloom.target.host import host

    here = host()
    lacking = sorted(target.extensions - here.extensions)
    if target.arch != here.arch or lacking:
        alien = target.arch != here.arch
        what = f"is {here.arch}" if alien else f"lacks {', '.join(lacking)}"
        raise Error(
            f"cannot measure {target}: this machine {what}",
            hint=f"measure {here} instead",
        )


def _machine_and_module(target: Target) -> tuple[Any, Any]:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=3,
        reloc="pic",
        codemodel=target.code_model,
        abiname=target.abi,
    )
    module = llvm.parse_assembly(module_text(target))
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine, module


@dataclass(frozen=True)
class _Code:
    """Native code and what keeps it alive."""

    engine: Any
    functions: Mapping[str, Callable[..., int]]


def _compile(target: Target) -> _Code:
    import llvmlite.binding as llvm

    machine, module = _machine_and_module(target)
    engine = cast("Any", llvm.create_mcjit_compiler(module, machine))
    engine.finalize_object()
    i64, pointer = ctypes.c_int64, ctypes.c_void_p
    loop = ctypes.CFUNCTYPE(None, i64, pointer)
    types: dict[str, Any] = {
        "read": ctypes.CFUNCTYPE(None, pointer, i64, i64, pointer),
        "flush": ctypes.CFUNCTYPE(None, pointer, i64),
        "vscale": ctypes.CFUNCTYPE(i64),
        **{symbol(each.name): loop for each in loops_of(target)},
    }
    return _Code(
        engine,
        {name: made(engine.get_function_address(name)) for name, made in types.items()},
    )


def _arithmetic(target: Target, code: _Code, base: int) -> list[_Work]:
    vscale = code.functions["vscale"]()
    works: list[_Work] = []
    for loop in loops_of(target):
        function = code.functions[symbol(loop.name)]
        scale = vscale if loop.scalable else 1

        def run(thread: int, turns: int, f: Callable[..., int] = function) -> None:
            f(turns, base + thread * SCRATCH_BYTES)

        per_turn = loop.operations * scale * loop.instructions(sums_of(target))
        works.append(_Work(loop.name, per_turn, run))
    return works


def _memory_bytes(target: Target) -> int:
    """A buffer that comes from memory: flushed on x86, else twice the third level."""
    if target.arch == "x86_64":
        return MEMORY_BYTES
    return min(MEMORY_AT_MOST, max(MEMORY_BYTES, 2 * target.caches.l3))


def _reading(
    target: Target, code: _Code, bases: tuple[int, int], size: int
) -> list[_Work]:
    """Half of each cache, read again and again; and memory, flushed and read once.

    `bases` are the addresses of the scratch and of the buffers of `size` bytes.
    """
    read, flush = code.functions["read"], code.functions["flush"]
    scratch, buffers = bases

    def again(part: int) -> Callable[[int, int], None]:
        def run(thread: int, turns: int) -> None:
            place = buffers + thread * size
            read(place, part, turns, scratch + thread * SCRATCH_BYTES)

        return run

    def out_of_caches(thread: int) -> None:
        flush(buffers + thread * size, size)

    l1, l2 = target.caches.l1d // 2, min(target.caches.l2 // 2, size)
    return [
        _Work("l1", l1, again(l1)),
        _Work("l2", l2, again(l2)),
        _Work("memory", size, again(size), out_of_caches),
    ]


def _rates(works: Sequence[_Work], counts: Sequence[int]) -> tuple[Rate, ...]:
    turns = {work.what: 1 if work.prepare else _turns(work) for work in works}
    seen: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for work in works:
            for count in counts:
                rate = _together(work, count, turns[work.what])
                seen.setdefault((work.what, count), []).append(rate)
    return tuple(
        Rate(what, count, max(rates), statistics.median(rates))
        for (what, count), rates in seen.items()
    )


def _turns(work: _Work) -> int:
    """How many turns take ONE_RUN; on the way the clock and the caches warm up."""
    turns = 1
    while True:
        begin = time.perf_counter()
        work.run(0, turns)
        took = time.perf_counter() - begin
        if took > ONE_RUN / 4:
            return max(1, round(turns * ONE_RUN / took))
        turns *= 4


def _together(work: _Work, threads: int, turns: int) -> float:
    """The rate of all threads from the first start to the last end."""
    barrier = threading.Barrier(threads)
    spans: list[tuple[float, float]] = [(0.0, 0.0)] * threads

    def one(thread: int) -> None:
        if work.prepare:
            work.prepare(thread)
        barrier.wait()
        begin = time.perf_counter()
        work.run(thread, turns)  # without the interpreter's lock
        spans[thread] = (begin, time.perf_counter())

    others = [threading.Thread(target=one, args=(k,)) for k in range(1, threads)]
    for other in others:
        other.start()
    one(0)
    for other in others:
        other.join()
    begins, ends = zip(*spans, strict=True)
    return threads * turns * work.per_turn / (max(ends) - min(begins)) / 1e9
