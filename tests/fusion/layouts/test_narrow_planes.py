"""Depthwise layers of 16-bit floats: planes where rows of them are read in part."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.fusion.layouts.layout import FIRST
from nanoloom.ir import mlir
from nanoloom.target import by_name
from tests.fusion.layouts.test_networks import planned

KINDS = {
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
    "f32": (TensorProto.FLOAT, np.dtype(np.float32)),
}
Drawn = tuple[onnx.ModelProto, np.ndarray, np.ndarray, int]


def drawn(seed: int, kind: str) -> Drawn:
    """Conv and Relu of a depthwise layer, with whole numbers: exact in any order."""
    rng = np.random.default_rng([46, 15, seed])
    proto, dtype = KINDS[kind]
    channels, high, wide = (int(n) for n in rng.integers(5, 40, 3))
    kernel, step = int(rng.choice([1, 3, 5])), int(rng.choice([1, 2]))
    pads = [int(n) for n in rng.integers(0, kernel, 4)]
    x = rng.integers(-3, 4, (1, channels, high, wide)).astype(dtype)
    w = rng.integers(-1, 2, (channels, 1, kernel, kernel)).astype(dtype)
    conv = helper.make_node(
        "Conv", ["x", "w"], ["c"], group=channels, pads=pads, strides=[step, step]
    )
    nodes = [conv, helper.make_node("Relu", ["c"], ["y"])]
    values = (("x", list(x.shape)), ("y", None))
    image, made = (helper.make_tensor_value_info(n, proto, s) for n, s in values)
    raw = w.view(np.uint16).tobytes() if w.itemsize == 2 else w.tobytes()
    weight = helper.make_tensor("w", proto, w.shape, raw, raw=True)
    graph = helper.make_graph(nodes, "layer", [image], [made], [weight])
    opset = helper.make_opsetid("", 22)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    return model, x, right(x, w, pads, step), kernel


def right(x: np.ndarray, w: np.ndarray, pads: list[int], step: int) -> np.ndarray:
    """relu(conv(x, w)) in float64."""
    top, left, bottom, behind = pads
    border = ((0, 0), (0, 0), (top, bottom), (left, behind))
    padded = np.pad(x.astype(np.float64), border)
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))
    windows = windows[:, :, ::step, ::step]
    sums = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype(np.float64))
    return np.maximum(sums, 0)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("seed", range(4))
def test_the_numbers_are_right(seed: int, kind: str) -> None:
    model, x, wanted, _ = drawn(seed, kind)
    (got,) = nanoloom.compile(model, threads=1)({"x": x}).values()
    assert got.dtype == x.dtype and wanted.any()
    assert (got.astype(np.float64) == wanted).all()


@pytest.mark.parametrize(
    "kind, level, planes",
    [
        ("f16", "x86-64-v4", True),
        ("bf16", "x86-64-v4", True),
        ("f16", "x86-64-v3", False),  # masks of AVX2 are of 32 bits
        ("f32", "x86-64-v3", True),
    ],
)
def test_rows_that_are_read_in_part_lie_in_planes(
    kind: str, level: str, planes: bool
) -> None:
    seed = next(n for n in range(20) if drawn(n, kind)[3] == 3)
    with mlir.context():
        _, plan = planned(drawn(seed, kind)[0], target=by_name(level))
        assert (FIRST in plan.chosen.values()) is planes
