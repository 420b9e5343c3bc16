"""Operands that are copied in front of a stage, and fills that sums take along."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, cast, computation
from nanoloom.schedule.language import (
    ALL,
    CopyOperand,
    Directive,
    Parallel,
    Schedule,
    Tile,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets


def product(m: int, k: int, n: int) -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    c[i, j] += a[i, r] * b[r, j]
    return computation(c)


def words(target: Target, rows: int, columns: int, *more: Directive) -> Schedule:
    lanes = Lanes(target.lanes(32))
    return Schedule((
        Parallel("c", (rows, columns, 0), ALL), *more, CopyOperand("c", 1, lanes),
        Vectorize("c", "j", lanes), UnrollAndJam("c", "i", 2),
        UnrollAndJam("c", "j", 2),
    ))  # fmt: skip


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("deep", [0, 4], ids=["whole", "chunks"])
@pytest.mark.parametrize("sizes", [(5, 9, 70), (8, 11, 64), (3, 2, 33)], ids=str)
def test_a_copied_panel(target: Target, sizes: tuple[int, int, int], deep: int) -> None:
    """Of the last task's columns not even the number is known while compiling."""
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    program, tile = kernels(product(m, k, n)), Tile("c", (0, 0, deep))
    schedule = words(target, 3, 32, *((tile,) if deep else ()))
    (kernel,) = program.kernels.values()
    text = schedule.to_transform(kernel.nest)
    (got,) = executable(program, target, text)(a, b, order=backwards)
    check(got, wide(a) @ wide(b), k + 1, abs(wide(a)) @ abs(wide(b)))


def test_the_copy_is_in_front_of_the_loops() -> None:
    target = by_name("x86-64-v3")
    program = kernels(product(6, 9, 64))
    check_text(
        stage_text(program, "vector", target, script=words(target, 0, 16)),
        """
    CHECK: scf.for {{.*}} to %c9 step %c1
    CHECK: vector.store {{.*}} memref<9x16xf32>
    CHECK: scf.for {{.*}} to %c6 step %c2
    CHECK: scf.for {{.*}} to %c9 step %c1 iter_args
    CHECK-COUNT-2: vector.load {{.*}} : memref<9x16xf32>
    CHECK-NOT: vector.load
    """,
    )


def test_sums_start_from_the_number_that_would_be_filled_in() -> None:
    """No fill, and no sum is read before it is complete."""
    target = by_name("x86-64-v3")
    program = kernels(product(6, 9, 64))
    text = stage_text(program, "vector", target, script=words(target, 0, 16))
    check_text(text, "CHECK-NOT: vector.load %arg2\n")
    assert text.count("vector.store") == 1 + 4
    assert "memref.store" not in text


def test_what_starts_from_an_array_reads_it() -> None:
    i, j, r = axes("i j r")
    a, x, c = Buffer("a", (7, 40)), Buffer("x", (40, 24)), Buffer("c", (7, 24))
    bias = Buffer("bias", (24,))
    c[i, j] = bias[j]
    c[i, j] += a[i, r] * x[r, j]
    arrays = (
        sample(1, (24,), "f4"),
        sample(2, (7, 40), "f4"),
        sample(3, (40, 24), "f4"),
    )
    made = computation(c)
    order = [["bias", "a", "x"].index(buffer.name) for buffer in made.inputs]
    program = kernels(made)
    (got,) = executable(program, targets()[0])(*(arrays[n] for n in order))
    line, left, right = map(wide, arrays)
    check(got, line + left @ right, 42, abs(line) + abs(left) @ abs(right))
    assert not np.allclose(got, left @ right)


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_copies_of_wider_numbers(target: Target, kind: str) -> None:
    """Both operands become f32 in front of the loops, and nothing does inside them."""
    m, k, n = 7, 13, 37
    made = halves(m, k, n, kind)
    arrays = {"a": sample(1, (m, k), kind), "b": sample(2, (k, n), kind)}
    lanes, program = Lanes(target.lanes(32)), kernels(made)
    schedule = Schedule((
        Parallel("c", (3, 32, 0), ALL), CopyOperand("c", 0, lanes, wide=True),
        CopyOperand("c", 1, lanes, wide=True), Vectorize("c", "j", lanes),
        UnrollAndJam("c", "i", 2),
    ))  # fmt: skip
    (kernel,) = program.kernels.values()
    text = schedule.to_transform(kernel.nest)
    given = [arrays[buffer.name] for buffer in made.inputs]
    (got,) = executable(program, target, text)(*given, order=backwards)
    a, b = wide(arrays["a"]), wide(arrays["b"])
    check(got, a @ b, k + 1, abs(a) @ abs(b))
    short = {"float16": "f16", "bfloat16": "bf16"}[kind]
    loops = stage_text(program, "vector", by_name("armv9-sve2"), script=text)
    assert f"memref<3x{k}xf32" in loops or f"memref<?x{k}xf32" in loops
    sums = loops[loops.index("vector.fma") - 2000 :]
    assert short not in sums[sums.index("iter_args") : sums.index("vector.fma")]


