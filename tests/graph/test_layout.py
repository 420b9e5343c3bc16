"""Channels last: a network is turned once at its input, and computes the same."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.editor import inverse, transpose_order
from nanoloom.graph.layout import to_first, to_last
from tests.graph.image_networks import network
from tests.graph.models import constant, operators, optimized, proto, shapes
from tests.linalg.harness import evaluate

ONES = ",".join(["1"] * 4 * 3 * 3 * 3)
SQUARE = ",".join(["1"] * 4 * 4 * 3 * 3)
WEIGHTS = f"<float[4,3,3,3] w = {{{ONES}}}, float[4,4,3,3] v = {{{SQUARE}}}>"


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("seed", range(24))
def test_random_networks_compute_the_same(seed: int) -> None:
    """Through graph and linalg as plain loops, against ONNX's reference."""
    model, x = network(seed, 14)
    right = ReferenceEvaluator(model).run(None, {"x": x})
    got = evaluate(model, {"x": x})
    for one, other in zip(got, right, strict=True):
        assert one.shape == other.shape
        assert (one == other).all()
        assert not (one == other + 1).any()


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_there_and_back(rank: int) -> None:
    x = np.empty(range(2, 2 + rank))
    assert x.transpose(to_last(rank)).shape == (2, *range(4, 2 + rank), 3)
    assert x.transpose(to_last(rank)).transpose(to_first(rank)).shape == x.shape
    assert inverse(to_last(rank)) == to_first(rank)


def test_a_chain_of_convolutions_is_turned_at_its_ends_only() -> None:
    graph = optimized(f"""g (float[1,3,9,9] x) => (float[1,4,5,5] y) {WEIGHTS}
        {{ a = Conv(x, w) b = Relu(a) y = Conv(b, v) }}""")
    assert operators(graph) == ["Transpose", "Conv", "Relu", "Conv", "Transpose"]
    assert [node.domain for node in graph if node.op_type == "Conv"] == ["nanoloom"] * 2
    assert shapes(graph)["y"] == (1, 4, 5, 5)


def test_residual_additions_keep_the_layout() -> None:
    graph = optimized(f"""g (float[1,4,9,9] x) => (float[1,4,9,9] y) {WEIGHTS}
        {{ a = Conv<pads=[1,1,1,1]>(x, v) b = Relu(a) c = Conv<pads=[1,1,1,1]>(b, v)
           d = Add(c, b) y = Relu(d) }}""")
    assert operators(graph).count("Transpose") == 2


def test_constants_are_turned_now() -> None:
    """A bias a channel, [1, 4, 1, 1], lies along the last dimension."""
    graph = optimized(f"""g (float[1,3,9,9] x) => (float[1,4,7,7] y)
        <float[4,3,3,3] w = {{{ONES}}}, float[4,1,1] s = {{1,2,3,4}}>
        {{ a = Conv(x, w) y = Mul(a, s) }}""")
    (multiply,) = (node for node in graph if node.op_type == "Mul")
    turned = constant(graph, multiply.inputs[1].name)
    assert turned.shape == (1, 1, 1, 4)
    assert turned.reshape(-1).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("node", "attribute", "number"),
    [("Concat<axis=1>(a, a)", "axis", 3), ("Concat<axis=-2>(a, a)", "axis", 1)],
)
def test_axes_follow_their_dimension(node: str, attribute: str, number: int) -> None:
    graph = optimized(f"""g (float[1,3,9,9] x) => (float[p,q,r,s] y) {WEIGHTS}
        {{ a = Conv(x, w) y = {node} }}""")
    (made,) = (n for n in graph if n.op_type == "Concat")
    assert made.attributes[attribute].as_int() == number


def test_reduced_axes_follow_their_dimensions() -> None:
    graph = optimized(f"""g (float[1,3,9,9] x) => (float[1,4,1,1] y)
        <float[4,3,3,3] w = {{{ONES}}}, int64[2] a = {{2,-1}}>
        {{ c = Conv(x, w) y = ReduceMean(c, a) }}""")
    (made,) = (n for n in graph if n.op_type == "ReduceMean")
    assert constant(graph, made.inputs[1].name).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("middle", "between"),
    [
        ("b = BatchNormalization(a, s, s, s, s)", ["BatchNormalization"]),
        ("b = Slice(a, one, six, two)", ["Slice"]),
        ("l, r = Split<axis=1, num_outputs=2>(a) b = Concat<axis=1>(r, l)",
         ["Split", "Concat"]),
    ],
)  # fmt: skip
def test_what_is_said_of_channels_keeps_the_layout(
    middle: str, between: list[str]
) -> None:
    graph = optimized(f"""g (float[1,3,9,9] x) => (float[p,q,r,s] y)
        <float[4,3,3,3] w = {{{ONES}}}, float[4,4,3,3] v = {{{SQUARE}}},
         float[4] s = {{1,2,3,4}}, int64[1] one = {{1}}, int64[1] six = {{6}},
         int64[1] two = {{2}}>
        {{ a = Conv(x, w) {middle} y = Conv(b, v) }}""")
    assert operators(graph) == ["Transpose", "Conv", *between, "Conv", "Transpose"]


