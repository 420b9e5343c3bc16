"""Pools whose windows overlap: in the kernel of the product that makes their image."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

import nanoloom
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ALL, Parallel, Schedule, StoreAt
from nanoloom.target import Target, by_name
from nanoloom.target.facts import Cache
from tests.guarded import Side
from tests.kernels.padded_programs import (
    LEAST,
    Array,
    Windows,
    kernels,
    pool,
    stages,
)
from tests.kernels.test_blocks import levels
from tests.kernels.test_mark_implicit_padding import first_layer
from tests.linalg.bounds import sample
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import (
    ANY_CPU,
    Executable,
    at_once,
    backwards,
    executable,
    program_of,
    shared_cache,
    stage_text,
    targets,
)

NO_CACHE = replace(ANY_CPU, caches=Cache(64, 64))  # no block stays in one
ONE = Windows((2, 2), (0, 0), (0, 0))
STEPS = Windows((3, 3), (1, 1), (1, 1), steps=(2, 2))
RESNET = Windows((3, 3), (1, 1), (0, 0), LEAST, steps=(2, 2))
# image, layer, pool
CASES = [
    ((40, 41), ONE, RESNET),
    ((37, 50), ONE, replace(RESNET, high=(1, 1))),
    ((41, 43), ONE, replace(RESNET, low=(0, 0))),  # no border at all
    ((36, 44), ONE, replace(RESNET, low=(1, 0), high=(0, 1))),
    ((84, 82), STEPS, RESNET),
    ((53, 40), ONE, Windows((3, 2), (2, 1), (2, 0), LEAST, steps=(1, 2))),
    ((61, 40), ONE, Windows((2, 3), (0, 2), (0, 2), LEAST, apart=(2, 2))),
]


def small(target: Target) -> Target:
    """With a cache that images of a test outweigh."""
    return replace(target, caches=Cache(32 * 1024, 72 * 1024))


def layer(windows: Windows, pooled: Windows, weights: Array, **words: bool) -> Any:
    """A pool behind a layer and its ReLU; twice: the image is a result, too."""
    first = first_layer(windows, weights)

    def make(b: Any, x: Any) -> Any:
        image = first(b, x)
        made = pool(pooled)(b, image)
        return [image, made] if words.get("twice") else made

    return make


def tasks_of(made: Executable, kind: str) -> int:
    """Tasks of the first kernel of a kind."""
    steps = made.made.table.steps
    return next(step.tasks for step in steps if step.kernel.startswith(kind))


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize(("image", "windows", "pooled"), CASES)
def test_numbers(image: tuple[int, int], windows: Windows, pooled: Windows) -> None:
    """The bits of two kernels, NaN and infinities among them, in any order of tasks."""
    x = sample(1, (1, *image), "float32")
    x[0, 5, 7], x[0, 20, 0], x[0, -1, -1] = np.nan, np.inf, -np.inf
    weights = sample(2, (*windows.window, 1, 35), "float32")
    make = layer(windows, pooled, weights)
    apart = program_of(make, x, target=NO_CACHE)
    assert len(kernels(apart)) > 1
    for target in map(small, targets()):
        program = program_of(make, x, target=target)
        assert kernels(program) == ["contraction"]
        alone = executable(apart, target)
        assert tasks_of(alone, "reduction") > 1
        (right,) = alone(x)
        assert np.isnan(right).any() and np.unique(right).size > 100
        made = executable(program, target)
        assert tasks_of(made, "contraction") >= 4
        for order, side in product((at_once, backwards), Side):
            (result,) = made(x, order=order, side=side)
            assert result.tobytes() == right.tobytes()


def test_the_schedule() -> None:
    """Tasks of rows and panels; the image is written between its border, in a task."""
    target = small(by_name("x86-64-v4"))
    x, weights = ((1, 84, 82), "float32"), np.ones((3, 3, 1, 35), np.float32)
    program = program_of(layer(STEPS, RESNET, weights), x, target=target)
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, target).directives
    assert StoreAt("pad", "source") in words and StoreAt("pad_2", "padded") in words
    text = stage_text(program, "vector", target)
    assert text.count("memref.alloc") == 0
    assert "memref.copy" not in text


def test_what_stays_apart() -> None:
    """What others read too, what fits the cache, long sums, and pools without overlap
    of rows that take as long."""
    target, x = small(by_name("x86-64-v4")), ((1, 40, 41), "float32")
    weights = np.ones((2, 2, 1, 35), np.float32)
    twice = layer(ONE, RESNET, weights, twice=True)
    assert len(kernels(program_of(twice, x, target=target))) > 1
    whole = layer(ONE, RESNET, weights)
    large = replace(target, caches=Cache(32 * 1024, 1 << 21))
    assert len(kernels(program_of(whole, x, target=large))) > 1
    long = layer(ONE, RESNET, np.ones((2, 2, 64, 35), np.float32))
    deep = ((64, 40, 41), "float32")
    assert len(kernels(program_of(long, deep, target=target))) > 1


def test_refusals() -> None:
    target, x = small(by_name("x86-64-v4")), ((1, 40, 41), "float32")
    weights = np.ones((2, 2, 1, 35), np.float32)
    program = program_of(layer(ONE, RESNET, weights), x, target=target)
    (kernel,) = program.kernels.values()
    assert stages(program) == [
        ["fill", "product", "point", "pad", "fill_2", "reduction"]
    ]
    with pytest.raises(Error, match="no border that is made inside of a loop"):
        Schedule((StoreAt("pad", "padded"),)).apply(kernel.nest)
    alone = Parallel("reduction", (2, 0, 0), ("pad",))
    with pytest.raises(Error, match="point is not computed inside of d0o"):
        Schedule((alone, StoreAt("pad", "padded"))).apply(kernel.nest)
    loops = Parallel("reduction", (2, 0, 0), ALL)
    text = str(Schedule((loops, StoreAt("pad", "padded"))).apply(kernel.nest))
    assert "stored in its source, with a border" in text


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(4))
def test_pixels_of_a_layer_without_windows_of_rows(seed: int) -> None:
    """Conv 3x1x1: rows and pixels of its image are one axis only where nothing reads
    them as two, and the pool's border does."""
    rng = np.random.default_rng(seed)
    frames, high, wide = (int(n) for n in rng.integers((1, 30, 30), (4, 50, 50)))
    channels, filters = (int(n) for n in rng.integers((4, 30), (20, 60)))
    x = sample(seed, (1, channels, frames, high, wide), "float32")
    weights = sample(seed + 9, (filters, channels, 3, 1, 1), "float32")
    model = parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        layer (float[{", ".join(map(str, x.shape))}] x) => (float[?, ?, ?, ?, ?] y) {{
            made = Conv<pads = [1, 0, 0, 1, 0, 0]>(x, weights)
            image = Relu(made)
            y = MaxPool<kernel_shape = [1, 3, 3], strides = [1, 2, 2],
                        pads = [0, 1, 1, 0, 1, 1]>(image)
        }}""")
    model.graph.initializer.append(numpy_helper.from_array(weights, "weights"))
    one, other = x.astype(np.float64), weights.astype(np.float64)
    right, size = (
        pooled_layer(*each) for each in ((one, other), (abs(one), abs(other)))
    )
    for level in levels():
        options = CompileOptions(small(by_name(level)))
        got = nanoloom.compile(model, cache=shared_cache(), options=options)({"x": x})[
            "y"
        ]
        check(got, right, 3 * channels + 2, size)
        assert not passes(got, np.roll(right, 1, -1), 3 * channels + 2, size)


def pooled_layer(x: Array, weights: Array) -> Array:
    """Sums over three frames and the channels, at least 0; the most of each 3x3."""
    frames = x.shape[2]
    padded = np.pad(x[0], ((0, 0), (1, 1), (0, 0), (0, 0)))
    taps = [padded[:, t : t + frames] for t in range(3)]
    image = np.einsum("tcdyx,fct->fdyx", taps, weights[..., 0, 0])
    around = np.pad(np.maximum(image, 0), ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))
    return view[:, :, ::2, ::2].max((-1, -2))[None]


@pytest.mark.parametrize("axes", [1, 2])
def test_a_sum_of_all_that_windows_give(axes: int) -> None:
    """A single number, with no axis that it keeps."""
    image, filters = (1, 2, 7, 9)[: 2 + axes], (3, 2, 3, 3)[: 2 + axes]
    model = parse_model(f"""<ir_version: 10, opset_import: ["": 20]>
        g (float{list(image)} x, float{list(filters)} w) => (float y)
        {{ c = Conv(x, w) y = ReduceSum<keepdims = 0>(c) }}""")
    random = np.random.default_rng(axes)
    x, w = (random.integers(-3, 4, s).astype(np.float32) for s in (image, filters))
    places = tuple(range(1, 1 + axes))
    windows = np.lib.stride_tricks.sliding_window_view(x[0], filters[2:], places)
    wanted = (windows.sum(places) * w.sum(0)).sum()
    found = nanoloom.compile(model, threads=1, cache=shared_cache())({"x": x, "w": w})
    assert found["y"] == wanted != 0