def halves(m: int, k: int, n: int, kind: str) -> Computation:
    i, j, r = axes("i j r")
    a, b = Buffer("a", (m, k), kind), Buffer("b", (k, n), kind)
    c = Buffer("c", (m, n))
    c[i, j] += cast(a[i, r], "float32") * cast(b[r, j], "float32")
    return computation(c)


def test_what_a_wide_copy_cannot_be_of() -> None:
    (kernel,) = kernels(product(5, 6, 7)).kernels.values()
    with pytest.raises(Error, match="c multiplies its operands as they are"):
        CopyOperand("c", 0, wide=True).apply(kernel.nest)
    program = kernels(product(6, 9, 64))
    (kernel,) = program.kernels.values()
    target = by_name("x86-64-v3")
    text = words(target, 0, 16).to_transform(kernel.nest)
    wrong = text.replace("wide = 0 : i64", "wide = 1 : i64")
    assert wrong != text
    with pytest.raises(Error, match="operand 1 is multiplied as it is: nothing is"):
        stage_text(program, "vector", target, script=wrong)


@pytest.mark.parametrize("target", targets(), ids=str)
def test_a_window_of_a_task_whose_size_is_not_known(target: Target) -> None:
    """As many rows as the task has and two more: the copy's room is that of most."""
    i, j, r = axes("i j r")
    x, w, y = Buffer("x", (9, 33)), Buffer("w", (3, 33)), Buffer("y", (7, 33))
    y[i, j] += x[i + r, j] * w[r, j]
    made = computation(y)
    arrays = {"x": sample(1, (9, 33), "float32"), "w": sample(2, (3, 33), "float32")}
    program = kernels(made)
    (kernel,) = program.kernels.values()
    number = [len(read.indices[0].terms) for read in kernel.nest.stage("y").reads]
    schedule = Schedule((
        Parallel("y", (3, 0, 0), ALL), CopyOperand("y", number.index(2)),
        Vectorize("y", "j", Lanes(target.lanes(32))),
    ))  # fmt: skip
    text = schedule.to_transform(kernel.nest)
    given = [arrays[buffer.name] for buffer in made.inputs]
    (got,) = executable(program, target, text)(*given, order=backwards)
    image, weights = wide(arrays["x"]), wide(arrays["w"])
    parts = np.array([image[k : k + 7] * weights[k] for k in range(3)])
    check(got, parts.sum(0), 4, abs(parts).sum(0))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (CopyOperand("c", 2), "c reads 2 operands, counted from 0"),
        (CopyOperand("c", -1), "operand is -1: a number from 0 on is wanted"),
        (CopyOperand("d", 0), "there is no stage d"),
        (CopyOperand("c", 0, Lanes(6)), "lanes = 6: a power of two up to 256"),
        (CopyOperand("c", 0, Lanes(1, scalable=True)), "a scalable vector has two"),
    ],
)
def test_what_is_refused(word: Directive, said: str) -> None:
    (kernel,) = kernels(product(5, 6, 7)).kernels.values()
    with pytest.raises(Error, match=said):
        Schedule((word,)).to_transform(kernel.nest)
