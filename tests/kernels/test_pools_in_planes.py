"""Pools of images whose channels stand in front: no transpose and no padded copy."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest

from nanoloom.fusion.layouts.layout import FIRST, LAST, Layout
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ComputeAt, StoreAt
from nanoloom.target import by_name
from tests.fusion.layouts.test_networks import planned
from tests.guarded import Side
from tests.kernels.padded_programs import Array, Windows, plain, stages
from tests.kernels.test_planes import GEOMETRY, SAME
from tests.linalg.bounds import sample
from tests.linalg.single import model_of
from tests.vector.assembly import count, inner_loops, touches_stack
from tests.vector.kernel_harness import (
    at_once,
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

AVX512 = by_name("x86-64-v4")
FOLDS: dict[str, tuple[float, Any]] = {
    "max": (-np.inf, lambda one, other: one.maximum(other)),
    "min": (np.inf, lambda one, other: one.minimum(other)),
    "sum": (0.0, lambda one, other: one + other),
}


def pool(windows: Windows, fold: str) -> Any:
    """y[c, y, x] = fold of pad(image)[c, y + i, x + j]."""
    start, combine = FOLDS[fold]

    def make(b: Any, x: Any) -> Any:
        padded = b.pad(x, (0, *windows.low), (0, *windows.high), windows.number)
        extents = windows.extents(x.shape[1:])
        pixels = [d.shift_dims(5, 1) for d in windows.indexing(4, 2).results]
        image = ir.AffineMap.get(5, 0, [ir.AffineDimExpr.get(0), *pixels])
        window = b.tensor(b.empty(windows.window, x.dtype), x.dtype)
        (made,) = b.generic(
            [(padded, image), (window, plain(5, 3, 4))],
            [(b.full((x.shape[0], *extents), start, x.dtype), plain(5, 0, 1, 2))],
            ["parallel"] * 3 + ["reduction"] * 2,
            lambda a, _, sofar: combine(sofar, a),
        )  # fmt: skip
        return made

    return make


def exact(windows: Windows, fold: str, x: Array) -> tuple[Array, Array]:
    """The results in float64, and a bound: nothing is rounded but sums."""
    taps = windows.taps(x.transpose(1, 2, 0).astype(np.float64))
    all_taps = np.stack(list(taps.values()))
    made = getattr(np, fold)(all_taps, axis=0).transpose(2, 0, 1)
    sizes = np.abs(all_taps).sum(0).transpose(2, 0, 1)
    eps = np.finfo(x.dtype).eps * len(taps) if fold == "sum" else 0.0
    return made, sizes * eps if eps else np.zeros_like(made)


@pytest.mark.drawn(one_in=24)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("neutral", [True, False])
def test_numbers(
    image: tuple[int, int], windows: Windows, kind: str, fold: str, neutral: bool
) -> None:
    """Against float64, with nothing beside the image that could be read; the padding
    may be what changes no result, or any other number."""
    number = FOLDS[fold][0] if neutral else 0.75
    windows = replace(windows, number=number)
    x = sample(1, (3, *image), kind)
    with np.errstate(invalid="ignore"):
        right, bound = exact(windows, fold, x)
    bound = np.where(np.isfinite(right), bound, 0)
    for target in targets():
        program = program_of(pool(windows, fold), x, target=target)
        made = executable(program, target)
        for order, side in product((at_once, backwards), Side):
            (result,) = made(x, order=order, side=side)
            assert np.all((result == right) | (abs(result - right) <= bound))
            assert not np.all((result == 2 - right) | (abs(2 - right - right) <= bound))


@pytest.mark.parametrize("fold", ["max", "sum"])
def test_a_number_that_is_none_stays_in_its_windows(fold: str) -> None:
    """NaN is the result of the windows that read it, at corners too."""
    x = sample(2, (2, 9, 37), "float32")
    x[0, 0, 0], x[0, 8, 36] = np.nan, np.nan
    windows = replace(SAME, number=FOLDS[fold][0])
    taps = windows.taps(x.transpose(1, 2, 0)).values()
    none = np.any([np.isnan(tap) for tap in taps], axis=0).transpose(2, 0, 1)
    assert none.sum() == 8
    for target in targets():
        made = executable(program_of(pool(windows, fold), x, target=target), target)
        (result,) = made(x)
        assert (np.isnan(result) == none).all()


def test_a_result_as_large_as_its_window() -> None:
    """One memory is room for the sums and the extents of the window, which is not
    read."""
    windows, x = Windows((5, 5), (2, 2), (2, 2)), sample(6, (5, 5), "float32")

    def mean(b: Any, x: Any) -> Any:
        window = b.tensor(b.empty(windows.window, x.dtype), x.dtype)
        padded = b.pad(x, windows.low, windows.high, 0)
        (made,) = b.generic(
            [(padded, windows.indexing(4, 2)), (window, plain(4, 2, 3))],
            [(b.full((5, 5), 0, x.dtype), plain(4, 0, 1))],
            ["parallel"] * 2 + ["reduction"] * 2, lambda a, _, total: total + a,
        )  # fmt: skip
        return b.elementwise(lambda total: total * 0.5, made)

    taps = np.stack([*windows.taps(x[..., None].astype(np.float64)).values()])[..., 0]
    right = taps.sum(0) / 2
    bound = 26 * np.finfo(np.float32).eps * abs(taps).sum(0)
    for target in targets():
        (result,) = executable(program_of(mean, x, target=target), target)(x)
        assert (abs(result - right) <= bound).all()
        assert not (abs(result.T - right) <= bound).all()


def layouts_of(op: str, target: str = "x86-64-v3", **words: Any) -> set[Layout]:
    """What is chosen for the image of a pool between a model's input and output."""
    x = sample(3, (1, 20, 28, 28), "float32")
    with mlir.context():
        _, plan = planned(model_of(op, [x], words)[0], target=by_name(target))
        find, pools = plan.edges.links.find, plan.edges.products
        return {plan.chosen.get(find(each.features), LAST) for each in pools}


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_a_pool_alone_stays_in_the_order_of_the_model(op: str) -> None:
    """Rows are vectors of pixels: not by three pixels, nor where no vector is loaded in
    part; windows of many taps go along one axis after the other."""
    words: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    for steps in ([1, 1], [2, 2], [3, 1]):
        assert layouts_of(op, **words, strides=steps) == {FIRST}
    assert FIRST not in layouts_of(op, **words, strides=[1, 3])
    assert FIRST not in layouts_of(op, "x86-64-v2", **words)
    wide = layouts_of(op, kernel_shape=[9, 9], pads=[4, 4, 4, 4])
    assert FIRST in wide


