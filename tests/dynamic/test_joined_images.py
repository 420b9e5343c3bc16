"""Images of any size that are put in order and joined, in place."""

from __future__ import annotations

import warnings

import numpy as np
import onnx

import nanoloom
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import shared_cache

MODEL = """
<ir_version: 10, opset_import: ["": 21]>
images (float[1, 8, high, wide] x, float[1, 8, high, more] z) => (float[1, 2, h, w] y)
{
    a = DepthToSpace <blocksize = 2> (x)
    b = DepthToSpace <blocksize = 2> (z)
    y = Concat <axis = 3> (a, b)
}
"""
SIZES = [(5, 7, 3), (16, 33, 40), (1, 1, 1), (37, 2, 64)]


def test_depths_become_rows_where_they_are_joined() -> None:
    """One program, without a copy of what stands in its place already."""
    model = onnx.parser.parse_model(MODEL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a size that is compiled on its own warns
        program = nanoloom.compile(model, cache=shared_cache())
        for high, wide, more in SIZES:
            x = sample(1, (1, 8, high, wide), "float32")
            z = sample(2, (1, 8, high, more), "float32")
            made = program({"x": x, "z": z})["y"]
            assert np.array_equal(made, np.concatenate([spread(x), spread(z)], 3))


def spread(x: np.ndarray) -> np.ndarray:
    _, _, high, wide = x.shape
    blocks = x.reshape(1, 2, 2, 2, high, wide).transpose(0, 3, 4, 1, 5, 2)
    return blocks.reshape(1, 2, 2 * high, 2 * wide)
