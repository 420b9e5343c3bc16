"""Rolls, windows and patches are one Gather each, which a neighbour does in reading."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from onnx_ir import serde

import nanoloom
from nanoloom.errors import ModelError
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS

EPS = float(np.finfo(np.float32).eps)
HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
CONSTANTS = """
    up = Constant<value = int64[1] {2}>()
    zero = Constant<value = int64[1] {0}>()
    end = Constant<value = int64[1] {9223372036854775807}>()
    back = Constant<value = int64[1] {-2}>()
    one = Constant<value = int64[1] {1}>()
    two = Constant<value = int64[1] {2}>()
    none = Constant<value = int64[8] {0, 0, 0, 0, 0, 0, 0, 0}>()
    image = Constant<value = int64[4] {1, 6, 9, 20}>()
    cut = Constant<value = int64[6] {1, 2, 3, 3, 3, 20}>()
    windows = Constant<value = int64[3] {6, 9, 20}>()
    parts = Constant<value = int64[6] {1, 2, 3, 3, 3, 20}>()
    flat = Constant<value = int64[3] {1, 54, 20}>()
"""
# A block of Swin, its attention a product: images of 6 x 9, windows of 3 x 3.
BLOCK = (
    HEADER
    + """
g (float[1, 54, 20] x, float[20] scale, float[20, 20] w) => (float[1, 54, 20] y)
{"""
    + CONSTANTS
    + """
    n = LayerNormalization<axis = -1>(x, scale)
    n4 = Reshape(n, image)
    n_pad = Pad(n4, none)
    a1 = Slice(n_pad, up, end, one)
    a2 = Slice(n_pad, zero, up, one)
    a = Concat<axis = 1>(a1, a2)
    b1 = Slice(a, up, end, two)
    b2 = Slice(a, zero, up, two)
    b = Concat<axis = 2>(b1, b2)
    c = Reshape(b, cut)
    d = Transpose<perm = [0, 1, 3, 2, 4, 5]>(c)
    e = Reshape(d, windows)
    f = MatMul(e, w)
    g1 = Reshape(f, parts)
    h = Transpose<perm = [0, 1, 3, 2, 4, 5]>(g1)
    i = Reshape(h, image)
    j1 = Slice(i, back, end, one)
    j2 = Slice(i, zero, back, one)
    j = Concat<axis = 1>(j1, j2)
    k1 = Slice(j, back, end, two)
    k2 = Slice(j, zero, back, two)
    k = Concat<axis = 2>(k1, k2)
    l = Reshape(k, flat)
    y = Add(x, l)
}
"""
)
# Patches of 2 x 2 as one row each: Swin's merging.
PATCHES = (
    HEADER
    + """
