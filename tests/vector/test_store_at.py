"""Where intermediate results lie: a task's memory, or the arena between phases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.printer import print_nest
from nanoloom.notation import Buffer, Computation, axes, computation, maximum
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Nanokernel,
    Parallel,
    Schedule,
    SplitReduction,
    Stack,
    StoreAt,
    Tile,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
AVX2 = by_name("x86-64-v3")
LANES = Lanes(8)


def product(m: int, k: int, n: int) -> Computation:
    """c = a b; y = max(c, 0)"""
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    y = Buffer("y")
    c[i, j] += a[i, r] * b[r, j]
    y[i, j] = maximum(c[i, j], 0)
    return computation(y)


def in_two_phases(*more: Directive) -> Schedule:
    """The product by columns, what follows it by rows."""
    return Schedule((
        Parallel("c", (0, 16, 0), ALL), StoreAt("c", "arena"), Parallel("y", (3, 0)),
        *more, Vectorize("y", "j", LANES),
    ))  # fmt: skip


VECTORS = Vectorize("c", "j", LANES)


def nanokernel(target: Target) -> Nanokernel:
    """Panels of 16 columns, in vectors that the target has."""
    lanes = min(LANES.count, target.lanes(32))
    return Nanokernel(3, 16 // lanes, Lanes(lanes), False, stage="c")


def test_the_loops_say_where_it_lies() -> None:
    (kernel,) = kernels(product(7, 9, 70)).kernels.values()
    lines = print_nest(in_two_phases().apply(kernel.nest)).splitlines()
    assert "c: c[i, j] <- arg0[i, r], arg1[r, j], stored in the arena" in lines[7]
    words = Parallel("y", (3, 0), ALL), StoreAt("c", "task")
    text = print_nest(Schedule(words).apply(kernel.nest))
    assert "arg1[r, j], stored in the task's memory" in text


def test_tasks_of_both_phases_share_a_tensor() -> None:
    program = kernels(product(7, 9, 70))
    script = in_two_phases(VECTORS)
    (kernel,) = program.kernels.values()
    check_text(
        script.to_transform(kernel.nest),
        """
    CHECK: "nanoloom.store_at"(%c_{{.*}}) {where = "arena"}
    CHECK: tile_sizes [0, 16, 0]
    """,
    )
    check_text(
        stage_text(program, "vector", AVX2, script=script),
        """
    CHECK: func.func @kernel_0({{.*}}%arg3: memref<7x70xf32>, %arg4: index
    CHECK: vector.store {{.*}} : memref<7x?xf32,
    CHECK: func.func @kernel_1({{.*}}%arg3: memref<7x70xf32>, %arg4: index
    CHECK: memref.subview %arg3
    CHECK-NOT: memref.alloc
    """,
    )


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(7, 9, 70), (4, 3, 33), (10, 5, 17)], ids=str)
@pytest.mark.parametrize("in_tiles", [False, True], ids=["loops", "nanokernel"])
def test_numbers(target: Target, sizes: tuple[int, int, int], in_tiles: bool) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    program = kernels(product(m, k, n))
    (kernel,) = program.kernels.values()
    words = (Tile("c", (3, 0, 0)), nanokernel(target)) if in_tiles else (VECTORS,)
    text = in_two_phases(*words).to_transform(kernel.nest)
    made = executable(program, target, text)
    assert [step.tasks for step in made.made.table.steps] == [-(-n // 16), -(-m // 3)]
    (got,) = made(a, b, order=backwards)
    check(got, (wide(a) @ wide(b)).clip(0), k + 1, abs(wide(a)) @ abs(wide(b)))


def test_without_the_word_the_kernel_is_a_single_task() -> None:
    program = kernels(product(7, 9, 70))
    (kernel,) = program.kernels.values()
    words = [w for w in in_two_phases(VECTORS).directives if not isinstance(w, StoreAt)]
    made = executable(program, AVX2, Schedule(tuple(words)).to_transform(kernel.nest))
    assert [step.tasks for step in made.made.table.steps] == [1]


def test_a_loop_of_a_single_task_is_not_fused_into_those_that_read_it() -> None:
    """MLIR drops a loop of one step: its product would be in the other loop's reach,
    and what is read twice would be written by two tasks."""
    program = kernels(product(10, 5, 16))
    (kernel,) = program.kernels.values()
    text = in_two_phases(VECTORS).to_transform(kernel.nest)
    assert "tile_using_forall %y_" in text
    assert "structured.fuse %y_" not in text
    a, b = sample(1, (10, 5), "float32"), sample(2, (5, 16), "float32")
    (got,) = executable(program, AVX2, text)(a, b, order=backwards)
    check(got, (wide(a) @ wide(b)).clip(0), 6, abs(wide(a)) @ abs(wide(b)))


def test_its_bytes_are_behind_those_of_all_others() -> None:
    """Kernels run one behind the other: the largest one's is enough for all."""
    program = kernels(product(7, 9, 70))
    (kernel,) = program.kernels.values()
    text = in_two_phases(VECTORS).to_transform(kernel.nest)
    table = executable(program, AVX2, text).made.table
    room = -(-7 * 70 * 4 // 64) * 64
    assert table.arena_bytes == program.arena_bytes + room
    assert {step.buffers[-1].offset for step in table.steps} == {program.arena_bytes}


def test_a_kernel_in_the_cache_keeps_them() -> None:
    kernel = CompiledKernel(b"code", (3, 2), (), False, (0, 64), (128, 64))
    assert CompiledKernel.from_bytes(kernel.to_bytes()) == kernel


@pytest.mark.parametrize("threads", [1, 2])
def test_partial_sums_that_tasks_make_and_tasks_combine(
    threads: int, tmp_path: Path
) -> None:
    """Both phases of a sum in parts have tasks; a whole program, with its arena."""
    i, k = axes("i k")
    x, y = Buffer("x", (37, 900)), Buffer("y", (37,))
    y[i] += x[i, k]
    words = Schedule((
        SplitReduction("y", "k", 4), Parallel("y_parts", (0, 1, 0), ALL),
        StoreAt("y_parts", "arena"), Parallel("y", (5, 0), ALL),
        Vectorize("y_parts", "k", Lanes(host().lanes(32)), 2),
    ))  # fmt: skip
    options = CompileOptions(host(), schedules=(("*", words),))
    made = nanoloom.compile(
        computation(y), threads=threads, options=options, cache=Cache(tmp_path)
    )
    array = sample(1, (37, 900), "float32")
    got = made({"x": array})["y"]
    check(got, wide(array).sum(1), 900, abs(wide(array)).sum(1))
    again = made({"x": 2 * array})["y"]
    assert np.array_equal(again, 2 * got)


def at_tile(rows: int, *more: Directive) -> tuple[Directive, ...]:
    """Tiles of some rows by two vectors, the product and its fill at theirs."""
    stages = ("y", "i", "j"), ("c", "i", "j"), ("fill", "d0", "d1")
    words: list[Directive] = []
    for number, (stage, row, column) in enumerate(stages):
        words += [ComputeAt(stage, "y", "j")] if number else []
        words += [Vectorize(stage, column, LANES), UnrollAndJam(stage, row, rows)]
        words += [UnrollAndJam(stage, column, 2)]
    return (*words, *more)


def test_in_registers_where_it_is_computed_at_the_tile() -> None:
    program = kernels(product(7, 9, 70))
    (kernel,) = program.kernels.values()
    schedule = Schedule(at_tile(3, StoreAt("c", "registers")))
    text = print_nest(schedule.apply(kernel.nest))
    assert "arg1[r, j], stored in registers" in text
    vectors = stage_text(program, "vector", AVX2, script=schedule)
    assert "alloca" not in vectors
    a, b = sample(1, (7, 9), "float32"), sample(2, (9, 70), "float32")
    script = schedule.to_transform(kernel.nest)
    assert 'where = "registers"' in script
    (got,) = executable(program, AVX2, script)(a, b, order=backwards)
    check(got, (wide(a) @ wide(b)).clip(0), 10, abs(wide(a)) @ abs(wide(b)))


def test_in_memory_where_it_could_be_in_registers() -> None:
    program = kernels(product(7, 9, 70))
    (kernel,) = program.kernels.values()
    schedule = Schedule((Parallel("y", (3, 0), ALL), StoreAt("c", "task"), Stack(4096)))
    vectors = stage_text(program, "vector", AVX2, script=schedule)
    assert "alloca" in vectors
    kept = Schedule((*at_tile(3, StoreAt("c", "task")), Stack(4096)))
    script = kept.to_transform(kernel.nest)
    assert '"nanoloom.at_tile"(%c_' not in script
    assert "alloca" in stage_text(program, "vector", AVX2, script=kept)
    a, b = sample(1, (7, 9), "float32"), sample(2, (9, 70), "float32")
    (got,) = executable(program, AVX2, script)(a, b, order=backwards)
    check(got, (wide(a) @ wide(b)).clip(0), 10, abs(wide(a)) @ abs(wide(b)))


def test_more_than_there_are_registers_is_refused() -> None:
    program = kernels(product(18, 9, 70))
    schedule = Schedule(at_tile(9, StoreAt("c", "registers")))
    with pytest.raises(Error, match="registers, 18 of them, and there are 16"):
        stage_text(program, "vector", AVX2, script=schedule)
    assert stage_text(program, "vector", by_name("x86-64-v4"), script=schedule)


def test_an_edited_script_that_leaves_it_in_memory_is_refused() -> None:
    program = kernels(product(7, 9, 70))
    (kernel,) = program.kernels.values()
    text = Schedule(at_tile(3, StoreAt("c", "registers"))).to_transform(kernel.nest)
    lines = [x for x in text.splitlines() if '"nanoloom.at_tile"(%c_' not in x]
    with pytest.raises(Error, match="what reads it cannot take it from there"):
        stage_text(program, "vector", AVX2, script="\n".join(lines))


REFUSED: list[tuple[tuple[Directive, ...], str]] = [
    ((StoreAt("c", "heap"),), "where is heap: one of registers, task, arena, source"),
    ((StoreAt("y", "arena"),), "y makes a result of the kernel"),
    (
        (Parallel("y", (3, 0), ALL), StoreAt("c", "arena")),
        "c is computed inside of io of y: each task has a part of its own",
    ),
    ((StoreAt("c", "registers"),), "c is not computed inside of what reads it"),
    (
        (Parallel("y", (3, 0), ALL), StoreAt("c", "registers")),
        "c is not computed at a tile of y: inside of io only points side by side",
    ),
    (
        (Parallel("y", (3, 0)), StoreAt("c", "task")),
        "c is made in front of the tasks, which share it",
    ),
    ((StoreAt("c", "task"), StoreAt("c", "arena")), "stored in the task's memory"),
    (
        (StoreAt("c", "arena"), ComputeAt("c", "y", "i")),
        "c is stored in the arena already",
    ),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_is_refused(words: tuple[Directive, ...], said: str) -> None:
    (kernel,) = kernels(product(7, 9, 70)).kernels.values()
    with pytest.raises(Error) as found:
        Schedule(words).apply(kernel.nest)
    assert str(found.value).startswith(str(words[-1]))
    assert said in str(found.value)


def test_an_edited_script_names_a_place_that_there_is() -> None:
    program = kernels(product(7, 9, 70))
    (kernel,) = program.kernels.values()
    text = in_two_phases(VECTORS).to_transform(kernel.nest)
    edited = text.replace('where = "arena"', 'where = "heap"')
    assert edited != text
    with pytest.raises(Error, match="where = heap: one of registers, task, arena"):
        stage_text(program, "vector", AVX2, script=edited)
