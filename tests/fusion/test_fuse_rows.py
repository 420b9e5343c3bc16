"""Rows that are read whole are made where they are read, where that pays; drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import numpy_helper
from onnx.parser import parse_model

import nanoloom
from nanoloom.compiler import Report, partition_model
from nanoloom.kernels.program import Kernel
from nanoloom.nest.nest import LoopNest
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.kernels.test_blocks import levels
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import Array, shared_cache

SMALLEST = 1e-5  # beside a variance
READERS = {
    "Softmax": "y = Softmax<axis = -1>(r)",
    "LayerNormalization": "y = LayerNormalization<axis = -1>(r, one)",
    "ReduceMax": "y = ReduceMax<axes = [-1], keepdims = 0>(r)",
    "ReduceL1": "y = ReduceL1<axes = [-1], keepdims = 0>(r)",
}


@dataclass(frozen=True)
class Drawn:
    """A product or a depthwise convolution of numbers whose sums are exact, whose rows
    something reads whole."""

    x: Array
    w: Array
    image: bool
    step: int
    reader: str

    @classmethod
    def of(cls, seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        image, step = bool(seed % 2), int(rng.integers(1, 3))
        depth, made = (int(n) for n in rng.integers((3, 9), (60, 50 if image else 230)))
        shape, filters = (int(rng.integers(1025, 1500)), depth), (depth, made)
        if image:
            high, wide = (int(n) for n in rng.integers(31, 60, 2))
            shape, filters = (1, made, high, wide), (made, 1, 3, 3)
        x, w = (rng.integers(-3, 4, s).astype(np.float32) for s in (shape, filters))
        return cls(x, w / 64, image, step, list(READERS)[seed // 2 % len(READERS)])

    def model(self) -> onnx.ModelProto:
        product = "r = MatMul(x, w)"
        if self.image:
            words = f"group = {len(self.w)}, pads = [1, 1, 1, 1]"
            words += f", strides = [{self.step}, {self.step}]"
            product = f"c = Conv<{words}>(x, w) r = Transpose<perm = [0, 2, 3, 1]>(c)"
        shape = ", ".join(map(str, self.x.shape))
        model = parse_model(
            f"""<ir_version: 8, opset_import: ["" : 17]>
            g (float[{shape}] x) => (float y) {{ {product} {READERS[self.reader]} }}"""
        )
        one = np.ones(self.rows().shape[-1:], np.float32)
        model.graph.initializer.extend(
            numpy_helper.from_array(v, n) for n, v in (("w", self.w), ("one", one))
        )
        model.graph.output[0].type.tensor_type.ClearField("shape")
        return model

    def rows(self) -> Array:
        """What is read, in f64: exact in f32 as well."""
        x, w = self.x.astype(np.float64), self.w.astype(np.float64)
        if not self.image:
            return x @ w
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
        windows = windows[:, :, :: self.step, :: self.step]
        return np.einsum("nchwij,cij->nhwc", windows, w[:, 0])

    def expected(self) -> tuple[Array, Array]:
        """The result, and what a rounding in each of a row's numbers is relative to."""
        a = self.rows()
        top = a.max(-1, keepdims=True)
        if self.reader == "ReduceMax":
            return top[..., 0], 0 * top[..., 0]
        if self.reader == "ReduceL1":
            return abs(a).sum(-1), 0 * top[..., 0]
        if self.reader == "Softmax":
            made = np.exp(a - top)
            p = made / made.sum(-1, keepdims=True)
            return p, p * (1 + abs(a - top))
        centred = a - a.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + SMALLEST)
        p = centred / deviation
        return p, 2 * abs(a).max(-1, keepdims=True) / deviation * (1 + abs(p))


@pytest.mark.parametrize("seed", range(8))
def test_numbers(seed: int) -> None:
    """One kernel, and what it makes; largest numbers, and sums of these, are exact."""
    drawn = Drawn.of(seed)
    target, model = by_name(levels()[seed // 2 % len(levels())]), drawn.model()
    program = nanoloom.compile(
        model, cache=shared_cache(), options=CompileOptions(target)
    )
    (got,) = program({"x": drawn.x}).values()
    exact, size = drawn.expected()
    check(got, exact, exact.shape[-1] + 12, size)
    assert not passes(np.roll(got, 1), exact, exact.shape[-1] + 12, size)


def kernels(drawn: Drawn) -> list[Kernel]:
    options = CompileOptions(by_name("x86-64-v4"))
    program = nanoloom.compile(drawn.model(), options=options)
    model = program.source.entry(program.static_shapes(), {})
    return list(partition_model(model, options, Report()).kernels.values())


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_made_where_they_are_read(seed: int) -> None:
    (kernel,) = kernels(Drawn.of(seed))
    (fusion,) = kernel.nest.plan
    nest: LoopNest = kernel.nest
    assert nest.products and fusion.recompute == 0
    assert not nest.stage(fusion.consumer).is_contraction


def test_few_rows_of_large_weights_stay_apart() -> None:
    """Each task would read all of the weights for a few rows."""
    x, w = np.zeros((64, 700), np.float32), np.zeros((700, 800), np.float32)
    assert len(kernels(Drawn(x, w, False, 1, "Softmax"))) == 2