g (float[1, 6, 8, 20] x) => (float[1, 3, 4, 80] y)
{
    axes = Constant<value = int64[2] {1, 2}>()
    end = Constant<value = int64[2] {6, 8}>()
    steps = Constant<value = int64[2] {2, 2}>()
    s0 = Constant<value = int64[2] {0, 0}>()
    s1 = Constant<value = int64[2] {1, 0}>()
    s2 = Constant<value = int64[2] {0, 1}>()
    s3 = Constant<value = int64[2] {1, 1}>()
    a = Slice(x, s0, end, axes, steps)
    b = Slice(x, s1, end, axes, steps)
    c = Slice(x, s2, end, axes, steps)
    d = Slice(x, s3, end, axes, steps)
    y = Concat<axis = -1>(a, b, c, d)
}
"""
)


def operators(text: str) -> Counter[str]:
    given = serde.deserialize_model(parser.parse_model(text))
    made = optimize(given, OPERATORS.keys())
    return Counter(node.op_type for node in made.graph if node.op_type != "Reshape")


def arrays(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    random = np.random.default_rng(4)
    return {
        x.name: random.standard_normal(
            [d.dim_value for d in x.type.tensor_type.shape.dim], np.float32
        )
        for x in model.graph.input
    }


def test_a_block_with_shifted_windows_copies_nothing() -> None:
    """The normalization reads rows where they lie, and so does the last sum."""
    model = parser.parse_model(BLOCK)
    given = arrays(model)
    program = nanoloom.compile(model, threads=1)
    (got,) = program(given).values()
    (want,) = ReferenceEvaluator(model).run(None, given)
    room = 60 * EPS * (abs(given["w"]).sum(0).max() * 20)
    assert (abs(got - want) <= room).all()
    assert not (abs(np.roll(got, 1, 1) - want) <= room).all()
    roots = [name.split("_")[0] for name in program.nests()]
    assert roots == ["reduction", "contraction", "elementwise"]
    wanted = {"LayerNormalization": 1, "MatMul": 1, "Gather": 2, "Add": 1}
    assert operators(BLOCK) == wanted


def test_what_is_normalized_and_read_elsewhere_stays_in_its_order() -> None:
    text = BLOCK.replace("y)\n{", "y, float[1, 54, 20] n)\n{", 1)
    model = parser.parse_model(text)
    given = arrays(model)
    want = ReferenceEvaluator(model).run(None, given)
    got = nanoloom.compile(model, threads=1)(given).values()
    for mine, exact in zip(got, want, strict=True):
        assert np.allclose(mine, exact, atol=1e-4)


def test_patches_are_moved_once() -> None:
    model = parser.parse_model(PATCHES)
    given = arrays(model)
    (got,) = nanoloom.compile(model, threads=1)(given).values()
    (want,) = ReferenceEvaluator(model).run(None, given)
    assert np.array_equal(got, want)
    assert operators(PATCHES) == {"Gather": 1}


def test_a_slice_alone_is_read_in_place() -> None:
    text = """
g (float[2, 9, 20] x) => (float[2, 3, 20] y)
{
    from = Constant<value = int64[1] {4}>()
    to = Constant<value = int64[1] {7}>()
    axis = Constant<value = int64[1] {1}>()
    a = Slice(x, from, to, axis)
    y = Relu(a)
}
"""
    assert operators(HEADER + text) == {"Slice": 1, "Relu": 1}


def test_a_border_is_not_only_moved() -> None:
    text = BLOCK.replace("{0, 0, 0, 0, 0, 0, 0, 0}", "{0, 1, 0, 0, 0, -1, 0, 0}")
    assert operators(text)["Pad"] == 1


def test_rows_of_heads_stay_for_the_product_that_turns_them() -> None:
    """Heads are read in their order by products: no Gather."""
    text = """
g (float[1, 54, 64] x, float[1, 4, 54, 16] bias) => (float[1, 4, 54, 16] y)
{
    heads = Constant<value = int64[4] {1, 54, 4, 16}>()
    a = Reshape(x, heads)
    b = Transpose<perm = [0, 2, 1, 3]>(a)
    y = Add(b, bias)
}
"""
    assert "Gather" not in operators(HEADER + text)


def test_a_reshape_that_does_not_fit_is_refused_by_name() -> None:
    text = """g (float[3,9,n] x) => (float[9,1,3] y) <int64[3] s = {9, 1, 3}>
    { y = Reshape(x, s) }"""
    program = nanoloom.compile(parser.parse_model(HEADER + text))
    assert program({"x": np.ones((3, 9, 1), np.float32)})["y"].shape == (9, 1, 3)
    with pytest.raises(ModelError, match="135 elements cannot take the shape"):
        program({"x": np.ones((3, 9, 5), np.float32)})


def test_a_long_chain_of_moves_is_followed() -> None:
    """Longer than Python calls itself: 1,500 transposes, with another reader each."""
    nodes = "".join(f"a{i + 1} = Transpose<perm = [1, 0]>(a{i})\n" for i in range(1500))
    text = f"g (float[20, 20] a0) => (float[20, 20] y) {{\n{nodes}y = Relu(a1500)\n}}"
    assert operators(HEADER + text) == {"Relu": 1}
