"""Schedules by trial: which there are, how they are timed, and what is kept."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nanoloom
from nanoloom import compiler
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.kernels.program import Kernel, Program
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Nanokernel, Parallel, Schedule, Tile
from nanoloom.search.candidates import candidates, other_blocks
from nanoloom.search.measure import TimeKernels, are_floats, sizes_of
from nanoloom.search.search import Search, by_work, search
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom.workers.pool import Pool, in_process
from tests.linalg.bounds import sample
from tests.linalg.single import model_of
from tests.vector.kernel_harness import program_of, shared_cache

POOL = Pool(in_process)
MATMUL = "mk,kn->mn"


def product(rows: int = 40, depth: int = 64, columns: int = 70) -> Program:
    w = sample(2, (depth, columns), "float32")
    shape = ((rows, depth), "float32")
    return program_of(lambda b, x: b.einsum(MATMUL, x, b.constant(w)), shape)


def kernel_of(program: Program) -> Kernel:
    (kernel,) = program.kernels.values()
    return kernel


def test_the_chosen_schedule_is_the_first_of_several() -> None:
    kernel = kernel_of(product())
    known = candidates(kernel.nest, host())
    assert known[0] == choose(kernel.nest, host()) and len(known) > 2
    assert len(set(known)) == len(known)
    for each in known:
        assert "transform.named_sequence" in each.to_transform(kernel.nest)


def test_blocks_change_and_the_register_tile_stays() -> None:
    kernel = kernel_of(product(1000, 64, 512))
    chosen = choose(kernel.nest, host())
    others = list(other_blocks(chosen, kernel.nest, host()))
    tile = [d for d in chosen.directives if isinstance(d, Tile)][-1]
    assert others and any(isinstance(d, Nanokernel) for d in chosen.directives)
    for other in others:
        changed = set(other.directives) - set(chosen.directives)
        (word,) = changed
        assert isinstance(word, Parallel | Tile) and tile in other.directives


def timed(*codes: CompiledKernel, kernel: Kernel) -> list[float]:
    count = len(kernel.shapes)
    trial = TimeKernels(
        tuple(code.to_bytes() for code in codes),
        (kernel.name,) * len(codes),
        tuple(sizes_of(kernel.nest, kernel.shapes, code) for code in codes),
        are_floats(kernel.nest, count),
        10.0,
    )
    return trial.run(lambda _: nullcontext())


def made(kernel: Kernel, schedule: Schedule) -> CompiledKernel:
    options = CompileOptions(host(), schedules=(("*", schedule),))
    job = compiler.job_of(kernel, options)
    return CompiledKernel.from_bytes(job.run(lambda _: nullcontext()))


def test_a_slow_kernel_takes_longer() -> None:
    """A thousand times the products: no noise is like that."""
    small, large = kernel_of(product(4, 16, 16)), kernel_of(product(400, 256, 512))
    times = [
        timed(made(k, choose(k.nest, host())), kernel=k)[0] for k in (small, large)
    ]
    assert times[1] > 5 * times[0] > 0


def test_sizes_of_packed_weights() -> None:
    """A panel has columns that the weight has not."""
    kernel = kernel_of(product(40, 64, 70))
    code = made(kernel, choose(kernel.nest, host()))
    (packing,) = code.packings
    sizes = sizes_of(kernel.nest, kernel.shapes, code)
    panels = -(-70 // packing.columns) * packing.columns
    assert sizes[packing.argument] == 4 * 64 * panels
    assert sizes[0] == 4 * 40 * 64 and sizes[-1] >= 4 * 40 * 70


def stand_in(
    seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> list[TimeKernels]:
    """Times for trials, and what is asked for."""
    asked: list[TimeKernels] = []

    def run(self: TimeKernels, stage: Any) -> list[float]:
        asked.append(self)
        return (seconds * len(self.kernels))[: len(self.kernels)]

    monkeypatch.setattr(TimeKernels, "run", run)
    return asked


def test_the_fastest_is_taken_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # wide enough that every tile leaves the threads tasks
    kernel, cache = kernel_of(product(40, 64, 2048)), Cache.temporary()
    known = candidates(kernel.nest, host())
    asked = stand_in([3.0, 1.0, 2.0], monkeypatch)
    first = Search(host(), cache, POOL, until=float("inf"))
    assert first.best(kernel) == known[1] and len(asked) == 1
    again = Search(host(), cache, POOL, until=0.0)  # no time: only what is kept
    assert again.best(kernel) == known[1] and len(asked) == 1


def test_a_little_faster_is_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, cache = kernel_of(product()), Cache.temporary()
    asked = stand_in([1.0, 0.99], monkeypatch)
    for until in (float("inf"), 0.0):
        assert Search(host(), cache, POOL, until).best(kernel) is None
    assert len(asked) == 1


def test_without_time_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stand_in([1.0], monkeypatch)
    cache = Cache.temporary()
    assert search(product(), host(), host(), 0.0, cache, POOL) == () and not asked


def test_a_candidate_that_does_not_compile_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = kernel_of(product())
    searching = Search(host(), Cache.temporary(), POOL, until=float("inf"))
    good = searching.job(kernel, choose(kernel.nest, host()))
    bad = replace(good, script="nonsense")
    codes = searching.compiled([good, bad])
    assert codes[0] and codes[1] is None


def test_the_most_work_comes_first() -> None:
    shape = ((40, 64), "float32")
    w, v = sample(2, (64, 70), "float32"), sample(3, (70, 8), "float32")

    def make(b: Any, x: Any) -> Any:
        return b.einsum(MATMUL, b.einsum(MATMUL, x, b.constant(w)), b.constant(v))

    program = program_of(make, shape)
    assert [k.shapes[1] for k in by_work(program)] == [(64, 70), (70, 8)]


def test_another_machine_is_refused() -> None:
    other = by_name("riscv64+v")
    with pytest.raises(Error, match="candidates for rv64gcv do not run on this"):
        search(product(), other, host(), 1.0, Cache.temporary(), POOL)


def test_a_searched_program_computes_the_same() -> None:
    """Another tile or block may round otherwise; small whole numbers show nothing."""
    w = np.rint(sample(2, (24, 16, 3, 3), "float32", -3, 3))
    x = np.rint(sample(1, (1, 16, 9, 9), "float32", -3, 3))
    model, feeds = model_of("Conv", [x, w], {}, constants=(1,))
    options = CompileOptions(host(), search=5.0)
    seen: list[str] = []
    report = compiler.Report(progress=lambda what, done, total: seen.append(what))
    program = nanoloom.compile(
        model, options=options, cache=Cache.temporary(), report=report
    )
    (got,) = program(feeds).values()
    (right,) = nanoloom.compile(model, cache=shared_cache())(feeds).values()
    assert (got == right).all() and "search" in seen and report.seconds["search"] > 0
