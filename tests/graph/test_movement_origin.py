"""Parts of a stack are found where they are, as an array of numbered elements says."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from onnx_ir import serde

from nanoloom.errors import Unsupported
from nanoloom.graph.append_to_cache import append_to_caches
from nanoloom.graph.movement import moved, source_axes
from nanoloom.graph.movement_origin import StackedAxis, origin
from nanoloom.graph.stage import optimize
from nanoloom.graph.types import shape_of
from nanoloom.linalg.operators import OPERATORS

SHAPE = (3, 2, 4, 5)
MOVES = {
    "Gather": "y = Gather<axis = 1>(x, pair)",
    "Gather of a number": "y = Gather<axis = -2>(x, last)",
    "Identity": "y = Identity(x)",
    "Reshape": "y = Reshape(x, six)",
    "Reshape to fewer": "a = Reshape(x, six) y = Reshape(a, parts)",
    "Slice": "y = Slice(x, one, most, zero)",
    "Slice back": "y = Slice(x, most, least, zero, minus)",
    "Split": "a, y = Split<axis = 2>(x, lengths)",
    "Squeeze": "a = Slice(x, one, two, zero) y = Squeeze(a, zero)",
    "Squeeze all": "a = Slice(x, one, two, zero) y = Squeeze(a)",
    "Transpose": "y = Transpose<perm = [2, 0, 3, 1]>(x)",
    "Unsqueeze": "y = Unsqueeze(x, both)",
    "Concat": "a = Neg(x) y = Concat<axis = 1>(x, x)",
}
TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[3, 2, 4, 5] x) => (float[] y)
<int64[1, 2] pair = {1, -2}, int64 last = {-1}, int64[4] six = {6, 1, 4, 5},
 int64[4] parts = {2, 3, 4, 5}, int64[1] zero = {0}, int64[1] one = {1},
 int64[1] two = {2}, int64[1] most = {9223372036854775807},
 int64[1] least = {-9223372036854775807}, int64[1] minus = {-1},
 int64[2] lengths = {1, 3}, int64[2] both = {0, -1}>
{ BODY }
"""


@pytest.mark.parametrize("move", MOVES)
def test_every_element(move: str) -> None:
    """Each element of the output is the one of the input that is found for it."""
    proto = parser.parse_model(TEXT.replace("BODY", MOVES[move]))
    numbers = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": numbers})
    assert isinstance(wanted, np.ndarray)
    graph = with_shapes(proto, numbers)
    out, x = graph.outputs[0], graph.inputs[0]
    for places in np.ndindex(wanted.shape):
        source, found, asked = origin(out, places)
        assert source is x and asked is None
        assert numbers[tuple(map(int, found))] == wanted[places]  # type: ignore[arg-type] - no Along


def with_shapes(proto: onnx.ModelProto, numbers: np.ndarray) -> ir.Graph:
    """A graph whose values have the shapes that the reference gives."""
    graph = serde.deserialize_model(proto).graph
    names = [out.name or "" for node in graph for out in node.outputs]
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    made = ReferenceEvaluator(proto).run(names, {"x": numbers})
    shapes = {n: np.shape(y) for n, y in zip(names, made, strict=True)}  # type: ignore[arg-type] - a list
    for node in graph:
        for out in node.outputs:
            out.shape = ir.Shape(shapes[out.name or ""])
            out.type = graph.inputs[0].type
    return graph


@pytest.mark.parametrize(
    ("body", "axis"),
    [
        ("y = Concat<axis = 1>(x, x)", 1),
        ("y = Unsqueeze(x, zero)", 0),
        ("y = Gather<axis = 2>(x, zero)", 2),
        ("y = Slice(x, one, most, zero)", 0),
        ("a, y = Split<axis = 2>(x, lengths)", 2),
        ("y = Reshape(x, six)", 0),
    ],
)
def test_what_must_be_chosen(body: str, axis: int) -> None:
    proto = parser.parse_model(TEXT.replace("BODY", body))
    graph = with_shapes(proto, np.zeros(SHAPE, np.float32))
    out = graph.outputs[0]
    rank = len(out.shape or ())
    value, _, asked = origin(out, tuple(map(StackedAxis, range(rank))))
    assert value is out and asked == StackedAxis(axis)


