"""Right operands along the sum: Algorithm 1 of the OML-vect paper, and what stays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.stage import NOT_REWRITTEN, optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom_papers.affine.k_contiguous_rhs import EQUATION, make_k_contiguous
from tests.graph.models import constant, operators, proto


def laid(model: onnx.ModelProto | str, opset: int = 21) -> ir.Model:
    """A model with its right operands along the sum."""
    given = proto(model, opset) if isinstance(model, str) else model
    return optimize(ir.from_proto(given), OPERATORS.keys(), rewrite=make_k_contiguous)


ONES = ",".join(str(i) for i in range(15))
WEIGHT = f"<float[5,3] w = {{{ONES}}}, float[3] c = {{1, 2, 3}}>"


def test_a_weight_is_turned_once_and_kept_no_other_way() -> None:
    made = laid(f"g (float[4,5] x) => (float[4,3] y) {WEIGHT} {{ y = MatMul(x, w) }}")
    (node,) = made.graph
    assert node.op_type == "Gemm" and node.attributes["transB"].as_int() == 1
    assert list(made.graph.initializers) == ["w_1_0"]
    assert (constant(made.graph, "w_1_0") == np.arange(15).reshape(5, 3).T).all()
    assert made.meta[NOT_REWRITTEN] == {}


def test_gemm_keeps_its_other_words() -> None:
    text = "y = Gemm<alpha = 0.5, beta = 2.0, transA = 1>(x, w, c)"
    made = laid(f"g (float[5,4] x) => (float[4,3] y) {WEIGHT} {{ {text} }}")
    (node,) = made.graph
    found = {name: each.value for name, each in node.attributes.items()}
    assert found == {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}


def test_permutations_are_composed() -> None:
    """[0, 2, 3, 1] and a swap of the last two are [0, 2, 1, 3]."""
    made = laid("""g (float[1,3,7,4] q, float[1,7,3,4] k) => (float[1,3,7,7] y)
        { t = Transpose<perm = [0, 2, 3, 1]>(k) y = MatMul(q, t) }""")
    turn, product = made.graph
    assert turn.attributes["perm"].as_ints() == (0, 2, 1, 3)
    assert product.op_type == "Einsum"
    assert product.attributes["equation"].as_string() == EQUATION


def test_a_transpose_that_only_turned_it_goes() -> None:
    made = laid("""g (float[2,7,4] q, float[2,5,4] k) => (float[2,7,5] y)
        { t = Transpose<perm = [0, 2, 1]>(k) y = MatMul(q, t) }""")
    assert operators(made.graph) == ["Einsum"]


def test_a_transpose_comes_through_what_is_elementwise() -> None:
    made = laid("""g (float[2,7,4] q, float[2,5,4] k) => (float[2,7,5] y)
        <float c = {0.5}>
        { t = Transpose<perm = [0, 2, 1]>(k) s = Mul(t, c) y = MatMul(q, s) }""")
    assert operators(made.graph) == ["Mul", "Einsum"]


STAYS = {
    "nothing turns its right operand before": (
        "(float[4,5] x, float[5,3] k) => (float[4,3] y)",
        "y = MatMul(x, k)",
    ),
    "its right operand lies along the columns before it is turned": (
        "(float[2,4,5] x, float[5,2,3] k) => (float[2,4,3] y)",
        "t = Transpose<perm = [1, 0, 2]>(k) y = MatMul(x, t)",
    ),
    "its right operand is read by others": (
        "(float[4,5] x, float[3,5] k) => (float[4,3] y, float[5,3] t)",
        "t = Transpose<perm = [1, 0]>(k) y = MatMul(x, t)",
    ),
    "it lies along the sum": (
        "(float[4,5] x, float[3,5] k) => (float[4,3] y)",
        "y = Gemm<transB = 1>(x, k)",
    ),
    "an operand is a vector": (
        "(float[4,5] x, float[5] k) => (float[4] y)",
        "y = MatMul(x, k)",
    ),
    "its right operand is of FLOAT16, which is packed in groups": (
        "(float16[4,5] x, float16[5,3] k) => (float16[4,3] y)",
        "y = MatMul(x, k)",
    ),
}


@pytest.mark.parametrize("reason", STAYS)
def test_what_stays_says_why(reason: str) -> None:
    head, body = STAYS[reason]
    made = laid(f"g {head} {{ {body} }}")
    assert list(made.meta[NOT_REWRITTEN].values()) == [reason]
    assert "Einsum" not in operators(made.graph)


def test_old_models_have_no_einsum() -> None:
    text = "(float[4,5] x) => (float[4,3] y)"
    made = laid(f"g {text} {WEIGHT} {{ y = MatMul(x, w) }}", opset=11)
    assert operators(made.graph) == ["MatMul"]
    assert "opset 11" in "".join(made.meta[NOT_REWRITTEN].values())


# ---- random graphs


@dataclass(frozen=True)
class Drawn:
    """A product of random shapes, behind a transpose or of a weight."""

    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]


def drawn(seed: int) -> Drawn:
    random = np.random.default_rng(seed)
    outer = [int(n) for n in random.integers(1, 4, random.integers(0, 3))]
    m, k, n = (int(n) for n in random.integers(1, 9, 3))
    rank, node = len(outer) + 2, helper.make_node
    left = [size if random.random() < 0.8 else 1 for size in outer]
    order = [int(d) for d in random.permutation(rank)]
    right = [*outer, k, n]
    source = [right[order.index(d)] for d in range(rank)]
    arrays = {
        "x": random.integers(-4, 5, (*left, m, k)).astype(np.float32),
        "k": random.integers(-4, 5, source).astype(np.float32),
    }
    nodes = [node("Transpose", ["k"], ["t"], perm=order)]
    if random.random() < 0.5:
        nodes.append(node("Neg", ["t"], ["u"]))
    nodes.append(node("MatMul", ["x", nodes[-1].output[0]], ["p"]))
    nodes.append(node("Abs", ["p"], ["y"]))
    held = {"k": arrays.pop("k")} if random.random() < 0.4 else {}
    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "drawn",
        [helper.make_tensor_value_info(s, float32, a.shape) for s, a in arrays.items()],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    opsets = [helper.make_opsetid("", 21)]
    return Drawn(helper.make_model(graph, opset_imports=opsets, ir_version=10), arrays)


@pytest.mark.parametrize("seed", range(40))
def test_random_products_are_the_same(seed: int) -> None:
    """Whole numbers: exact, whatever the order of the sum."""
    case = drawn(seed)
    (right,) = ReferenceEvaluator(case.model).run(None, case.feeds)
    made = ir.to_proto(laid(case.model))
    onnx.checker.check_model(made)
    (got,) = ReferenceEvaluator(made).run(None, case.feeds)
    assert np.asarray(got).shape == np.asarray(right).shape
    assert np.array_equal(got, right)
    assert not np.array_equal(np.asarray(got) + 1, right)


def test_random_products_do_change() -> None:
    """Most of them: the test above is of something."""
    graphs = [laid(drawn(seed).model).graph for seed in range(40)]
    changed = [{"Einsum", "Gemm"} & {*operators(graph)} for graph in graphs]
    assert sum(map(bool, changed)) > 20
