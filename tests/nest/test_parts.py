"""What tasks have of the parts that are read whole: columns, borders; the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

import nanoloom
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.kernels.test_blocks import levels
from tests.linalg.bounds import sample
from tests.linalg.reductions.test_softmax import softmax
from tests.vector.checks import check
from tests.vector.kernel_harness import shared_cache

TALKING_HEADS = """<ir_version: 8, opset_import: ["" : 18]>
talking_heads (float[{}, {}, {}, {}] x) => (float[a, b, c, d] y) {{
    t = Transpose<perm = [0, 2, 3, 1]>(x)
    m = MatMul(t, w)
    s = Add(m, b)
    u = Transpose<perm = [0, 3, 1, 2]>(s)
    y = Softmax<axis = -1>(u)
}}"""


@pytest.mark.parametrize("seed", range(4))
def test_tasks_have_all_columns_of_a_product(seed: int) -> None:
    """Heads are columns of the product, and stand in front of rows in its softmax."""
    rng = np.random.default_rng(seed)
    *shape, made = map(int, rng.integers((1, 2, 9, 9, 1), (3, 9, 60, 60, 21)))
    heads = shape[1]
    x, w, b = (
        sample(seed + n, size, "float32")
        for n, size in enumerate((tuple(shape), (heads, made), (made,)))
    )
    model = parse_model(TALKING_HEADS.format(*shape))
    weights = {"w": w, "b": b}
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    options = CompileOptions(by_name(levels()[seed % len(levels())]))
    program = nanoloom.compile(model, cache=shared_cache(), options=options)
    sums = [
        np.einsum("bhrc,hm->bmrc", p.astype(np.float64), q) + c[:, None, None]
        for p, q, c in ((x, w, b), (abs(x), abs(w), abs(b)))
    ]
    roundings = 2 * (heads + 4) * sums[1].max() + shape[-1] + 8  # of x - max, then sums
    (got,) = program({"x": x}).values()
    check(got, softmax(sums[0], (-1,)), roundings)


STEM = """<ir_version: 8, opset_import: ["" : 18]>
stem (float[{}, {}, {}, {}] x) => (float[a, b, c, d] y) {{
    t = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w, b)
    u = Transpose<perm = [0, 2, 3, 1]>(t)
    y = Softmax<axis = -1>(u)
}}"""


@pytest.mark.parametrize("seed", range(2))
def test_a_border_in_front_of_a_convolution(seed: int) -> None:
    """It is stored for a task, and not computed again at the tiles."""
    rng = np.random.default_rng(seed)
    *shape, side, made = map(int, rng.integers((1, 3, 40, 17), (3, 17, 70, 65)))
    shape = [*shape, side, side]
    x, w, b = (
        sample(seed + n, size, "float32")
        for n, size in enumerate((tuple(shape), (made, shape[1], 3, 3), (made,)))
    )
    model = parse_model(STEM.format(*shape))
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in {"w": w, "b": b}.items()
    )
    program = nanoloom.compile(model, cache=shared_cache())
    sums = [convolved(*each) for each in ((x, w, b), (abs(x), abs(w), abs(b)))]
    roundings = 2 * (9 * shape[1] + 4) * sums[1].max() + made + 8
    (got,) = program({"x": x}).values()
    check(got, softmax(sums[0], (-1,)), roundings)


def convolved(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """3x3 in steps of 2, with a border; channels last."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,fcij->nhwf", windows[:, :, ::2, ::2], w) + b
