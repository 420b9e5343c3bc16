"""Whatever reads a layer's result at other places: the numbers, joined or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from nanoloom.cost.profit import profit
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.panel_parts import PanelParts, planned_panels
from nanoloom.nest.tasks import in_tasks
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.facts import Cache
from tests.kernels.padded_programs import Array
from tests.kernels.test_blocks import levels
from tests.kernels.test_fused_windows import ONE, RESNET, layer, small
from tests.linalg.bounds import sample
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import program_of, shared_cache


@dataclass(frozen=True)
class Drawn:
    """A layer with ReLU over 1 to 3 axes of pixels, and what follows it."""

    x: Array
    weights: Array
    words: dict[str, Any]  # of the pool, {} for a mean of all pixels
    last: tuple[int, ...]  # the order of axes at the end, () for none
    follows: bool  # whether something elementwise stands behind the pool

    @classmethod
    def of(cls, seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        axes = int(rng.integers(1, 4))
        channels, filters = (int(n) for n in rng.integers((1, 9), (12, 70)))
        sizes = [int(n) for n in rng.integers(9, {1: 400, 2: 45, 3: 16}[axes], axes)]
        kernel = [int(n) for n in rng.integers(1, 4, axes)]
        batch = int(rng.integers(1, 3))
        x = sample(seed, (batch, channels, *sizes), "float32")
        weights = sample(seed + 1, (filters, channels, *kernel), "float32")
        window = [int(n) for n in rng.integers(1, 4, axes)]
        low, high = ([int(rng.integers(0, n)) for n in window] for _ in "ab")
        strides = [int(n) for n in rng.integers(1, 4, axes)]
        words = {"kernel_shape": window, "strides": strides, "pads": [*low, *high]}
        last = tuple(map(int, rng.permutation(axes + 2))) if rng.random() < 0.3 else ()
        words = {} if rng.random() < 0.25 else words
        return cls(x, weights, words, last, rng.random() < 0.4)

    def model(self) -> onnx.ModelProto:
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"])]
        nodes.append(helper.make_node("Relu", ["c"], ["r"]))
        word = "MaxPool" if self.words else "GlobalAveragePool"
        made = "m" if self.follows else "p"
        nodes.append(helper.make_node(word, ["r"], [made], **self.words))
        if self.follows:
            nodes.append(helper.make_node("Neg", ["m"], ["p"]))
        if self.last:
            nodes.append(helper.make_node("Transpose", ["p"], ["y"], perm=self.last))
        graph = helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.x.shape)],
            [helper.make_tensor_value_info("y" if self.last else "p", 1, None)],
            [numpy_helper.from_array(self.weights, "w")],
        )  # fmt: skip
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)

    def right(self, x: Array, weights: Array) -> Array:
        """In float64, of numbers or of their magnitudes."""
        axes = tuple(range(2, x.ndim))
        view = np.lib.stride_tricks.sliding_window_view(x, weights.shape[2:], axes)
        taps = (1, *range(x.ndim, 2 * x.ndim - 2))
        made = np.tensordot(view, weights, (taps, range(1, weights.ndim)))
        image = np.maximum(np.moveaxis(made, -1, 1), 0)
        if not self.words:
            return self.ordered(image.mean(axes, keepdims=True))
        half = len(axes)
        pads = self.words["pads"]
        sides = ((0, 0), (0, 0), *zip(pads[:half], pads[half:], strict=True))
        around = np.pad(image, sides, constant_values=-np.inf)
        view = np.lib.stride_tricks.sliding_window_view(
            around, self.words["kernel_shape"], axes
        )
        steps = (
            slice(None),
            slice(None),
            *(slice(None, None, n) for n in self.words["strides"]),
        )
        return self.ordered(view[steps].max(tuple(range(x.ndim, 2 * x.ndim - 2))))

    def ordered(self, y: Array) -> Array:
        y = -y if self.follows else y
        return y.transpose(self.last) if self.last else y


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(10))
def test_any_consumer(seed: int) -> None:
    """Windows of 1 to 3 axes that overlap or not, means, other orders; small caches."""
    drawn = Drawn.of(seed)
    wide = drawn.x.astype(np.float64), drawn.weights.astype(np.float64)
    right, size = drawn.right(*wide), abs(drawn.right(*map(abs, wide)))
    steps = drawn.weights[0].size + drawn.x[0, 0].size + 2
    known = levels()
    options = CompileOptions(small(by_name(known[seed % len(known)])))
    program = nanoloom.compile(drawn.model(), cache=shared_cache(), options=options)
    (got,) = program({"x": drawn.x}).values()
    check(got, right, steps, size)
    assert not passes(got, np.roll(right, 1), steps, size)  # over all axes


def consumer(cache: Cache) -> tuple[LoopNest, PanelParts]:
    """A pool of overlapping windows behind a layer, joined for a small cache."""
    weights = np.ones((2, 2, 1, 35), np.float32)
    x = ((1, 40, 41), "float32")
    target = small(by_name("x86-64-v4"))
    (kernel,) = program_of(
        layer(ONE, RESNET, weights), x, target=target
    ).kernels.values()
    found = planned_panels(kernel.nest)
    assert found is not None
    assert found.blocks(32, cache)[found.column] == 32
    return kernel.nest, found


def test_blocks_grow_with_the_cache() -> None:
    """Whole pixels of a row first, then rows; no more than leave eight tasks."""
    for kib, rows in ((8, [1, 4, 32]), (40, [1, 20, 32]), (4096, [5, 20, 32])):
        cache = Cache(0, kib * 1024)
        found = consumer(cache)[1]
        block = found.blocks(32, cache)
        assert [block[name] for name in found.names] == rows
        assert found.fit(block, cache)


def test_what_is_computed_again_is_weighed() -> None:
    """Rows that two tasks make cost arithmetic; an image that the cache holds anyway
    spares nothing."""
    cache = Cache(0, 40 * 1024)
    nest, found = consumer(cache)
    target = small(by_name("x86-64-v4"))
    fused = in_tasks(nest, found.last, found.blocks(32, cache))
    assert profit(nest, fused, target).cycles > 0
    assert profit(nest, fused, by_name("x86-64-v4")).cycles < 0
    whole = in_tasks(nest, found.last, {})
    assert whole == nest and profit(nest, whole, target).cycles == 0
