"""Quantized operators: integers nearest to exact quotients, as ONNX Runtime's are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.frontend.microsoft.single import both, check_rounded, model_of, of, run

Array = np.ndarray
BYTES = [np.uint8, np.int8]
ONE_AXIS = [(7,), (2, 5, 9)]


def f32(number: float) -> Array:
    return np.array(number, np.float32)


def drawn(seed: int, kind: type, *shape: int) -> Array:
    limits = np.iinfo(kind)
    return np.random.default_rng(seed).integers(
        limits.min, limits.max, shape, kind, True
    )


def real(x: Array, scale: Array, zero: Array | None) -> Array:
    return (x.astype(np.float64) - (0 if zero is None else int(zero))) * float(scale)


def check(found: tuple[list[Array], list[Array]], exact: Array, scale: Array,
          zero: Array | None) -> None:  # fmt: skip
    """Both are nearest to exact / scale."""
    start = 0 if zero is None else int(zero)
    for got in found:
        check_rounded(got[0], exact / float(scale), start, 40)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shapes", [((2, 3, 5), (2, 3, 5)), ((2, 3, 5), (5,))])
def test_binary(kind: type, name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = (drawn(i, kind, *shape) for i, shape in enumerate(shapes))
    scales = [f32(x) for x in (0.021, 0.053, 0.031 if name == "QLinearAdd" else 0.11)]
    zeros = [np.array(x, kind) for x in (3, 100, 7)]
    s, z = scales, zeros
    found = both(name, [a, s[0], z[0], b, s[1], z[1], s[2], z[2]], opset=11)
    left, right = real(a, scales[0], zeros[0]), real(b, scales[1], zeros[1])
    check(
        found,
        left + right if name == "QLinearAdd" else left * right,
        scales[2],
        zeros[2],
    )


@pytest.mark.parametrize("kind", BYTES)
def test_zero_points_may_be_left_out(kind: type) -> None:
    a, b = drawn(1, kind, 3, 5), drawn(2, kind, 3, 5)
    inputs = [a, f32(0.5), None, b, f32(0.25), None, f32(1.0)]
    (got,) = run("QLinearAdd", inputs)
    assert got.dtype == kind
    check_rounded(got, a * 0.5 + b * 0.25, 0)


def softmax(x: Array, axis: int, opset: int) -> Array:
    axes = (axis,) if opset > 12 else tuple(range(axis, x.ndim))
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


UNARY: dict[str, tuple[dict[str, float], float, Callable[[Array], Array]]] = {
    "QLinearSigmoid": ({}, 1 / 256, lambda x: 1 / (1 + np.exp(-x))),
    "QLinearLeakyRelu": ({"alpha": 0.25}, 0.03, lambda x: np.where(x < 0, x / 4, x)),
}


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", ONE_AXIS)
def test_unary(kind: type, name: str, shape: tuple[int, ...]) -> None:
    attributes, step, formula = UNARY[name]
    x, scale, zero = drawn(3, kind, *shape), f32(0.043), np.array(9, kind)
    to, start = f32(step), np.array(2, kind)
    found = both(
        name, [x, scale, zero, to, start], constants=(1, 2, 3, 4), **attributes
    )
    check(found, formula(real(x, scale, zero)), to, start)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (12, 2), (13, 1), (13, 2)])
def test_softmax(kind: type, opset: int, axis: int) -> None:
    """The operator has an attribute `opset`, which says how the axis is meant."""
    x, scale, zero = drawn(4, kind, 2, 5, 3), f32(0.043), np.array(9, kind)
    to, start = f32(1 / 256), np.array(np.iinfo(kind).min, kind)
    inputs = [x, scale, zero, to, start]
    model, feeds = model_of(
        "QLinearSoftmax", inputs, {"opset": opset, "axis": axis}, constants=(1, 2, 3, 4)
    )
    found = of(model, feeds)
    check(found, softmax(real(x, scale, zero), axis, opset), to, start)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("last", [0, 1])
def test_global_average(kind: type, last: int) -> None:
    x, scale, zero = drawn(5, kind, 2, 3, 5, 7), f32(0.03), np.array(9, kind)
    to, start = f32(0.005), np.array(20, kind)
    images = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x
    found = both(
        "QLinearGlobalAveragePool", [images, scale, zero, to, start], channels_last=last
    )
    axes = (1, 2) if last else (2, 3)
    check(found, real(images, scale, zero).mean(axes, keepdims=True), to, start)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("padded", [0, 1])
def test_average(kind: type, last: int, padded: int) -> None:
    x, scale, zero = drawn(6, kind, 1, 2, 7, 9), f32(0.03), np.array(9, kind)
    to, start = f32(0.02), np.array(20, kind)
    images = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x
    found = both(
        "QLinearAveragePool", [images, scale, zero, to, start], kernel_shape=[3, 3],
        pads=[1, 1, 1, 1], strides=[2, 2], channels_last=last, count_include_pad=padded,
    )  # fmt: skip
    sums, counts = windows(real(x, scale, zero)), windows(np.ones(x.shape))
    exact = sums / (9 if padded else counts)
    check(found, exact.transpose(0, 2, 3, 1) if last else exact, to, start)


def windows(x: Array) -> Array:
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    return view[:, :, ::2, ::2].sum((-1, -2))


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_mean(kind: type, keepdims: int) -> None:
    """ONNX Runtime has no code for it on CPUs."""
    x, scale, zero = drawn(7, kind, 2, 5, 7), f32(0.03), np.array(9, kind)
    to, start = f32(0.005), np.array(20, kind)
    (got,) = run(
        "QLinearReduceMean", [x, scale, zero, to, start], axes=[0, 2], keepdims=keepdims
    )
    exact = real(x, scale, zero).mean((0, 2), keepdims=bool(keepdims))
    check_rounded(got, exact / float(to), 20, 40)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("axis", [1, -2])
def test_concat(kind: type, axis: int) -> None:
    parts = [drawn(8, kind, 2, 3, 4), drawn(9, kind, 2, 5, 4)]
    scales, zeros = [f32(0.01), f32(0.03)], [np.array(4, kind), np.array(9, kind)]
    to, start = f32(0.02), np.array(3, kind)
    found = both(
        "QLinearConcat", [to, start, parts[0], scales[0], zeros[0], parts[1], scales[1],
        zeros[1]], constants=(0, 1, 3, 4, 6, 7), axis=axis,
    )  # fmt: skip
    exact = np.concatenate(
        [real(*each) for each in zip(parts, scales, zeros, strict=True)], axis
    )
    check(found, exact, to, start)


@pytest.mark.parametrize("kind", BYTES)
def test_where(kind: type) -> None:
    chosen = np.random.default_rng(1).random((3, 5)) < 0.5
    x, y = drawn(10, kind, 3, 5), drawn(11, kind, 5)
    a, b, to = f32(0.01), f32(0.03), f32(0.02)
    one, other, start = (np.array(n, kind) for n in (4, 9, 3))
    inputs = [chosen, x, a, one, y, b, other, to, start]
    found = both("QLinearWhere", inputs, constants=(2, 3, 5, 6, 7, 8))
    check(found, np.where(chosen, real(x, a, one), real(y, b, other)), to, start)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("mode", ["NOTSET", "SAME_UPPER"])
def test_pool_of_channels_last(kind: type, mode: str) -> None:
    x = drawn(12, kind, 1, 8, 9, 3)
    pads = [1, 0, 1, 0] if mode == "NOTSET" else None
    ours, theirs = both(
        "NhwcMaxPool",
        [x],
        kernel_shape=[3, 2],
        strides=[2, 1],
        pads=pads,
        auto_pad=mode,
    )
    assert (ours[0] == theirs[0]).all()
    assert ours[0].max() == x.max()


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint16])
def test_types_that_onnx_did_not_have(kind: type) -> None:
    x = np.random.default_rng(13).standard_normal((3, 5)).astype(np.float32)
    scale, zero = f32(0.003), np.array(17, kind)
    found = both("QuantizeLinear", [x, scale, zero], opset=11)
    check(found, x.astype(np.float64), scale, zero)
    whole = found[0][0]
    ours, theirs = both("DequantizeLinear", [whole, scale, zero], opset=11)
    assert (ours[0] == theirs[0]).all()


def test_one_scale_for_each_place_of_an_axis() -> None:
    x = np.random.default_rng(14).standard_normal((2, 3, 5)).astype(np.float32)
    scale, zero = (
        np.array([0.01, 0.02, 0.03], np.float32),
        np.array([1, 2, 3], np.uint8),
    )
    ours, theirs = both("QuantizeLinear", [x, scale, zero], axis=1)
    assert (ours[0] == theirs[0]).all()
    back, same = both("DequantizeLinear", [ours[0], scale, zero], axis=1)
    assert (back[0] == same[0]).all()
    assert abs(back[0]).max() > 0.1


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("last", [0, 1])
def test_convolution_in_either_layout(kind: type, last: int) -> None:
    x, w = drawn(15, kind, 1, 4, 7, 5), drawn(16, np.int8, 6, 4, 1, 1) // 2
    scale, step, to = f32(0.02), f32(0.01), f32(0.15)
    zero, start = np.array(9, kind), np.array(4, kind)
    images = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x
    inputs = [images, scale, zero, w, step, np.array(0, np.int8), to, start]
    found = both(
        "QLinearConv", inputs, constants=range(1, 8), channels_last=last,
        kernel_shape=[1, 1],
    )  # fmt: skip
    whole = np.einsum("nchw,oc->nohw", x.astype(np.int64) - int(zero), w[:, :, 0, 0])
    exact = whole * float(scale) * float(step)
    check(found, exact.transpose(0, 2, 3, 1) if last else exact, to, start)
