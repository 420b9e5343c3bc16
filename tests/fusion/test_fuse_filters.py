"""Filters of a channel each behind a layer: the numbers, joined or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.kernels.padded_programs import Array
from tests.kernels.test_blocks import levels
from tests.kernels.test_fused_windows import small
from tests.linalg.bounds import sample
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import shared_cache


@dataclass(frozen=True)
class Drawn:
    """A layer with ReLU, filters of a channel each with any border and steps, and what
    may follow them."""

    x: Array
    weights: Array
    filters: Array
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    follows: str

    @classmethod
    def of(cls, seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        batch, channels, high, wide = map(
            int, rng.integers((1, 1, 9, 9), (3, 9, 40, 40))
        )
        made, taps = int(rng.integers(12, 70)), int(rng.integers(1, 3))
        rows, columns = (int(n) for n in rng.integers(1, 6, 2))
        low, right, end, behind = (int(rng.integers(0, n)) for n in (rows, columns) * 2)
        step = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
        return cls(
            sample(seed, (batch, channels, high, wide), "float32"),
            sample(seed + 1, (made, channels, taps, taps), "float32"),
            sample(seed + 2, (made, 1, rows, columns), "float32"),
            step,
            (low, right, end, behind),
            str(rng.choice(["", "Relu", "Neg"])),
        )

    def model(self) -> onnx.ModelProto:
        words: dict[str, Any] = {"strides": self.strides, "pads": self.pads}
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["c"]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node(
                "Conv", ["r", "f"], ["d"], group=len(self.filters), **words
            ),
        ]
        nodes += [helper.make_node(self.follows, ["d"], ["y"])] if self.follows else []
        graph = helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.x.shape)],
            [helper.make_tensor_value_info(nodes[-1].output[0], 1, None)],
            [numpy_helper.from_array(self.weights, "w"),
             numpy_helper.from_array(self.filters, "f")],
        )  # fmt: skip
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)

    def right(self, x: Array, weights: Array, filters: Array) -> Array:
        """The sums in float64, of numbers or of their magnitudes."""
        view = np.lib.stride_tricks.sliding_window_view(x, weights.shape[2:], (2, 3))
        made = np.einsum("nchwij,fcij->nfhw", view, weights)
        low, left, end, behind = self.pads
        around = np.pad(
            np.maximum(made, 0), ((0, 0), (0, 0), (low, end), (left, behind))
        )
        view = np.lib.stride_tricks.sliding_window_view(
            around, filters.shape[2:], (2, 3)
        )[:, :, :: self.strides[0], :: self.strides[1]]
        return np.einsum("nfhwij,fij->nfhw", view, filters[:, 0])


AFTER: dict[str, Callable[[Array], Array]] = {
    "": lambda y: y,
    "Relu": lambda y: np.maximum(y, 0),
    "Neg": np.negative,
}


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(10))
def test_any_filters(seed: int) -> None:
    drawn = Drawn.of(seed)
    wide = [a.astype(np.float64) for a in (drawn.x, drawn.weights, drawn.filters)]
    right, size = drawn.right(*wide), drawn.right(*map(abs, wide))
    steps = drawn.weights[0].size + drawn.filters[0].size + 4
    known = levels()
    options = CompileOptions(small(by_name(known[seed % len(known)])))
    program = nanoloom.compile(drawn.model(), cache=shared_cache(), options=options)
    (got,) = program({"x": drawn.x}).values()
    right = AFTER[drawn.follows](right)
    check(got, right, steps, size)
    assert not passes(got, np.roll(right, 1), steps, size)
