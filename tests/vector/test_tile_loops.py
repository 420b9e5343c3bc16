"""Register tiles of any semiring: several points of several axes at once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation, minimum
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Parallel,
    Reorder,
    Schedule,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.assembly import count, inner_loops, touches_stack
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
SIZES = [(2, 2, 2), (7, 5, 33), (6, 8, 64), (5, 9, 47), (11, 3, 17), (3, 4, 100)]


def product(m: int, k: int, n: int, kind: str = "float32") -> Computation:
    i, j, r = axes("i j r")
    a, b = Buffer("a", (m, k), kind), Buffer("b", (k, n), kind)
    c = Buffer("c", (m, n), kind)
    c[i, j] += a[i, r] * b[r, j]
    return computation(c)


def shortest(m: int, k: int, n: int) -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    c[i, j] = minimum(c[i, j], a[i, r] + b[r, j])
    return computation(c)


def windows(rows: int, columns: int, inner: int, outer: int) -> Computation:
    y, x, c, u, v, d = axes("y x c u v d")
    image = Buffer("image", (rows + 2, columns + 2, inner))
    weights = Buffer("weights", (3, 3, inner, outer))
    made = Buffer("made", (rows, columns, outer))
    made[y, x, c] += weights[u, v, d, c] * image[y + u, x + v, d]
    return computation(made)


def tiles(
    stage: str, target: Target, jam: dict[str, int], *more: Directive, bits: int = 32
) -> tuple[Directive, ...]:
    """Words for vectors along the axis that is jammed last."""
    lanes = Lanes(target.lanes(bits))
    axis = list(jam)[-1]
    words = (UnrollAndJam(stage, a, points) for a, points in jam.items())
    return (Vectorize(stage, axis, lanes), *words, *more)


def run(made: Computation, target: Target, words: tuple[Any, ...], *arrays: Any):
    """The only output, by a schedule of these words; tasks in any order."""
    program = kernels(made)
    (nest,) = [
        kernel.nest
        for kernel in program.kernels.values()
        if words[-1].stage in {stage.name for stage in kernel.nest.stages}
    ]
    text = Schedule(words).to_transform(nest)
    (got,) = executable(program, target, text)(*arrays, order=backwards)
    return got


def text_of(made: Computation, stage: str, target: Target, *words: Directive) -> str:
    return stage_text(kernels(made), stage, target, script=Schedule(words))


# ---- numbers -------------------------------------------------------------------------


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rows", [0, 4], ids=["whole", "tasks"])
def test_products(target: Target, sizes: tuple[int, int, int], rows: int) -> None:
    """Sizes that tiles do not divide; of the last task's rows not even the number is
    known while compiling."""
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    words = tiles("c", target, {"i": 3, "j": 2}, Unroll("c", "r", 4))
    share = (Parallel("c", (rows, 0, 0), ALL),) if rows else ()
    got = run(product(m, k, n), target, (*share, *words), a, b)
    check(got, wide(a) @ wide(b), k + 1, abs(wide(a)) @ abs(wide(b)))


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_vectors_of_two_axes(target: Target, sizes: tuple[int, int, int]) -> None:
    """Rows of two registers each, both axes with something left."""
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    wide_rows = Vectorize("c", "j", Lanes(2 * target.lanes(32)))
    words = wide_rows, Vectorize("c", "i", Lanes(3))
    got = run(product(m, k, n), target, words, a, b)
    check(got, wide(a) @ wide(b), k + 1, abs(wide(a)) @ abs(wide(b)))


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_another_semiring(target: Target, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    words = tiles("c", target, {"i": 2, "j": 3}, Unroll("c", "r"))
    got = run(shortest(m, k, n), target, words, a, b)
    assert (got == (a[:, :, None] + b[None]).min(1)).all()
    assert not (got == (a[:, :, None] + b[None]).max(1)).all() or k == 1


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize(("kind", "bits"), [("int8", 8), ("int32", 32), ("int64", 64)])
def test_integers(target: Target, kind: str, bits: int) -> None:
    a, b = sample(1, (7, 9), kind), sample(2, (9, 85), kind)
    words = tiles("c", target, {"i": 4, "j": 2}, bits=bits)
    assert (run(product(7, 9, 85, kind), target, words, a, b) == a @ b).all()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("order", ["yxc", "cyx", "xcy"])
def test_windows_over_channels(target: Target, order: str) -> None:
    """Rows of pixels, pixels and vectors at once, in any order."""
    weights, image = sample(1, (3, 3, 5, 37), "float32"), sample(2, (7, 9, 5), "f4")
    jam = {axis: {"y": 2, "x": 3, "c": 2}[axis] for axis in order}
    words = (Vectorize("made", "c", Lanes(target.lanes(32))),)
    words += tuple(UnrollAndJam("made", a, points) for a, points in jam.items())
    got = run(windows(5, 7, 5, 37), target, words, weights, image)
    exact, size = np.zeros((5, 7, 37)), np.zeros((5, 7, 37))
    for u, v in itertools.product(range(3), range(3)):
        part = wide(image[u : u + 5, v : v + 7])
        exact += part @ wide(weights[u, v])
        size += abs(part) @ abs(wide(weights[u, v]))
    check(got, exact, 46, size)


@TARGETS
@pytest.mark.parametrize("length", [2, 8, 31, 129])
def test_rows_that_share_what_is_summed(target: Target, length: int) -> None:
    """Vectors along the sum itself, of several rows at once."""
    i, r = axes("i r")
    a, x, y = Buffer("a", (7, length)), Buffer("x", (length,)), Buffer("y", (7,))
    y[i] += a[i, r] * x[r]
    rows, line = sample(1, (7, length), "float32"), sample(2, (length,), "float32")
    words = (
        Vectorize("y", "r", Lanes(target.lanes(32)), 2),
        UnrollAndJam("y", "i", 3),
    )
    got = run(computation(y), target, words, rows, line)
    size = abs(wide(rows)) @ abs(wide(line))
    check(got, wide(rows) @ wide(line), length + 1, size)


# ---- text ----------------------------------------------------------------------------


def test_every_address_is_read_once() -> None:
    target = by_name("x86-64-v3")
    words = tiles("c", target, {"i": 3, "j": 2})
    check_text(
        text_of(product(6, 9, 16), "vector", target, *words),
        """
    CHECK: scf.for {{.*}} to %c6 step %c3
    CHECK-NOT: vector.load
    CHECK: scf.for {{.*}} to %c9 step %c1 iter_args
    CHECK: memref.load
    CHECK-NEXT: vector.load
    CHECK-NEXT: vector.broadcast
    CHECK-NEXT: vector.fma
    CHECK-NEXT: vector.load
    CHECK-NEXT: vector.fma
    CHECK-NOT: vector.load
    CHECK: memref.load
    CHECK-NEXT: vector.broadcast
    CHECK-NEXT: vector.fma
    CHECK-NEXT: vector.fma
    CHECK-NOT: vector.load
    CHECK: memref.load
    CHECK-NEXT: vector.broadcast
    CHECK-NEXT: vector.fma
    CHECK-NEXT: vector.fma
    CHECK-NEXT: scf.yield
    CHECK-COUNT-6: vector.store
    CHECK-NOT: vector.store
    """,
    )


def test_what_is_left_is_one_block() -> None:
    """Of 5 rows 2, of 47 columns a vector and a masked one beside each other."""
    target = by_name("x86-64-v4")
    words = tiles("c", target, {"i": 3, "j": 2})
    check_text(
        text_of(product(5, 9, 47), "vector", target, *words),
        """
    CHECK: scf.for {{.*}} iter_args({{(%arg[0-9]+ = [^,]+, ){5}[^,]+}}) ->
    CHECK: vector.create_mask %c15
    CHECK-NOT: vector.maskedload
    CHECK: scf.for {{.*}} iter_args({{(%arg[0-9]+ = [^,]+, ){2}[^,]+}}) ->
    CHECK: scf.for {{.*}} iter_args({{(%arg[0-9]+ = [^,]+, ){3}[^,]+}}) ->
    CHECK: scf.for {{.*}} iter_args({{%arg[0-9]+ = [^,]+, [^,]+}}) ->
    CHECK-NOT: memref.store
    """,
    )


def test_unrolled_steps_and_their_rest() -> None:
    target = by_name("x86-64-v3")
    words = tiles("c", target, {"i": 2, "j": 1}, Unroll("c", "r", 4))
    check_text(
        text_of(product(2, 11, 8), "vector", target, *words),
        """
    CHECK: scf.for {{.*}} %c0 to %c8 step %c4 iter_args
    CHECK-COUNT-8: vector.fma
    CHECK-NOT: vector.fma
    CHECK: scf.for {{.*}} %c8 to %c11 step %c1 iter_args
    CHECK-COUNT-2: vector.fma
    CHECK-NOT: vector.fma
    """,
    )


def test_the_order_of_the_loops() -> None:
    """Vectors outside of rows, and the window's columns outside of its rows."""
    target = by_name("x86-64-v3")
    order = Reorder("made", ("c", "y", "x", "v", "u", "d"))
    words = order, *tiles("made", target, {"x": 3, "c": 2})
    check_text(
        text_of(windows(4, 6, 7, 32), "vector", target, *words),
        """
    CHECK: scf.for %[[C:.*]] = %c0 to %c32 step %c16
    CHECK: scf.for %[[Y:.*]] = %c0 to %c4 step %c1
    CHECK: scf.for %[[X:.*]] = %c0 to %c6 step %c3
    CHECK: scf.for %[[V:.*]] = %c0 to %c3 step %c1
    CHECK: scf.for %[[U:.*]] = %c0 to %c3 step %c1
    CHECK: vector.load %arg0[%[[U]], %[[V]], {{.*}}, %[[C]]]
    """,
    )


