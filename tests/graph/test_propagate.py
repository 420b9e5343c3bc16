"""One forward walk: shapes everywhere, constants where nothing else is needed."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nanoloom.errors import DataDependent, Error, ModelError, Unsupported
from nanoloom.graph import inference
from nanoloom.ir import mlir
from nanoloom.linalg.stage import lower
from tests.graph.models import constant, operators, optimized, proto, shapes


def test_every_value_has_a_static_shape() -> None:
    graph = optimized("""g (float[2,3,8] x) => (float[2,8,5] y)
        <float[3,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}>
        { t = Transpose<perm=[0,2,1]>(x) m = MatMul(t, w) y = Relu(m) }""")
    assert shapes(graph) == {"t": (2, 8, 3), "m": (2, 8, 5), "y": (2, 8, 5)}


def test_shape_arithmetic_disappears() -> None:
    """What exporters write for x.view(x.shape[0], -1)."""
    graph = optimized("""g (float[2,3,4] x) => (float[2,12] y)
        <int64 zero = {0}, int64[1] rest = {-1}, int64[1] first = {0}>
        { s = Shape(x) n = Gather(s, zero) u = Unsqueeze(n, first)
          c = Concat<axis=0>(u, rest) y = Reshape(x, c) }""")
    assert operators(graph) == ["Reshape"]
    (node,) = graph
    assert constant(graph, node.inputs[1].name).tolist() == [2, -1]


def test_a_part_of_a_shape_and_its_size() -> None:
    graph = optimized("""g (float[2,3,4] x) => (int64[2] a, int64[1] b, int64 c)
        { a = Shape<start=1>(x) b = Shape<start=-3, end=-2>(x) c = Size(x) }""")
    found = [constant(graph, name).tolist() for name in ("a", "b", "c")]
    assert found == [[3, 4], [2], 24]
    assert operators(graph) == []


def test_constants_are_folded_and_shared_by_their_readers() -> None:
    graph = optimized("""g (float[3] x) => (float[3] y)
        <float[3] a = {1,2,3}, float[3] b = {10,20,30}>
        { s = Add(a, b) d = Mul(s, s) p = Add(x, d) y = Mul(p, d) }""")
    assert operators(graph) == ["Add", "Mul"]
    first, second = graph
    assert first.inputs[1] is second.inputs[1]
    folded = constant(graph, first.inputs[1].name)
    assert folded.tolist() == [121.0, 484.0, 1089.0]


def test_large_constants_are_computed_when_they_are_asked_for() -> None:
    """A weight of many megabytes is not copied while the graph is simplified."""
    model = proto("""g (float[200] x) => (float[200,200] y)
        { s = Exp(w) y = Add(x, s) }""")
    array = np.linspace(-1, 1, 40_000, dtype=np.float32).reshape(200, 200)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    graph = optimized(model)
    assert operators(graph) == ["Add"]
    (node,) = graph
    tensor = node.inputs[1].const_value
    assert isinstance(tensor, ir.LazyTensor)
    assert np.allclose(tensor.numpy(), np.exp(array), rtol=1e-6)


def test_random_numbers_are_not_folded() -> None:
    graph = optimized("""g (float[3] x) => (float[3] y)
        { r = RandomNormal<shape=[3], seed=1.0>() y = Add(x, r) }""")
    assert "RandomNormal" in operators(graph)


def test_identities_are_passed_through() -> None:
    graph = optimized("""g (float[3] x) => (float[3] y)
        { a = Identity(x) b = Relu(a) c = Identity(b) y = Neg(c) }""")
    assert operators(graph) == ["Relu", "Neg"]


def test_an_identity_that_is_an_output_stays() -> None:
    graph = optimized("g (float[3] x) => (float[3] y) { y = Identity(x) }")
    assert operators(graph) == ["Identity"]


def test_a_known_condition_chooses_its_branch() -> None:
    graph = optimized("""g (float[3] x) => (float[3] y) <bool c = {0}> {
        y = If (c) <
          then_branch = a () => (float[3] p) { p = Relu(x) },
          else_branch = b () => (float[3] q) { q = Neg(x) }
        > }""")
    assert operators(graph) == ["Neg"]


def test_compress_with_a_known_condition() -> None:
    graph = optimized("""g (float[4,2] x) => (float[2,2] y) <bool[4] c = {1,0,0,1}>
        { y = Compress<axis=0>(x, c) }""")
    assert operators(graph) == ["Gather"]
    (node,) = graph
    assert constant(graph, node.inputs[1].name).tolist() == [0, 3]


def test_nodes_that_nobody_needs_are_gone() -> None:
    graph = optimized("""g (float[3] x) => (float[3] y)
        { unused = Exp(x) more = Log(unused) y = Relu(x) }""")
    assert operators(graph) == ["Relu"]


# ---- values bound at the first call --------------------------------------------------


def test_a_bound_input_is_a_constant() -> None:
    text = """g (float[2,6] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }"""
    graph = optimized(text, {"s": np.array([3, 4], np.int64)})
    assert [value.name for value in graph.inputs] == ["x"]
    assert shapes(graph)["y"] == (3, 4)


def test_a_shape_from_data_names_the_inputs_that_decide() -> None:
    with pytest.raises(DataDependent) as found:
        optimized("""g (float[2,6] x, int64[2] s, float[6] z) => (float[a,b] y)
            { t = Identity(s) y = Reshape(x, t) }""")
    assert found.value.inputs == ("s",)
    assert "(Reshape)" in str(found.value)


def test_a_shape_that_many_floats_decide_names_no_input() -> None:
    with pytest.raises(DataDependent) as found:
        optimized("""g (float[2,6000] x) => (float[a,b] y) <int64[1] along = {1}>
            { s = ReduceMax<keepdims=0>(x, along) i = Cast<to=7>(s)
              y = Reshape(x, i) }""")
    assert found.value.inputs == ()
    assert "depends on the data" in str(found.value)
    assert "nanoloom compiles static shapes only" in str(found.value)


# ---- refusals ------------------------------------------------------------------------

REFUSED = [
    ("g (float[2,3] x, float[4,5] w) => (float[2,5] y) { y = MatMul(x, w) }",
     ModelError, "(MatMul): its inputs do not fit together"),
    ("g (float[2,3] x) => (float[n] y) <int64[1] s = {7}> { y = Reshape(x, s) }",
     Error, "(Reshape)"),
    ("g (float[2,3] x, float[4] z) => (float[2,3] y) { y = Add(x, z) }",
     ModelError, "(Add): its inputs do not fit together"),
    ("g (float[2] x) => (float[2] y) <int64[1] a = {3}> { y = ReduceSum(x, a) }",
     Error, "(ReduceSum)"),
    ("g (string[2] x) => (string[2] y) { y = Identity(x) }", Unsupported, "string"),
]  # fmt: skip


def compiled(text: str) -> None:
    graph = optimized(text)
    with mlir.context():
        lower(ir.Model(graph, ir_version=10))


@pytest.mark.parametrize(("text", "kind", "said"), REFUSED)
def test_refusals(text: str, kind: type[Error], said: str) -> None:
    """One sentence that names the node."""
    with pytest.raises(kind) as found:
        compiled(text)
    assert said.lower() in str(found.value).lower()
    assert "\n" not in str(found.value)


def test_sequences_that_nobody_needs_are_no_reason_to_refuse() -> None:
    compiled("""g (float[2] x) => (float[2] y)
        { s = SequenceConstruct(x, x) n = SequenceLength(s) y = Add(x, x) }""")


def test_inference_is_not_asked_where_an_equal_constant_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Walks through samples of sizes meet the same sums of sizes again and again."""
    text = """g (float[2,3,4] x) => (float[2,12] y)
        <int64 zero = {0}, int64[1] rest = {-1}, int64[1] first = {0}>
        { s = Shape(x) n = Gather(s, zero) u = Unsqueeze(n, first)
          c = Concat<axis=0>(u, rest) y = Reshape(x, c) }"""
    once = optimized(text)
    asked: list[str] = []
    infer = inference.infer

    def noted(node: ir.Node, opsets: dict[str, int]) -> None:
        asked.append(node.op_type)
        infer(node, opsets)

    monkeypatch.setattr(inference, "infer", noted)
    again = optimized(text)
    assert not {"Gather", "Unsqueeze", "Concat"} & set(asked)
    assert {"Shape", "Reshape"} <= set(asked)
    (one,), (other,) = once, again
    first, second = (
        constant(g, n.inputs[1].name) for g, n in ((once, one), (again, other))
    )
    assert first.tolist() == second.tolist() == [2, -1]
