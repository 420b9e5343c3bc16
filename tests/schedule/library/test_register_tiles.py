"""Register tiles that are chosen: which, in which tasks, and the numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nanoloom.nest.contraction import roles
from nanoloom.nest.extent import Lanes
from nanoloom.notation import (
    Buffer,
    Computation,
    axes,
    cast,
    computation,
    maximum,
    minimum,
)
from nanoloom.schedule import register_tile
from nanoloom.schedule.choose import choose
from nanoloom.schedule.families import INT8_DOT, INT8_PAIRS, Family
from nanoloom.schedule.language import (
    CopyOperand,
    Nanokernel,
    Pipeline,
    Schedule,
    Tile,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.library.family import step_cost
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.checks import Array, check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
AVX2 = by_name("x86-64-v3")


def shortest(m: int, k: int, n: int) -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    c[i, j] = minimum(c[i, j], a[i, r] + b[r, j])
    return computation(c)


def product(m: int, k: int, n: int, kind: str, wide_kind: str) -> Computation:
    i, j, r = axes("i j r")
    a, b = Buffer("a", (m, k), kind), Buffer("b", (k, n), kind)
    c = Buffer("c", (m, n), wide_kind)
    c[i, j] += cast(a[i, r], wide_kind) * cast(b[r, j], wide_kind)
    return computation(c)


def convolution(size: tuple[int, ...], window: int, stride: int = 1) -> Computation:
    """Chapter H's: bias, a window over channels, relu."""
    images, rows, columns, inner, outer = size
    n, y, x, c, rz, ry, rx = axes("n y x c rz ry rx")
    high, broad = ((s - 1) * stride + window for s in (rows, columns))
    image = Buffer("image", (images, high, broad, inner))
    weights = Buffer("weights", (window, window, inner, outer))
    bias, conv = (
        Buffer("bias", (outer,)),
        Buffer("conv", (images, rows, columns, outer)),
    )
    relu = Buffer("relu")
    conv[n, y, x, c] = bias[c]
    place = image[n, stride * y + rz, stride * x + ry, rx]
    conv[n, y, x, c] += weights[rz, ry, rx, c] * place
    relu[n, y, x, c] = maximum(conv[n, y, x, c], 0)
    return computation(relu)


def schedule_of(made: Computation, target: Target) -> Schedule:
    (kernel,) = kernels(made).kernels.values()
    return choose(kernel.nest, target)


def run(made: Computation, target: Target, **arrays: Array) -> Array:
    given = [arrays[buffer.name] for buffer in made.inputs]
    (got,) = executable(kernels(made), target)(*given, order=backwards)
    return got


# ---- what is chosen ------------------------------------------------------------------


def test_vectors_run_along_the_result_and_rows_share_them() -> None:
    words = schedule_of(shortest(200, 300, 400), AVX2).directives
    (vectors,) = [w for w in words if isinstance(w, Vectorize) and w.stage == "c"]
    points = {w.loop: w.count for w in words if isinstance(w, UnrollAndJam)}
    assert vectors.loop == "j"
    assert points["i"] * points["j"] >= 8
    assert CopyOperand("c", 1, Lanes(8)) in words


def test_few_columns_are_read_where_they_are() -> None:
    words = schedule_of(shortest(200, 300, 8), AVX2).directives
    assert not [w for w in words if isinstance(w, CopyOperand)]


def test_a_long_sum_is_cut_so_that_a_panel_stays_in_the_cache() -> None:
    words = schedule_of(shortest(200, 60000, 400), AVX2).directives
    (tile,) = [w for w in words if isinstance(w, Tile)]
    assert tile.sizes[:2] == (0, 0)
    assert 0 < tile.sizes[2] * 8 * 4 <= AVX2.caches.l2


def test_products_of_floats_have_a_nanokernel() -> None:
    words = schedule_of(product(64, 64, 64, "float32", "float32"), AVX2).directives
    assert [w for w in words if isinstance(w, Nanokernel)]


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "neoverse-v1"])
def test_a_convolution_has_no_spills(name: str) -> None:
    """Its inner loop is loads, products and pointers."""
    target, made = by_name(name), convolution((1, 20, 30, 32, 128), 3)
    words = schedule_of(made, target).directives
    tiled = [w for w in words if isinstance(w, UnrollAndJam)]
    points = [w.count for w in tiled if w.stage == words[0].stage]
    text = stage_text(kernels(made), "asm", target)
    loop = loop_with(text, "fmla" if target.arch == "aarch64" else "vfmadd231ps")
    products = count(loop, "vfmadd") + count(loop, "fmla")
    assert products % np.prod(points) == 0
    assert not touches_stack(loop)
    # SVE's broadcast loads reach little: they have an address each.
    broadcasts = (1 + target.vector.scalable) / points[1]
    assert len(loop) <= products * (1 + 1 / points[0] + broadcasts) + 8


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "neoverse-v1"])
def test_another_semiring_has_no_spills(name: str) -> None:
    target = by_name(name)
    text = stage_text(kernels(shortest(253, 511, 257)), "asm", target)
    words = {"aarch64": "fmin", "x86_64": "vminps"}
    word = "vrangeps" if target.has("avx512dq") else words[target.arch]
    loop = loop_with(text, word)
    assert count(loop, word) >= 8
    assert not touches_stack(loop)


