"""Depthwise layers in planes: vectors of pixels, loaded without the border."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from nanoloom.ir.mlir import ir
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ComputeAt, StoreAt, Vectorize
from nanoloom.target import by_name
from tests.guarded import Side
from tests.kernels.padded_programs import Array, Windows, plain, relu, stages
from tests.linalg.bounds import sample
from tests.vector.assembly import count, inner_loops, touches_stack
from tests.vector.kernel_harness import (
    at_once,
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

SAME = Windows((3, 3), (1, 1), (1, 1))
BY_TWO = replace(SAME, steps=(2, 2))
AVX512 = by_name("x86-64-v4")
GEOMETRY = [
    ((5, 61), SAME),
    ((17, 16), SAME),  # a row is a vector
    ((4, 7), SAME),
    ((9, 33), SAME),  # one pixel behind two vectors
    ((40, 9), BY_TWO),
    ((14, 28), Windows((3, 3), (1, 1), (0, 0), steps=(2, 2))),  # taps share two loads
    ((12, 65), BY_TWO),
    ((11, 75), Windows((7, 7), (3, 3), (3, 2), steps=(2, 2))),
    ((9, 64), Windows((2, 5), (0, 3), (1, 2), steps=(1, 2))),
    ((9, 64), Windows((2, 5), (2, 0), (1, 0), steps=(3, 2))),  # above and below alone
    ((23, 67), Windows((3, 3), (2, 2), (2, 2), apart=(2, 2))),
    ((2, 50), Windows((5, 3), (2, 1), (2, 1))),  # windows reach above and below
    ((30, 2), Windows((5, 3), (2, 1), (2, 1))),
    ((7, 80), Windows((1, 3), (0, 6), (0, 0))),  # vectors of border
    ((6, 37), Windows((3, 3), (1, 1), (0, 1), number=-2.5)),
    ((14, 7), Windows((5, 1), (2, 0), (2, 0))),  # down short rows, and long ones
    ((9, 20), Windows((5, 1), (2, 0), (1, 0), steps=(2, 1))),
    ((6, 100), Windows((3, 1), (1, 0), (1, 0))),
]


def layer(windows: Windows, kind: str = "float32") -> Any:
    """y[c, y, x] = max(0, sum of pad(image)[c, y + i, x + j] * weights[i, j, c])."""

    def make(b: Any, x: Any, w: Any) -> Any:
        padded = b.pad(x, (0, *windows.low), (0, *windows.high), windows.number)
        extents = windows.extents(x.shape[1:])
        pixels = [d.shift_dims(5, 1) for d in windows.indexing(4, 2).results]
        image = ir.AffineMap.get(5, 0, [ir.AffineDimExpr.get(0), *pixels])
        (sums,) = b.generic(
            [(padded, image), (w, plain(5, 3, 4, 0))],
            [(b.full((x.shape[0], *extents), 0, x.dtype), plain(5, 0, 1, 2))],
            ["parallel"] * 3 + ["reduction"] * 2,
            lambda a, w, total: total + a * w,
        )  # fmt: skip
        return relu(b, sums)

    return make


def exact(windows: Windows, x: Array, w: Array) -> tuple[Array, Array]:
    """The sums in float64, and those of sizes."""
    taps = windows.taps(x.transpose(1, 2, 0).astype(np.float64))
    sums = sum(tap * w[at] for at, tap in taps.items())
    sizes = sum(abs(tap) * abs(w[at]) for at, tap in taps.items())
    return np.transpose(sums, (2, 0, 1)), np.transpose(sizes, (2, 0, 1))


@pytest.mark.drawn(one_in=5)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_numbers(image: tuple[int, int], windows: Windows, kind: str) -> None:
    """Against float64, with nothing beside the image that could be read."""
    x, w = sample(1, (3, *image), kind), sample(2, (*windows.window, 3), kind)
    sums, sizes = exact(windows, x, w)
    right, bound = np.maximum(sums, 0), (w.size + 2) * np.finfo(kind).eps * sizes
    for target in targets():
        program = program_of(layer(windows), x, w, target=target)
        assert stages(program) == [["pad", "fill", "product", "point"]]
        made = executable(program, target)
        for order, side in product((at_once, backwards), Side):
            (result,) = made(x, w, order=order, side=side)
            assert (abs(result - right) <= bound + 1e-30).all()
            assert not (abs(np.roll(result, 1) - right) <= bound + 1e-30).all()


def dense(windows: Windows, kind: str = "float32") -> Any:
    """y[f, y, x] = max(0, sum of pad(image)[c, y + i, x + j] * weights[f, c, i, j])."""

    def make(b: Any, x: Any, w: Any) -> Any:
        padded = b.pad(x, (0, *windows.low), (0, *windows.high), windows.number)
        extents = windows.extents(x.shape[1:])
        pixels = windows.indexing(6, 3).results
        pixels = [d.compose(ir.AffineMap.get(6, 0, axes())) for d in pixels]
        image = ir.AffineMap.get(6, 0, [ir.AffineDimExpr.get(5), *pixels])
        (sums,) = b.generic(
            [(padded, image), (w, plain(6, 0, 5, 3, 4))],
            [(b.full((w.shape[0], *extents), 0, x.dtype), plain(6, 0, 1, 2))],
            ["parallel"] * 3 + ["reduction"] * 3,
            lambda a, w, total: total + a * w,
        )  # fmt: skip
        return relu(b, sums)

    return make


def axes() -> list[ir.AffineExpr]:
    """Pixels are the second and the third axis, features the first."""
    return [ir.AffineDimExpr.get(n) for n in (1, 2, 0, 3, 4, 5)]


@pytest.mark.drawn(one_in=10)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
@pytest.mark.parametrize("features", [1, 13])
def test_dense_layers(image: tuple[int, int], windows: Windows, features: int) -> None:
    """The same of a first layer, whose features share what is read of the image."""
    x = sample(3, (3, *image), "float32")
    w = sample(4, (features, 3, *windows.window), "float32")
    wide = x.transpose(1, 2, 0).astype(np.float64)
    taps = windows.taps(wide).items()
    sums = sum(tap @ w[:, :, i, j].T for (i, j), tap in taps)
    sizes = sum(abs(tap) @ abs(w[:, :, i, j]).T for (i, j), tap in taps)
    right = np.maximum(np.transpose(sums, (2, 0, 1)), 0)
    bound = (w[0].size + 2) * np.finfo(np.float32).eps * np.transpose(sizes, (2, 0, 1))
    for target in targets():
        program = program_of(dense(windows), x, w, target=target)
        assert stages(program) == [["pad", "fill", "product", "point"]]
        made = executable(program, target)
        for side in Side:
            (result,) = made(x, w, order=backwards, side=side)
            assert (abs(result - right) <= bound + 1e-30).all()
            assert not (abs(np.roll(result, 1) - right) <= bound + 1e-30).all()


@pytest.mark.parametrize(("windows", "lanes"), [(SAME, 16), (BY_TWO, 32)])
def test_the_words(windows: Windows, lanes: int) -> None:
    """A border is no memory: its vectors reach from the first lane to the last one."""
    shapes = ((3, 28, 56), "float32"), ((3, 3, 3), "float32")
    program = program_of(layer(windows), *shapes, target=AVX512)
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, AVX512).directives
    assert ComputeAt("pad", "product", "d4") in words
    assert Vectorize("pad", "d2", Lanes(lanes)) in words


@pytest.mark.parametrize(("wide", "lanes"), [(9, 16), (8, 8), (4, 4)])
def test_short_rows_are_parts_of_registers(wide: int, lanes: int) -> None:
    shapes = ((3, 28, wide), "float32"), ((3, 3, 3), "float32")
    program = program_of(layer(SAME), *shapes, target=AVX512)
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, AVX512).directives
    assert Vectorize("pad", "d2", Lanes(lanes)) in words


def test_the_code() -> None:
    """Nine products of each vector; a row's vectors are loaded for three of its
    neighbours, and no loop or branch asks where the border is."""
    shapes = ((3, 40, 112), "float32"), ((3, 3, 3), "float32")
    program = program_of(layer(SAME), *shapes, target=AVX512)
    text = stage_text(program, "asm", AVX512)
    loop = max(inner_loops(text), key=lambda lines: count(lines, "vfmadd"))
    rows = count(loop, "vfmadd") // 9
    loads = [x for x in loop if re.search(r"vmovups.*\{%k\d\} \{z\}", x)]
    assert rows >= 7 and count(loop, "vfmadd") == 9 * rows
    assert len(loads) == 3 * (rows + 2) and not touches_stack(loop)


@pytest.mark.parametrize(
    ("windows", "rows", "loads"), [(SAME, 14, 3 * 14), (BY_TWO, 7, 2 * 14)]
)
def test_the_code_of_small_planes(windows: Windows, rows: int, loads: int) -> None:
    """Rows above and below a plane are no steps, and taps share what is loaded."""
    shapes = ((3, 14, 14), "float32"), ((3, 3, 3), "float32")
    text = stage_text(program_of(layer(windows), *shapes, target=AVX512), "asm", AVX512)
    outside = 6 if windows is SAME else 3
    found = text.splitlines()
    assert count(found, "vfmadd") + count(found, "vmulps") == 9 * rows - outside
    taken = [x for x in found if re.search(r"vmovups\s+-?\d*\(", x)]
    assert len(taken) == loads


@pytest.mark.parametrize(("windows", "tile"), [(SAME, (4, 6)), (BY_TWO, (8, 3))])
def test_the_code_of_a_first_layer(windows: Windows, tile: tuple[int, int]) -> None:
    """A tile of features and rows: each vector of pixels is loaded once for all
    features, each number of a filter for all rows, and all sums are in registers."""
    shapes = ((3, 48, 160), "float32"), ((16, 3, 3, 3), "float32")
    program = program_of(dense(windows), *shapes, target=AVX512)
    loops = inner_loops(stage_text(program, "asm", AVX512))
    loop = max(loops, key=lambda lines: count(lines, "vfmadd"))
    stack = touches_stack(loop)
    loads = [x for x in loop if re.search(r"vmov[au]ps\s+-?\d*\(", x)]
    loads, spilled = [x for x in loads if x not in stack], "zmm" in "".join(stack)
    features, rows = tile
    assert count(loop, "vfmadd") == 3 * features * rows
    if windows is SAME:
        assert len(loads) == 3 * rows and not spilled
    else:  # the pair that two taps share is one of two for the third
        assert len(loads) == 4 * rows
    assert count(loop, "vbroadcastss") == 3 * features


@pytest.mark.parametrize("name", ["aarch64", "riscv64+v"])
def test_tasks_of_others_make_the_border(name: str) -> None:
    """Where no vector of pixels is loaded in part."""
    shapes = ((3, 28, 112), "float32"), ((3, 3, 3), "float32")
    target = by_name(name)
    program = program_of(layer(SAME), *shapes, target=target)
    (kernel,) = program.kernels.values()
    assert StoreAt("pad", "task") in choose(kernel.nest, target).directives


def test_windows_down_short_rows() -> None:
    """Many rows are made at once, of a border that a task makes once; not long ones."""
    for pixels, once in ((7, True), (112, False)):
        windows = Windows((5, 1), (2, 0), (2, 0))
        shapes = ((16, 14, pixels), "float32"), ((5, 1, 16), "float32")
        program = program_of(layer(windows), *shapes, target=AVX512)
        (kernel,) = program.kernels.values()
        words = choose(kernel.nest, AVX512).directives
        assert (StoreAt("pad", "task") in words) == once