def test_transposes_that_cancel_disappear() -> None:
    graph = optimized("""g (float[2,3,5] x) => (float[2,3,5] y)
        { a = Transpose<perm=[2,0,1]>(x) b = Transpose<perm=[1,2,0]>(a)
          y = Relu(b) }""")
    assert operators(graph) == ["Relu"]


def test_two_transposes_are_one() -> None:
    graph = optimized("""g (float[2,3,5] x) => (float[3,5,2] y)
        { a = Transpose<perm=[2,0,1]>(x) b = Transpose<perm=[2,0,1]>(a)
          y = Relu(b) }""")
    assert sorted(operators(graph)) == ["Relu", "Transpose"]


def test_two_transposes_are_one_also_where_it_is_a_result() -> None:
    graph = optimized("""g (float[2,3,5] x) => (float[3,5,2] y)
        { a = Transpose<perm=[2,0,1]>(x) y = Transpose<perm=[2,0,1]>(a) }""")
    (node,) = graph
    assert node.attributes["perm"].as_ints() == (1, 2, 0)
    assert node.outputs[0].name == "y" and node.inputs[0] is graph.inputs[0]


def test_an_input_turned_twice_is_no_result() -> None:
    graph = optimized("""g (float[2,3,5] x) => (float[2,3,5] y)
        { a = Transpose<perm=[2,0,1]>(x) y = Transpose<perm=[1,2,0]>(a) }""")
    assert operators(graph) == ["Transpose", "Transpose"]
    assert [value.name for value in graph.inputs] == ["x"]


def test_a_turned_constant_takes_no_others_name() -> None:
    """The model has constants of the names that this pass gives; one is the same."""
    graph = optimized("""g (float[2,3] x) => (float[2,3] y)
        <float[3,2] c = {1, 2, 3, 4, 5, 6}, float[2,3] c_1_0 = {6, 5, 4, 3, 2, 1}>
        { t = Transpose(x) a = Add(t, c) b = Transpose(a) y = Mul(b, c_1_0) }""")
    add, multiply = (next(n for n in graph if n.op_type == op) for op in ("Add", "Mul"))
    assert add.inputs[1] is not None and multiply.inputs[1] is not None
    names = [add.inputs[1].name, multiply.inputs[1].name]
    assert names == ["c_1_0.1", "c_1_0"]
    turned, own = (constant(graph, name or "") for name in names)
    assert turned.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert own.tolist() == [[6, 5, 4], [3, 2, 1]]


def test_names_of_what_is_made_are_the_same_in_each_process() -> None:
    text = """g (float[2,3,5] x) => (float[3,5,2] y)
        { a = Transpose<perm=[2,0,1]>(x) b = Transpose<perm=[2,0,1]>(a) y = Relu(b) }"""
    found = [[v.name for n in optimized(text) for v in n.outputs] for _ in range(2)]
    assert found[0] == found[1] == ["y.1", "y"]


def test_a_transpose_without_perm_reverses() -> None:
    model = ir.from_proto(proto(
        "g (float[2,3,5] x) => (float[5,3,2] y) { y = Transpose(x) }"
    ))  # fmt: skip
    (node,) = model.graph
    assert transpose_order(node.outputs[0]) == [2, 1, 0]
    assert transpose_order(node.inputs[0]) is None


def test_what_would_have_to_be_turned_is_left() -> None:
    """Two computed inputs, one turned and one not: nothing would be gained."""
    graph = optimized("""g (float[2,3,5] x, float[5,3,2] z) => (float[5,3,2] y)
        { a = Transpose(x) b = Exp(z) y = Add(a, b) }""")
    (add,) = (n for n in graph if n.op_type == "Add")
    assert [v.producer().op_type for v in add.inputs] == ["Transpose", "Exp"]


def test_a_network_without_images_is_left_alone() -> None:
    graph = optimized("""g (float[2,3] x, float[3,4] w) => (float[2,4] y)
        { a = MatMul(x, w) y = Relu(a) }""")
    assert operators(graph) == ["MatMul", "Relu"]
