"""Conv and ConvTranspose against sums over taps."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Error
from nanoloom.ir import mlir
from nanoloom.ir.mlir import func, ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.convolution import contract
from tests.drawn_cases import few_examples
from tests.linalg.single import run_node

Case = dict[str, list[int]]


def convolve(x: np.ndarray, w: np.ndarray, groups: int, case: Case) -> np.ndarray:
    """[n, c, ...] and [f, c / groups, ...]: one tap of the window at a time."""
    rank = x.ndim - 2
    low, high = case["pads"][:rank], case["pads"][rank:]
    padded = np.pad(x, [(0, 0), (0, 0), *zip(low, high, strict=True)])
    spans = [
        (k - 1) * d + 1 for k, d in zip(w.shape[2:], case["dilations"], strict=True)
    ]
    out = [
        (p - span) // s + 1
        for p, span, s in zip(padded.shape[2:], spans, case["strides"], strict=True)
    ]
    parts, made = x.shape[1] // groups, w.shape[0] // groups
    result = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    for tap in product(*map(range, w.shape[2:])):
        places = [
            slice(t * d, t * d + s * (o - 1) + 1, s)
            for t, d, s, o in zip(
                tap, case["dilations"], case["strides"], out, strict=True
            )
        ]
        seen = padded[(slice(None), slice(None), *places)]
        for g in range(groups):
            channels = seen[:, g * parts : (g + 1) * parts]
            weights = w[g * made : (g + 1) * made][(slice(None), slice(None), *tap)]
            result[:, g * made : (g + 1) * made] += np.einsum(
                "nc...,fc->nf...", channels, weights
            )
    return result


def transposed(x: np.ndarray, w: np.ndarray, groups: int, case: Case) -> np.ndarray:
    """ConvTranspose of [n, c, ...] and [c, f / groups, ...] by strided additions."""
    rank = x.ndim - 2
    spans = [
        (k - 1) * d + 1 for k, d in zip(w.shape[2:], case["dilations"], strict=True)
    ]
    full = [
        (s - 1) * stride + span + more
        for s, stride, span, more in zip(
            x.shape[2:], case["strides"], spans, case["output_padding"], strict=True
        )
    ]
    parts, made = x.shape[1] // groups, w.shape[1]
    result = np.zeros((x.shape[0], made * groups, *full), x.dtype)
    for tap in product(*map(range, w.shape[2:])):
        places = tuple(
            slice(t * d, t * d + stride * (s - 1) + 1, stride)
            for t, d, stride, s in zip(
                tap, case["dilations"], case["strides"], x.shape[2:], strict=True
            )
        )
        for g in range(groups):
            weights = w[g * parts : (g + 1) * parts][(slice(None), slice(None), *tap)]
            into = result[:, g * made : (g + 1) * made]
            into[(slice(None), slice(None), *places)] += np.einsum(
                "nc...,cf->nf...", x[:, g * parts : (g + 1) * parts], weights
            )
    cut = [
        slice(a, f - z)
        for a, z, f in zip(case["pads"][:rank], case["pads"][rank:], full, strict=True)
    ]
    return result[(slice(None), slice(None), *cut)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int, Case]:
    """Shapes of x and w of a convolution, its groups and attributes."""
    rank = draw(st.integers(1, 3))
    ints = lambda low, high: draw(  # noqa: E731 - a word for the four draws below
        st.lists(st.integers(low, high), min_size=rank, max_size=rank)
    )
    kernel, strides, dilations = ints(1, 3), ints(1, 3), ints(1, 2)
    groups = draw(st.sampled_from([1, 1, 3]))
    parts, made = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (5, 3)]))
    size = [a + 4 + s for a, s in zip(ints(0, 3), strides, strict=True)]
    pads = ints(0, 2) + ints(0, 2)
    x = (draw(st.sampled_from([0, 1, 2])), parts * groups, *size)
    attributes = {"strides": strides, "dilations": dilations, "pads": pads}
    return x, (made * groups, parts, *kernel), groups, attributes


def close(got: np.ndarray, right: np.ndarray, size: np.ndarray, terms: int) -> bool:
    bound = (terms + 3) * float(np.finfo(got.dtype).eps) * size
    return got.shape == right.shape and bool((abs(got - right) <= bound).all())


@given(cases(), st.booleans(), st.booleans())
@few_examples(15)
def test_conv(
    case: tuple[tuple[int, ...], tuple[int, ...], int, Case],
    with_bias: bool,
    constant: bool,
) -> None:
    x_shape, w_shape, groups, attributes = case
    r = np.random.default_rng(len(x_shape))
    x, w = (r.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape))
    bias = r.standard_normal(w_shape[0]).astype(np.float32)
    got = run_node(
        "Conv",
        [x, w, bias] if with_bias else [x, w],
        group=groups,
        constants=[1] if constant else [],
        **attributes,
    )[0]
    added = bias.reshape(-1, *(1,) * (x.ndim - 2)) * with_bias
    wide, weights = x.astype(np.float64), w.astype(np.float64)
    right = convolve(wide, weights, groups, attributes) + added
    size = convolve(abs(wide), abs(weights), groups, attributes) + abs(added)
    assert close(got, right, size, w[0].size)
    if got.size:
        assert not close(0 * got, right, size, w[0].size)


@given(cases(), st.booleans(), st.integers(0, 1))
@few_examples(15)
def test_conv_transpose(
    case: tuple[tuple[int, ...], tuple[int, ...], int, Case],
    constant: bool,
    extra: int,
) -> None:
    x_shape, (features, parts, *kernel), groups, attributes = case
    w_shape = (parts * groups, features // groups, *kernel)
    steps = zip(attributes["strides"], attributes["dilations"], strict=True)
    attributes["output_padding"] = [min(extra, max(s, d) - 1) for s, d in steps]
    r = np.random.default_rng(len(x_shape))
    x, w = (r.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape))
    bias = r.standard_normal(features).astype(np.float32)
    got = run_node(
        "ConvTranspose",
        [x, w, bias],
        group=groups,
        constants=[1] if constant else [],
        **attributes,
    )[0]
    added = bias.reshape(-1, *(1,) * (x.ndim - 2))
    wide, weights = x.astype(np.float64), w.astype(np.float64)
    right = transposed(wide, weights, groups, attributes) + added
    size = transposed(abs(wide), abs(weights), groups, attributes) + abs(added)
    assert close(got, right, size, w[:, 0].size)
    if got.size:
        assert not close(0 * got, right, size, w[:, 0].size)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 5), (1, 4)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_transposed_phases_of_many_features(
    kernel: tuple[int, int], dilation: int, constant: bool
) -> None:
    """Phases of fewer taps are products of their own; those of none are the bias."""
    r = np.random.default_rng(5)
    x, w = r.standard_normal((2, 6, 5, 4)), r.standard_normal((6, 17, *kernel))
    bias = r.standard_normal(34)
    x, w, bias = (v.astype(np.float32) for v in (x, w, bias))
    case = {
        "strides": [2, 3],
        "dilations": [dilation, 1],
        "pads": [0, 1, 1, 0],
        "output_padding": [1, 2],
    }
    shared = [1] if constant else []
    got = run_node("ConvTranspose", [x, w, bias], group=2, constants=shared, **case)[0]
    added = bias.reshape(-1, 1, 1)
    wide, weights = x.astype(np.float64), w.astype(np.float64)
    right = transposed(wide, weights, 2, case) + added
    size = transposed(abs(wide), abs(weights), 2, case) + abs(added)
    assert close(got, right, size, w[:, 0].size)
    assert not close(0 * got, right, size, w[:, 0].size)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations"),
    [
        ((4, 3), (2, 1), (1, 2)),
        ((2, 5), (3, 2), (1, 1)),
        ((3, 2), (2, 3), (2, 1)),
        ((6, 6), (1, 1), (1, 1)),  # as many sums as are written out, and more
    ],
)
def test_transposed_taps_in_one_product(
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    groups: int,
) -> None:
    """Few features of many channels."""
    r = np.random.default_rng(5)
    x = r.standard_normal((2, 96 * groups, 5, 4)).astype(np.float32)
    w = r.standard_normal((96 * groups, 2, *kernel)).astype(np.float32)
    bias = r.standard_normal(2 * groups).astype(np.float32)
    more = [0, min(1, strides[1] - 1)]
    case = {
        "pads": [1, 0, 0, 2],
        "strides": [*strides],
        "dilations": [*dilations],
        "output_padding": more,
    }
    shared = [1]
    got = run_node(
        "ConvTranspose", [x, w, bias], group=groups, constants=shared, **case
    )[0]
    added = bias.reshape(-1, 1, 1)
    wide, weights = x.astype(np.float64), w.astype(np.float64)
    right = transposed(wide, weights, groups, case) + added
    size = transposed(abs(wide), abs(weights), groups, case) + abs(added)
    assert close(got, right, size, w[:, 0].size)
    assert not close(0 * got, right, size, w[:, 0].size)


@pytest.mark.parametrize("kind", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_half_precision_is_rounded_once(kind: np.dtype) -> None:
    r = np.random.default_rng(3)
    x, w = r.standard_normal((1, 7, 5, 4)), r.standard_normal((3, 7, 2, 2))
    bias = r.standard_normal(3)
    x, w, bias = x.astype(kind), w.astype(kind), bias.astype(kind)
    got = run_node("Conv", [x, w, bias])[0].astype(np.float64)
    plain = {"pads": [0] * 4, "strides": [1, 1], "dilations": [1, 1]}
    wide = [v.astype(np.float64) for v in (x, w, bias.reshape(-1, 1, 1))]
    right = convolve(wide[0], wide[1], 1, plain) + wide[2]
    size = convolve(abs(wide[0]), abs(wide[1]), 1, plain) + abs(wide[2])
    half_unit = float(ml_dtypes.finfo(kind).eps) / 2
    bound = half_unit * abs(right) + 31 * np.finfo(np.float32).eps * size
    assert (abs(got - right) <= bound).all()
    assert not (abs(got * (1 + 4 * half_unit) - right) <= bound).all()


def iterators(groups: int, features: int, channels: int) -> tuple[str, str]:
    """The contraction's loops and its map of x for a 3x2 window."""
    window = Window((3, 2), (2, 1), (1, 2), (0, 0), (0, 0), (9, 9), (4, 7))
    shapes = [(1, 9, 9, channels), (features, channels // groups, 3, 2)]
    with mlir.context():
        module = ir.Module.create()
        kinds = [ir.RankedTensorType.get(s, ir.F32Type.get()) for s in shapes]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("f", ir.FunctionType.get(kinds, []))
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            x, w = (
                Tensor(s, np.dtype(np.float32), v)
                for s, v in zip(shapes, block.arguments, strict=True)
            )
            contract(Builder(lambda t: block.arguments[0]), x, w, window, groups)
            func.ReturnOp([])
        made = mlir.named(module, "linalg.generic")[-1]
        kinds_of = [
            str(a).split("<")[1][:-1] for a in made.attributes["iterator_types"]
        ]
        return "".join(k[0] for k in kinds_of), str(made.attributes["indexing_maps"][0])


def test_form_of_the_contraction() -> None:
    """(n, oh, ow, f; kh, kw, c), a parallel group, and depthwise without unit loops."""
    assert iterators(1, 8, 4)[0] == "pppprrr"
    assert iterators(2, 8, 4)[0] == "ppppp" + "rrr"
    loops, places = iterators(4, 4, 4)
    assert loops == "pppprr"
    assert "(d0, d1 * 2 + d4, d2 + d5 * 2, d3)" in places


def test_refusals() -> None:
    x, w = np.ones((1, 2, 3, 3), np.float32), np.ones((2, 2, 5, 5), np.float32)
    with pytest.raises(Error):
        run_node("Conv", [x, w])
    with pytest.raises(Error):
        run_node("Conv", [x, w[:, :, :2, :2]], strides=[1])


@pytest.mark.parametrize(("mode", "first"), [("SAME_UPPER", 1), ("SAME_LOWER", 2)])
def test_transposed_to_the_same_size_with_output_padding(mode: str, first: int) -> None:
    """The size times the stride: so much of the whole result, from its middle."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(s).astype("f") for s in ((1, 2, 3), (2, 2, 4)))
    given = {"strides": [2], "output_padding": [1]}
    whole = run_node("ConvTranspose", [x, w], **given)[0]
    assert whole.shape == (1, 2, 9)
    got = run_node("ConvTranspose", [x, w], auto_pad=mode, **given)[0]
    assert (got == whole[:, :, first : first + 6]).all()


def test_transposed_size_that_onnx_leaves_open_is_refused() -> None:
    x, w = np.ones((1, 2, 3), np.float32), np.ones((2, 2, 3), np.float32)
    with pytest.raises(Error, match="filters smaller than strides"):
        run_node("ConvTranspose", [x, w], auto_pad="SAME_LOWER", strides=[4])
    assert run_node("ConvTranspose", [x, w], strides=[4])[0].shape == (1, 2, 11)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_no_filters_make_nothing(groups: int) -> None:
    x, w = np.ones((2, 4, 9, 9), "f"), np.ones((0, 4 // groups, 3, 3), "f")
    assert run_node("Conv", [x, w], group=groups)[0].shape == (2, 0, 7, 7)