@pytest.mark.parametrize(
    ("name", "rows", "vectors"),
    [
        ("x86-64-v3", 6, 2),
        ("x86-64-v3", 4, 3),
        ("x86-64-v4", 14, 2),
        ("x86-64-v4", 9, 3),
        ("x86-64-v4", 5, 4),
        ("neoverse-v1", 6, 4),
    ],
)
def test_the_inner_loop_is_products_and_loads(
    name: str, rows: int, vectors: int
) -> None:
    """A convolution's register tile: no accumulator leaves its register."""
    target = by_name(name)
    columns = vectors * target.lanes(32)
    made = windows(4, 2 * rows, 24, 2 * columns)
    share = Parallel("made", (1, 0, columns, 0, 0, 0), ALL)
    words = tiles("made", target, {"x": rows, "c": vectors})
    loops = inner_loops(text_of(made, "asm", target, share, *words))
    full = [x for x in loops if products(x) >= rows * vectors]
    assert full
    for loop in full:
        assert not touches_stack(loop)
        steps = products(loop) // (rows * vectors)
        assert len(loop) <= steps * (rows * vectors + rows + vectors) + 8


def products(loop: list[str]) -> int:
    return count(loop, "vfmadd") + count(loop, "fmla")


# ---- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((UnrollAndJam("c", "i", 9), UnrollAndJam("c", "j", 8)),
         "72 points at once, 64 at most: no register file holds their results"),
        ((UnrollAndJam("c", "i", 64), Unroll("c", "r")),
         "6400 times the body stand behind each other, 4096 at most; unroll fewer"),
    ],
)  # fmt: skip
def test_what_is_refused(words: tuple[Directive, ...], said: str) -> None:
    with pytest.raises(Error) as found:
        text_of(product(100, 100, 100), "vector", by_name("x86-64-v3"), *words)
    assert said in str(found.value)