def test_a_pool_lies_as_the_layer_that_makes_its_image() -> None:
    """Filters of one pixel are no planes, depthwise ones are."""
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    for group, side, wanted in ((1, 1, LAST), (24, 3, FIRST)):
        weights = sample(4, (24, 24 // group, side, side), "float32")
        inputs = [sample(3, (1, 24, 28, 28), "float32"), weights]
        model, _ = model_of("Conv", inputs, {"group": group}, constants=(1,))
        model.graph.node.append(
            onnx.helper.make_node("MaxPool", ["y0"], ["z"], **window)
        )
        model.graph.output[0].name = "z"
        with mlir.context():
            _, plan = planned(model)
            pool = plan.edges.products[-1]
            assert plan.chosen[plan.edges.links.find(pool.features)] == wanted


@pytest.mark.parametrize("step", [1, 2])
def test_the_code(step: int) -> None:
    """A row's vectors are loaded under masks for all of its windows; nothing is copied,
    and nothing spilled: by two pixels some masks are, which took no time, measured."""
    windows = replace(SAME, steps=(step, step), number=-np.inf)
    program = program_of(pool(windows, "max"), ((3, 80, 160), "float32"), target=AVX512)
    assert stages(program) == [["pad", "fill", "reduction"]]
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, AVX512).directives
    assert ComputeAt("pad", "reduction", "d4") in words
    assert not any(isinstance(word, StoreAt) for word in words)
    (loop,) = inner_loops(stage_text(program, "asm", AVX512))
    rows = count(loop, "vrangeps") // 8
    loads = [x for x in loop if re.search(r"vblendmps\s+-?\d*\(", x)]
    assert rows >= 8 and count(loop, "vrangeps") == 8 * rows
    of_row = 3 if step == 1 else 4  # two pairs, for even and for odd pixels
    assert len(loads) == of_row * ((rows - 1) * step + 3)
    assert step == 2 or not touches_stack(loop)