STACK = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 5, 4] past, float[3, 1, 4] a, float[3, 1, 4] b)
    => (float[2, 3, 6, 4] present, float[3, 6, 4] y)
<int64[1] front = {0}, int64 zero = {0}, int64 one = {1}>
{
    p0 = Gather(past, zero)
    p1 = Gather(past, one)
    k = Concat<axis = 1>(p0, a)
    v = Concat<axis = 1>(p1, b)
    k1 = Unsqueeze(k, front)
    v1 = Unsqueeze(v, front)
    present = Concat<axis = 0>(k1, v1)
    y = Mul(k, v)
}
"""


def rewritten(text: str) -> ir.Graph:
    model = serde.deserialize_model(parser.parse_model(text))
    optimize(model, OPERATORS.keys(), caches=(("past", "present"),))
    return model.graph


def test_parts_are_inputs_and_outputs() -> None:
    graph = rewritten(STACK)
    operators = [*["Transpose", "Append"] * 2, "Mul", "Transpose"]
    assert [node.op_type for node in graph] == operators
    names = ["past[0, :, :, :]", "past[1, :, :, :]", "a", "b"]
    assert [x.name for x in graph.inputs] == names
    assert [(x.name, tuple(x.shape or ())) for x in graph.outputs] == [
        ("present[0, :, :, :]", (6, 3, 4)),
        ("present[1, :, :, :]", (6, 3, 4)),
        ("y", (3, 6, 4)),
    ]


def test_a_stack_that_is_read() -> None:
    """It is made then of what is kept, for those that read it."""
    text = STACK.replace("y = Mul(k, v)", "y = ReduceSum<keepdims = 0>(present, front)")
    names = [node.op_type for node in rewritten(text)]
    assert names.count("Append") == 2 and names[-2:] == ["Concat", "ReduceSum"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(k1, v1)", "(v1, k1)", "does not put one value behind past"),
        ("(p1, b)", "(p0, b)", "does not put one value behind past"),
        ("y = Mul(k, v)", "z = Neg(p0) w = Concat<axis = 1>(z, a) y = Mul(w, v)",
         "past is read by others"),
        ("v1 = Unsqueeze(v", "w = Neg(v) v1 = Unsqueeze(w", "made by Neg, not by Con"),
        ("(p1, b)", "(p1, b) n = Identity(past)", ""),
    ],
)  # fmt: skip
def test_what_is_more(old: str, new: str, reason: str) -> None:
    text = STACK.replace(old, new)
    if not reason:
        assert len(rewritten(text).inputs) == 4
        return
    with pytest.raises(Unsupported, match=reason):
        rewritten(text)


def test_another_rank() -> None:
    model = serde.deserialize_model(parser.parse_model(STACK))
    with pytest.raises(Unsupported, match="it is not past, longer along one axis"):
        append_to_caches(model.graph, [("past", "y")])


@pytest.mark.parametrize("move", [x for x in MOVES if x not in ("Concat", "Reshape")])
def test_arrays_are_moved_so_too(move: str) -> None:
    """Each step of a case, of what the steps in front of it make."""
    proto = parser.parse_model(TEXT.replace("BODY", MOVES[move]))
    numbers = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": numbers})
    made = numbers
    for node in with_shapes(proto, numbers):
        if node.op_type == "Reshape":
            made = made.reshape(shape_of(node.outputs[0]))
            continue
        axes, out = source_axes(node, node.outputs[-1]), node.outputs[-1]
        assert axes is not None
        made = moved(made, axes, len(shape_of(out)))
    assert np.array_equal(made, wanted)  # type: ignore[arg-type] - an array
