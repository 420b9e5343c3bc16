"""`--precision bf16`: borders in bf16, and first layers as sums over rows of taps."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from nanoloom.ir import mlir
from nanoloom.kernels.retype.precision import to_bf16
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.convolution import contract
from tests.linalg.bounds import sample
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import Array, build

ROW_OF_TAPS = "tensor<8x3x{}xbf16>"


def text_of(channels: int, dilation: int = 1, *, constant: bool = True) -> str:
    """A convolution by 3x3, with a border of one pixel, in bf16."""
    weights = sample(1, (8, channels, 3, 3), "float32")
    steps, border, size = (dilation, dilation), (1, 1), (9, 9)
    result = (11 - 2 * dilation,) * 2
    window = Window((3, 3), (1, 1), steps, border, border, size, result)

    def make(b: Any, x: Any, *w: Any) -> Any:
        filters = b.constant(weights) if constant else w[0]
        return contract(b, window.pad(b, x), filters, window)

    image = np.zeros((1, *size, channels), np.float32)
    with mlir.context():
        given = (image,) if constant else (image, weights)
        return str(to_bf16(build(make, *given)).module)


@pytest.mark.parametrize("channels", [3, 16])
def test_what_is_inside_of_a_border_is_converted(channels: int) -> None:
    text = text_of(channels)
    inserted = [line for line in text.splitlines() if "tensor.insert_slice" in line]
    assert any(f"into tensor<1x11x11x{channels}xbf16>" in line for line in inserted)
    conversions = [line for line in text.splitlines() if "arith.truncf %in" in line]
    assert len(conversions) == 1
    assert f"-> tensor<1x9x9x{channels}xbf16>" in text


@pytest.mark.parametrize("channels", [3, 4, 7])
def test_a_row_of_taps_is_one_sum(channels: int) -> None:
    text = text_of(channels)
    assert ROW_OF_TAPS.format(3 * channels) in text
    assert f"tensor<1x11x{11 * channels}xbf16>" in text


def test_what_stays() -> None:
    """Many channels, taps apart, rows that are too short, filters not known."""
    assert ROW_OF_TAPS.format(3 * 16) not in text_of(16)
    for text in (text_of(3, 2), text_of(1), text_of(2), text_of(3, constant=False)):
        assert "bf16" not in text


def convolved(x: Array, w: Array, strides: tuple[int, int]) -> Array:
    """In float64, of padded [1, c, y, x] by [f, c, k, k]."""
    wide, (down, right) = x.astype(np.float64), strides
    high, wide_out = (
        (n - k) // s + 1
        for n, k, s in zip(x.shape[2:], w.shape[2:], strides, strict=True)
    )
    made = np.zeros((1, w.shape[0], high, wide_out))
    for i, j in product(*map(range, w.shape[2:])):
        rows, columns = slice(i, i + down * high, down), slice(j, None, right)
        part = wide[:, :, rows, columns][:, :, :high, :wide_out]
        made += np.einsum("ncyx,fc->nfyx", part, w[:, :, i, j].astype(np.float64))
    return made


@pytest.mark.parametrize(
    ("channels", "kernel", "strides", "pads"),
    [
        (3, (7, 7), (2, 2), (3, 3, 3, 3)),
        (1, (2, 9), (1, 3), (0, 4, 1, 4)),
        (4, (3, 5), (2, 1), (1, 0, 0, 0)),
    ],
)
def test_first_layers(
    channels: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    """The numbers, and not those of taps in another order."""
    x = sample(1, (1, channels, 13, 37), "float32")
    w = sample(2, (20, channels, *kernel), "float32")
    border = [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])]
    bf16 = ml_dtypes.bfloat16
    inside, filters = np.pad(x, border).astype(bf16), w.astype(bf16)
    exact = convolved(inside, filters, strides)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=strides, pads=pads)
    graph = helper.make_graph(
        [node],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, exact.shape)],
        [numpy_helper.from_array(w, "w")],
    )
    program = nanoloom.compile(helper.make_model(graph), precision="bf16")
    got = program({"x": x})["y"]
    magnitude = convolved(abs(inside), abs(filters), strides)
    terms = channels * kernel[0] * kernel[1] + 1
    check(got, exact, terms, magnitude)
    turned = convolved(inside, filters[..., ::-1], strides)
    assert not passes(got, turned, terms, magnitude)
