"""An image that windows of several sizes read, of which one has it with a border."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom

Array = np.ndarray[Any, np.dtype[Any]]


def windows(x: Array, side: int, step: int, around: float) -> Array:
    """Of every place, in the last two axes."""
    low = side // 2
    wide = np.pad(x, ((0, 0), (0, 0), (low, low), (low, low)), constant_values=around)
    every = np.lib.stride_tricks.sliding_window_view(wide, (side, side), (2, 3))
    return every[:, :, ::step, ::step]


def convolved(x: Array, weights: Array, step: int) -> Array:
    n, channels = x.shape[:2]
    split = weights.reshape(channels, -1, *weights.shape[2:])
    taps = windows(x, weights.shape[-1], step, 0)
    made = np.einsum("nchwij,cmij->ncmhw", taps, split)
    return made.reshape(n, -1, *made.shape[3:])


def drawn(
    seed: int, images: int, channels: int, many: int
) -> tuple[onnx.ModelProto, Array, Array]:
    """Two windows of each place, added: the model, an input, the right result.

    many: how many results a convolution has of each channel, 0 for maxima in the second
    place.
    """
    random = np.random.default_rng(seed)
    side, step = int(random.integers(7, 13)), int(random.integers(1, 3))
    sizes = [int(k) for k in random.choice([3, 5, 7], 2, replace=False)]
    x = random.integers(-4, 5, (images, channels, side, side)).astype(np.float32)
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    shared (float[n, c, h, w] x) => (float[n, d, p, q] y) { y = Add(y0, y1) }
    """)
    right: Array = np.zeros((), np.float32)
    for i, size in enumerate(sizes):
        strides, pads = [step] * 2, [size // 2] * 4
        if i and not many:
            node = onnx.helper.make_node(
                "MaxPool", ["x"], [f"y{i}"], kernel_shape=[size] * 2, strides=strides,
                pads=pads,
            )  # fmt: skip
            right = right + windows(x, size, step, -np.inf).max((-2, -1))
        else:
            shape = channels * max(many, 1), 1, size, size
            w = random.integers(-3, 4, shape).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(w, f"w{i}"))
            node = onnx.helper.make_node(
                "Conv", ["x", f"w{i}"], [f"y{i}"], group=channels, strides=strides,
                pads=pads,
            )  # fmt: skip
            right = right + convolved(x, w, step)
        model.graph.node.insert(0, node)
    return model, x, right


@pytest.mark.parametrize(
    ("seed", "images", "channels", "many"),
    [(9, 3, 3, 2), (16, 2, 3, 3), (24, 2, 5, 3), (4, 2, 3, 0)],
)
def test_what_is_behind_an_image_is_outside_of_it(
    seed: int, images: int, channels: int, many: int
) -> None:
    """The border of the smaller window ends before that of the larger one."""
    model, x, right = drawn(seed, images, channels, many)
    program = nanoloom.compile(
        model, dims=dict(zip("nchw", x.shape, strict=True)), threads=1
    )
    assert (program({"x": x})["y"] == right).all()
