"""Loops whose next round is loaded while this one computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation, maximum
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Parallel,
    Pipeline,
    Reorder,
    Schedule,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    Side,
    backwards,
    executable,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
AVX2 = by_name("x86-64-v3")


def product(m: int, k: int, n: int) -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    c[i, j] += a[i, r] * b[r, j]
    return computation(c)


def tile(target: Target, *more: Directive) -> Schedule:
    lanes = Lanes(target.lanes(32))
    return Schedule((
        Parallel("c", (3, 0, 0), ALL), Vectorize("c", "j", lanes),
        UnrollAndJam("c", "i", 2), UnrollAndJam("c", "j", 2), *more,
        Pipeline("c", "r"),
    ))  # fmt: skip


def run(made: Computation, target: Target, schedule: Schedule, *arrays: Any) -> Any:
    """The output, with the ends of arrays at pages that cannot be touched."""
    program = kernels(made)
    (kernel,) = program.kernels.values()
    text = schedule.to_transform(kernel.nest)
    (got,) = executable(program, target, text)(*arrays, order=backwards, side=Side.END)
    return got


def test_the_last_round_loads_nothing() -> None:
    """Two rows by two vectors: as many loads in front, and in every round for the next;
    what is behind the loop only multiplies."""
    program = kernels(product(4, 9, 16))
    text = stage_text(program, "vector", AVX2, script=tile(AVX2))
    check_text(
        text,
        """
    CHECK: memref.load
    CHECK-COUNT-2: vector.load %arg1
    CHECK: memref.load
    CHECK: scf.for [[R:%.*]] = %c0 to %c8 step %c1 iter_args(
    CHECK: [[NEXT:%.*]] = arith.addi [[R]], %c1
    CHECK: [[LEFT:%.*]] = memref.load {{.*}}, [[NEXT]]]
    CHECK-COUNT-2: [[RIGHT:%.*]] = vector.load %arg1
    CHECK: memref.load
    CHECK-NOT: load
    CHECK-COUNT-4: vector.fma
    CHECK-NOT: load
    CHECK: scf.yield
    CHECK-COUNT-4: vector.fma
    CHECK-NOT: load
    CHECK: vector.store
    """,
    )


def test_of_two_steps_each_number_comes_behind_its_last_use() -> None:
    """In front of the loop all four vectors; in it, a step's between its products and
    the next step's.  A fence, which is no instruction, keeps LLVM from moving them."""
    program = kernels(product(4, 12, 16))
    schedule = tile(AVX2, Unroll("c", "r", 2))
    text = stage_text(program, "vector", AVX2, script=schedule)
    check_text(
        text,
        """
    CHECK: llvm.fence
    CHECK: scf.for
    CHECK-NOT: load
    CHECK-COUNT-2: vector.fma
    CHECK: memref.load
    CHECK: llvm.fence
    CHECK-COUNT-2: vector.fma
    CHECK-COUNT-2: vector.load %arg1
    CHECK: vector.fma
    CHECK: scf.yield
    CHECK-COUNT-8: vector.fma
    CHECK-NOT: load
    CHECK: vector.store
    """,
    )


@pytest.mark.parametrize(
    ("machine", "multiply", "load"),
    [("x86-64-v3", "vfmadd", "vmov"), ("neoverse-v1", "fmla", "ld")],
)
def test_a_step_of_the_code_multiplies_before_it_loads(
    machine: str, multiply: str, load: str
) -> None:
    """Of a loop that LLVM does not unroll: it would load in front of each step."""
    target = by_name(machine)
    program = kernels(product(4, 501, 4 * target.lanes(32)))
    asm = stage_text(program, "asm", target, script=tile(target))
    loop = loop_with(asm, multiply)
    assert count(loop, multiply) == 4
    places = [n for n, line in enumerate(loop) if line.strip().startswith(multiply)]
    loads = [n for n, x in enumerate(loop) if x.strip().startswith(load) and memory(x)]
    assert min(loads) > places[1]
    assert max(loads) > places[-1]
    assert not touches_stack(loop)


