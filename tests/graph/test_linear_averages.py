"""Images are averaged in front of layers of 1x1 filters."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx_ir import serde

import nanoloom
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom.target import by_name

TEXT = """
<ir_version: 8, opset_import: ["" : 19]>
g (float[2, 6, 9, 7] x, float[4, 6, 1, 1] v) =>
  (float[N, 4, H, W] y, float[P, Q, R, S] z)
<float[4, 6, 1, 1] w = WEIGHTS, float[4, 6, 3, 3] u = LARGER,
 float[4, 3, 1, 1] t = HALF, float[4] b = {1, 2, 3, 4}>
{
    made = Conv LAYER
    y = POOL
    z = Neg(OTHER)
}
"""
VALUES = [((7 * i) % 11 - 5) / 8 for i in range(24 * 9)]
FITTED = 'strides = [2, 2], auto_pad = "SAME_UPPER"'
HALVED = "AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(made)"


def written(layer: str = "(x, w, b)", pool: str = HALVED, other: str = "x") -> str:
    text = TEXT.replace("LAYER", layer).replace("POOL", pool).replace("OTHER", other)
    for word, count in (("WEIGHTS", 24), ("LARGER", 216), ("HALF", 12)):
        text = text.replace(word, "{" + ", ".join(map(str, VALUES[:count])) + "}")
    return text


def averaged(extra: str) -> str:
    return f"AveragePool<kernel_shape = [2, 2], {extra}>(made)"


@pytest.mark.parametrize(
    ("layer", "pool", "other", "first"),
    [
        ("(x, w, b)", HALVED, "x", True),
        ("(x, w)", HALVED, "x", True),
        ("<group = 2>(x, t, b)", HALVED, "x", True),
        ("(x, v, b)", HALVED, "x", True),  # of filters that are computed
        ("(x, w, b)", "GlobalAveragePool(made)", "x", True),
        ("(x, w, b)", averaged("strides = [2, 1]"), "x", True),
        ("(x, w, b)", HALVED, "made", False),  # somebody else reads it
        ("(x, w, b)", averaged("strides = [1, 1]"), "x", False),  # as many pixels
        ("(x, w, b)", averaged("strides = [2, 2], pads = [1, 1, 1, 1]"), "x", False),
        ("(x, w, b)", averaged("strides = [2, 2], ceil_mode = 1"), "x", False),
        ("(x, w, b)", averaged(FITTED), "x", False),
        ("(x, w, b)", HALVED.replace("Average", "Max"), "x", False),
        ("(x, u, b)", HALVED, "x", False),
        ("<strides = [2, 2]>(x, w, b)", HALVED, "x", False),
        ("<pads = [1, 1, 1, 1]>(x, w, b)", HALVED, "x", False),
    ],
)  # fmt: skip
def test_which_averages(layer: str, pool: str, other: str, first: bool) -> None:
    model = serde.deserialize_model(parser.parse_model(written(layer, pool, other)))
    optimize(model, OPERATORS.keys(), by_name("x86-64-v3"))
    kinds = [n.op_type for n in model.graph]
    (convolution,) = (i for i, kind in enumerate(kinds) if kind.startswith("Conv"))
    (pooling,) = (i for i, kind in enumerate(kinds) if "Pool" in kind)
    assert (pooling < convolution) == first


@pytest.mark.drawn
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("pool", [HALVED, "GlobalAveragePool(made)"])
@pytest.mark.parametrize("layer", ["(x, w, b)", "<group = 2>(x, t, b)"])
def test_numbers(layer: str, pool: str, exact: bool) -> None:
    """Sums of up to 6 products and 63 pixels, one of which is of the others."""
    proto = parser.parse_model(written(layer, pool))
    x = np.random.default_rng(5).standard_normal((2, 6, 9, 7), np.float32)
    v = np.zeros((4, 6, 1, 1), np.float32)
    found = nanoloom.compile(proto, exact_conv=exact)({"x": x, "v": v})["y"]
    w = np.array(VALUES[:24]).reshape(4, 6)
    if "group" in layer:
        few = np.array(VALUES[:12]).reshape(4, 3)
        w = np.kron(np.eye(2), np.ones((2, 3))) * np.tile(few, 2)
    wanted, size = (
        mean(np.einsum("fc,nchw->nfhw", a, b) + bias, pool)
        for a, b in ((w, x.astype(float)), (abs(w), abs(x).astype(float)))
        for bias in [np.arange(1, 5.0)[:, None, None]]
    )
    bound = (6 + 63 + 3) * 2**-23 * size
    assert (abs(found - wanted) <= bound).all()
    assert abs(wanted).max() > 100 * bound.max(), "no average would be seen"


def mean(image: np.ndarray, pool: str) -> np.ndarray:
    """Of 2 x 2 pixels, or of all."""
    if pool.startswith("Global"):
        return image.mean((2, 3), keepdims=True)
    return image[:, :, :8, :6].reshape(2, 4, 4, 2, 3, 2).mean((3, 5))


def test_sizes_are_open() -> None:
    """Samples of sizes are rewritten alike, and one program serves all of them."""
    text = written().replace("float[2, 6, 9, 7]", "float[N, 6, A, B]")
    program = nanoloom.compile(parser.parse_model(text))
    exact = nanoloom.compile(parser.parse_model(text), exact_conv=True)
    random = np.random.default_rng(6)
    for shape in ((1, 6, 8, 8), (2, 6, 13, 7), (1, 6, 2, 31)):
        arrays = {"x": random.standard_normal(shape, np.float32)}
        arrays["v"] = np.zeros((4, 6, 1, 1), np.float32)
        found, wanted = program(arrays)["y"], exact(arrays)["y"]
        assert np.allclose(found, wanted, atol=1e-5)
        assert abs(wanted).max() > 0.1
