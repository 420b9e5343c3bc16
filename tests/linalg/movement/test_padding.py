"""Pad and CenterCropPad against numpy.pad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Unsupported
from nanoloom.report import Report
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, sample
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import run_node

TYPES = (*FLOATS, *INTEGERS, "bool")
few = few_examples(15)


def cut(x: np.ndarray, low: list[int], high: list[int]) -> np.ndarray:
    """x without what negative counts take away."""
    return x[
        tuple(
            slice(max(-a, 0), s - max(-c, 0))
            for a, s, c in zip(low, x.shape, high, strict=True)
        )
    ]


@few
@given(
    st.sampled_from([(5,), (3, 4), (2, 1, 5), (1, 2, 3, 3)]),
    st.sampled_from(["constant", "edge", "reflect", "wrap"]),
    st.sampled_from(TYPES),
    st.data(),
)
def test_pad(shape: tuple[int, ...], mode: str, name: str, data: st.DataObject) -> None:
    x = sample(1, shape, name)
    least = [-(s // 3) for s in shape]
    low, high = ([data.draw(st.integers(a, 6)) for a in least] for _ in range(2))
    value = sample(2, (), name)
    inputs = [x, np.array([*low, *high], np.int64)]
    extra = {"constant_values": value} if mode == "constant" else {}
    if mode == "constant":
        inputs.append(value)
    constants = [1, 2][: data.draw(st.integers(1, len(inputs) - 1))]
    got = run_node("Pad", inputs, constants=constants, mode=mode)
    widths = [(max(a, 0), max(c, 0)) for a, c in zip(low, high, strict=True)]
    same(got[0], np.pad(cut(x, low, high), widths, mode=mode, **extra))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_own_elements_are_read_where_they_are(mode: str, tmp_path: Path) -> None:
    """One kernel, whatever makes the tensor: no parts are put together."""
    text = (
        '<ir_version: 10, opset_import: ["" : 20]> g (float[2, 3, 9, 7] x) => (float[a,'
        " b, c, d] y) { pads = Constant<value_ints = [0, 0, 2, 1, 0, 0, 1, 3]>()"
        f' y = Pad<mode = "{mode}">(x, pads) }}'
    )
    report, x = Report(), sample(5, (2, 3, 9, 7), "float32")
    model, cache = onnx.parser.parse_model(text), Cache(tmp_path)
    program = nanoloom.compile(model, cache=cache, report=report)
    widths = [(0, 0), (0, 0), (2, 1), (1, 3)]
    right = np.pad(x, widths, mode=mode)  # type: ignore[call-overload] - one of its modes
    same(np.asarray(program({"x": x})["y"]), right)
    assert report.kernels == 1


def test_pad_some_axes() -> None:
    x = sample(3, (2, 3, 4), "float32")
    pads, axes = np.array([1, 0, 2, 3], np.int64), np.array([-1, 0], np.int32)
    got = run_node("Pad", [x, pads, None, axes], constants=[1, 3])[0]
    same(got, np.pad(x, [(0, 3), (0, 0), (1, 2)]))


def test_pad_with_attributes() -> None:
    x = sample(4, (2, 3), "float32")
    got = run_node("Pad", [x], version=10, pads=[1, 0, 0, 2], value=1.5)[0]
    same(got, np.pad(x, [(1, 0), (0, 2)], constant_values=1.5))


def test_nothing_cannot_be_mirrored() -> None:
    x = sample(5, (0, 3), "float32")
    pads = np.array([1, 0, 0, 0], np.int64)
    with pytest.raises(Unsupported, match="nothing to pad with"):
        run_node("Pad", [x, pads], constants=[1], mode="edge")


@few
@given(st.lists(st.integers(0, 9), min_size=3, max_size=3), st.sampled_from(TYPES))
def test_center_crop_pad(target: list[int], name: str) -> None:
    x = sample(6, (4, 5, 7), name)
    got = run_node("CenterCropPad", [x, np.array(target, np.int64)], constants=[1])[0]
    right = x
    for axis, (have, want) in enumerate(zip(x.shape, target, strict=True)):
        start = (have - want) // 2
        if start >= 0:
            right = np.take(right, range(start, start + want), axis)
        else:
            before = (want - have) // 2
            widths = [(0, 0)] * 3
            widths[axis] = (before, want - have - before)
            right = np.pad(right, widths)
    same(got, right)