def memory(line: str) -> bool:
    """Whether an instruction has an address."""
    return "(" in line or "[" in line


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("more", [(), (Unroll("c", "r", 2),)], ids=["one", "two"])
@pytest.mark.parametrize("sizes", [(5, 9, 70), (8, 3, 64), (7, 4, 5), (4, 6, 28)])
def test_sums(target: Target, sizes: tuple[int, int, int], more: Any) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    got = run(product(m, k, n), target, tile(target, *more), a, b)
    check(got, wide(a) @ wide(b), k + 1, abs(wide(a)) @ abs(wide(b)))


@TARGETS
@pytest.mark.parametrize("deep", [2, 4, 5])
def test_sums_in_chunks_whose_last_is_shorter(target: Target, deep: int) -> None:
    """Of the last chunk the extent is not known while compiling."""
    m, k, n = 5, 11, 37
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    lanes = Lanes(target.lanes(32))
    words = Schedule((
        Parallel("c", (3, 0, 0), ALL), Tile("c", (0, 0, deep)),
        Vectorize("c", "j", lanes), UnrollAndJam("c", "i", 2), Pipeline("c", "r"),
    ))  # fmt: skip
    got = run(product(m, k, n), target, words, a, b)
    check(got, wide(a) @ wide(b), k + 1, abs(wide(a)) @ abs(wide(b)))


@TARGETS
@pytest.mark.parametrize("length", [7, 16, 33, 97])
def test_vectors_of_sums(target: Target, length: int) -> None:
    i, k = axes("i k")
    x, y = Buffer("x", (5, length)), Buffer("y", (5,))
    y[i] += x[i, k] * x[i, k]
    words = Vectorize("y", "k", Lanes(target.lanes(32)), 2), Pipeline("y", "k")
    array = sample(length, (5, length), "float32")
    short = length <= 2 * target.lanes(32)
    schedule = Schedule(words[:1] if short else words)
    got = run(computation(y), target, schedule, array)
    exact = (wide(array) ** 2).sum(1)
    check(got, exact, length + 2)


@TARGETS
@pytest.mark.parametrize("length", [40, 97, 260])
def test_a_serial_loop(target: Target, length: int) -> None:
    """Neighbours of the next vectors, while these are added."""
    i, j = axes("i j")
    x, y = Buffer("x", (3, length)), Buffer("y", (3, length - 2))
    y[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]
    words = Vectorize("y", "j", Lanes(target.lanes(32))), Pipeline("y", "j")
    array = sample(length, (3, length), "float32")
    got = run(computation(y), target, Schedule(words), array)
    whole = wide(array)
    exact = whole[:, :-2] + whole[:, 1:-1] + whole[:, 2:]
    size = abs(whole[:, :-2]) + abs(whole[:, 1:-1]) + abs(whole[:, 2:])
    check(got, exact, 3, size)


def test_a_window_whose_inner_loops_are_unrolled() -> None:
    i, j, u, v = axes("i j u v")
    x, w, y = Buffer("x", (9, 39)), Buffer("w", (5, 3)), Buffer("y", (5, 37))
    y[i, j] += w[u, v] * x[i + u, j + v]
    words = Schedule((
        Vectorize("y", "j", Lanes(8)), UnrollAndJam("y", "i", 2), Unroll("y", "v"),
        Pipeline("y", "u"),
    ))  # fmt: skip
    one, other = sample(1, (9, 39), "float32"), sample(2, (5, 3), "float32")
    made = computation(y)
    order = {"x": one, "w": other}
    given = [order[b.name] for b in made.inputs]
    got = run(made, targets()[0], words, *given)
    exact, size = np.zeros((5, 37)), np.zeros((5, 37))
    for row in range(5):
        for column in range(3):
            part = wide(one)[row : row + 5, column : column + 37]
            exact += wide(other)[row, column] * part
            size += abs(wide(other)[row, column] * part)
    check(got, exact, 16, size)


