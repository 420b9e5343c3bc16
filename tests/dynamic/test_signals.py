"""Signals of any length whose strides divide it by hundreds, in one program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from nanoloom.cache import Cache

Layer = tuple[np.ndarray, int, tuple[int, int]]  # weights, stride, pads
SPEECH = ((10, 5), *((3, 2),) * 4, *((2, 2),) * 2)  # as encoders of speech have them
CODEC = ((4, 2), (8, 4), (10, 5), (16, 8))  # as codecs have them, with pads


def drawn(rng: np.random.Generator) -> list[tuple[int, int]]:
    """Filters and strides that divide by 64 and more."""
    sizes: list[tuple[int, int]] = []
    while np.prod([stride for _, stride in sizes]) < 64:
        stride = int(rng.integers(2, 6))
        sizes.append((stride + int(rng.integers(0, 5)), stride))
    return sizes


def layers_of(
    sizes: tuple[tuple[int, int], ...] | list[tuple[int, int]],
    padded: bool,
    rng: np.random.Generator,
) -> list[Layer]:
    """Two of each filter's weights are 1 or -1: sums are exact."""
    made: list[Layer] = []
    for place, (taps, stride) in enumerate(sizes):
        weights = np.zeros((2, 2 if place else 1, taps), np.float32)
        for row in weights.reshape(2, -1):
            row[rng.choice(row.size, 2, replace=False)] = rng.choice([-1, 1], 2)
        both = int(rng.integers(0, taps)) if padded else 0
        made.append((weights, stride, (both // 2, both - both // 2)))
    return made


def model_of(layers: list[Layer]) -> onnx.ModelProto:
    """Convolutions, and the products of all pairs of frames that they leave."""
    nodes: list[onnx.NodeProto] = []
    name = "x"
    for i, (weights, stride, pads) in enumerate(layers):
        taps = [weights.shape[-1]]
        said: dict[str, Any] = {"strides": [stride], "pads": pads, "kernel_shape": taps}
        nodes.append(helper.make_node("Conv", [name, f"w{i}"], [f"c{i}"], **said))
        name = f"c{i}"
    nodes.append(helper.make_node("Transpose", [name], ["t"], perm=[0, 2, 1]))
    nodes.append(helper.make_node("MatMul", ["t", name], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 1, "n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None, None])
    held = [numpy_helper.from_array(w, f"w{i}") for i, (w, *_) in enumerate(layers)]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    opset = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10)


def frames(x: np.ndarray, layers: list[Layer]) -> np.ndarray:
    for weights, stride, pads in layers:
        padded = np.pad(x, ((0, 0), (0, 0), pads))
        windows = np.lib.stride_tricks.sliding_window_view(
            padded, weights.shape[-1], axis=2
        )[:, :, ::stride]
        x = np.einsum("bint,oit->bon", windows, weights)
    return x


def least(layers: list[Layer]) -> int:
    """The shortest signal that one frame is left of."""
    length = 1
    for weights, stride, pads in reversed(layers):
        length = max((length - 1) * stride + weights.shape[-1] - sum(pads), 1)
    return length


@pytest.mark.parametrize("case", ["speech", "codec", 1])
def test_frames_of_any_signal(case: str | int, tmp_path: Path) -> None:
    rng = np.random.default_rng(7 if isinstance(case, str) else case)
    sizes = {"speech": SPEECH, "codec": CODEC}.get(str(case)) or drawn(rng)
    layers = layers_of(sizes, case != "speech", rng)
    program = nanoloom.compile(model_of(layers), cache=Cache(tmp_path))
    shortest = least(layers)
    for batch, length in (
        (2, 4003), (1, shortest), (3, int(rng.integers(shortest, 900))),
        (1, int(rng.integers(2000, 9000))),
    ):  # fmt: skip
        x = rng.integers(-2, 3, (batch, 1, length)).astype(np.float32)
        made = frames(x, layers)
        wanted = np.einsum("bci,bcj->bij", made, made)
        assert wanted.size and (batch < 2 or wanted.any())
        assert np.array_equal(program({"x": x})["y"], wanted)
    assert program.open.reason == ""