# ---- numbers -------------------------------------------------------------------------


SIZES = [(1, 7, 13), (5, 1, 33), (37, 29, 70), (130, 61, 17), (64, 700, 90)]


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_smallest_of_sums(target: Target, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    a[-1, 0] = np.nan if m > 1 else a[-1, 0]
    got = run(shortest(m, k, n), target, a=a, b=b)
    exact = np.stack([(row[:, None] + b).min(0) for row in a])
    assert np.array_equal(got, exact, equal_nan=True)
    assert not np.array_equal(got, exact + 1, equal_nan=True)


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize(
    ("kind", "made"), [("int32", "int32"), ("int64", "int64"), ("int16", "int32")]
)
def test_products_of_integers(target: Target, kind: str, made: str) -> None:
    a, b = sample(1, (37, 29), kind, -90, 90), sample(2, (29, 70), kind, -90, 90)
    got = run(product(37, 29, 70, kind, made), target, a=a, b=b)
    assert (got == a.astype(made) @ b.astype(made)).all()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(2, 5, 7, 6, 37), (1, 9, 13, 40, 64)], ids=str)
def test_convolutions(target: Target, size: tuple[int, ...], stride: int) -> None:
    made = convolution(size, 3, stride)
    arrays = {b.name: sample(3, b.shape or (), "float32") for b in made.inputs}
    image, weights = wide(arrays["image"]), wide(arrays["weights"])
    bias, (_, rows, columns, inner, _) = wide(arrays["bias"]), size
    exact, magnitude = bias, abs(bias)
    for u, v in itertools.product(range(3), range(3)):
        high, broad = (rows - 1) * stride + 1, (columns - 1) * stride + 1
        part = image[:, u : u + high : stride, v : v + broad : stride]
        exact = exact + part @ weights[u, v]
        magnitude = magnitude + abs(part) @ abs(weights[u, v])
    got = run(made, target, **arrays)
    check(got, np.maximum(exact, 0), 9 * inner + 2, magnitude)


@TARGETS
@pytest.mark.parametrize("shape", [(1, 33), (29, 70), (200, 17), (61, 1111)], ids=str)
def test_sums_of_columns(target: Target, shape: tuple[int, int]) -> None:
    """Several vectors of columns at once, the sum inside of them, in several tasks."""
    r, j = axes("r j")
    a, c = Buffer("a", shape), Buffer("c", shape[1:])
    c[j] += a[r, j]
    x = sample(4, shape, "float32")
    got = run(computation(c), target, a=x)
    check(got, wide(x).sum(0), shape[0], abs(wide(x)).sum(0))


def said(name: str, depth: int) -> Schedule:
    (kernel,) = kernels(product(96, depth, 96, "float32", "float32")).kernels.values()
    return choose(kernel.nest, by_name(name))


def test_in_order_loads_are_a_round_ahead() -> None:
    """Of long sums; others look ahead themselves."""
    for name, depth in (("riscv64+v", 64), ("aarch64+sve", 64), ("riscv64+v", 6)):
        words = [x for x in said(name, depth).directives if isinstance(x, Pipeline)]
        assert bool(words) == (name == "riscv64+v" and depth == 64)


@pytest.mark.parametrize("name", ["rv64gcv-zvl256b", "rv64gcv-zvl512b"])
def test_a_number_is_loaded_between_products(name: str) -> None:
    """A product is first in a round's work, and every load has some behind it."""
    program = kernels(product(96, 64, 384, "float32", "float32"))
    loop = loop_with(stage_text(program, "asm", by_name(name)), "vfmacc")
    work = [x.split()[0] for x in loop if x.startswith(("vfmacc", "flw", "vl"))]
    numbers, products = work.count("flw"), work.count("vfmacc.vf")
    assert numbers == products > 8
    assert work[0] == "vfmacc.vf"
    assert work[: len(work) // 2].count("flw") in range(numbers // 4, numbers)
    assert touches_stack(loop) == []


@pytest.mark.parametrize(
    ("name", "family", "cycles"),
    [("x86-64-v3", INT8_PAIRS, 1), ("icelake-server", INT8_DOT, 5)],
)
def test_sums_wait_for_what_adds_to_them(
    name: str, family: Family, cycles: float
) -> None:
    """Of products that are added behind it is the addition.

    A single row of AVX2 then needs no six sums side by side, which do not divide it.
    """
    (kernel,) = kernels(product(1, 256, 128, "int8", "int32")).kernels.values()
    (root,) = (stage for stage in kernel.nest.stages if stage.is_reduction)
    target = by_name(name)
    shape = roles(root)
    assert shape is not None
    step = step_cost(family, root, shape, target, packed=True)
    assert step.latency == cycles
    if target == AVX2:
        assert register_tile.choose(1, 128, 32, target.vector, step).vectors == 4