@TARGETS
def test_a_sum_at_the_tile_of_what_reads_it(target: Target) -> None:
    """Its own operands are loaded ahead; its results stay in registers."""
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (7, 9)), Buffer("b", (9, 37)), Buffer("c", (7, 37))
    y = Buffer("y")
    c[i, j] += a[i, r] * b[r, j]
    y[i, j] = maximum(c[i, j], 0)
    lanes, words = Lanes(target.lanes(32)), list[Directive]()
    for stage, row, column in (("y", "i", "j"), ("c", "i", "j"), ("fill", "d0", "d1")):
        words += [] if stage == "y" else [ComputeAt(stage, "y", "j")]
        words += [Vectorize(stage, column, lanes), UnrollAndJam(stage, row, 3)]
    schedule = Schedule((*words, Pipeline("c", "r")))
    one, other = sample(1, (7, 9), "float32"), sample(2, (9, 37), "float32")
    got = run(computation(y), target, schedule, one, other)
    size = abs(wide(one)) @ abs(wide(other))
    check(got, (wide(one) @ wide(other)).clip(0), 10, size)
    text = stage_text(kernels(computation(y)), "vector", AVX2, script=schedule)
    assert "alloca" not in text


def test_vectors_whose_width_the_machine_knows() -> None:
    """There may be no whole round: then nothing is loaded ahead of one."""
    i, k = axes("i k")
    x, y = Buffer("x", (3, 97)), Buffer("y", (3,))
    y[i] += x[i, k] * x[i, k]
    words = Vectorize("y", "k", Lanes(2, scalable=True), 2), Pipeline("y", "k")
    text = stage_text(
        kernels(computation(y)), "vector", by_name("rv64gcv"), script=Schedule(words)
    )
    check_text(
        text,
        """
    CHECK: [[SOME:%.*]] = arith.cmpi sgt
    CHECK-NEXT: scf.if [[SOME]]
    CHECK: scf.for {{.*}} iter_args(
    CHECK-COUNT-2: vector.load %arg0
    CHECK-NOT: vector.load
    CHECK-COUNT-2: vector.fma
    CHECK-NOT: vector.load
    CHECK: scf.yield
    """,
    )


LANES = Lanes(8)
REFUSED: list[tuple[tuple[Directive, ...], str]] = [
    ((Pipeline("c", "r"),), "c has no vectors yet"),
    ((Vectorize("c", "j", LANES), Pipeline("c", "k")), "c has no loop k"),
    (
        (Vectorize("c", "j", LANES), Pipeline("c", "j")),
        "the loop r runs inside of j",
    ),
    (
        (Vectorize("c", "j", LANES), Unroll("c", "r"), Pipeline("c", "r")),
        "loop r is unrolled already",
    ),
    (
        (Vectorize("c", "j", LANES), Tile("c", (2, 0, 0)), Pipeline("c", "io")),
        "io is around the vector code of c",
    ),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_is_refused(words: tuple[Directive, ...], said: str) -> None:
    (kernel,) = kernels(product(5, 9, 40)).kernels.values()
    with pytest.raises(Error, match=said) as found:
        Schedule(words).apply(kernel.nest)
    assert str(found.value).startswith(str(words[-1]))


def test_an_edited_script_is_refused_where_loops_run_inside() -> None:
    program = kernels(product(5, 9, 40))
    (kernel,) = program.kernels.values()
    text = tile(AVX2).to_transform(kernel.nest)
    edited = text.replace('pipeline"(%c_6) {axis = 2', 'pipeline"(%c_6) {axis = 0')
    assert edited != text, text
    with pytest.raises(Error, match="loops run inside of it"):
        stage_text(program, "vector", AVX2, script=edited)


def test_the_loops_say_so() -> None:
    (kernel,) = kernels(product(5, 9, 40)).kernels.values()
    nest = tile(AVX2).apply(kernel.nest)
    assert "for r in 0..9 (sum, loaded a round ahead):" in str(nest)
    words = Reorder("c", ("i", "j", "r")), Vectorize("c", "j", LANES)
    assert "ahead" not in str(Schedule(words).apply(kernel.nest))
