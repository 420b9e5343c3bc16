"""Limits of integers through casts, and numbers of a row back to where they were."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import nanoloom
from nanoloom.errors import ModelError
from nanoloom.graph.data_dependent.integer_bounds import MOST, converted, gathered
from nanoloom.graph.data_dependent.reshape_targets import origin

INT, FLOAT = ir.DataType.INT64, ir.DataType.FLOAT
KNOWN = (np.array([0, 1]), np.array([4, 9]))


def value(name: str, kind: ir.DataType | None, *shape: int) -> ir.Value:
    type_ = None if kind is None else ir.TensorType(kind)
    return ir.Value(name=name, shape=ir.Shape(shape), type=type_)


def made(word: str, *inputs: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    axis = [ir.AttrInt64("axis", 0)] if word in ("Concat", "Gather") else []
    node = ir.Node("", word, inputs, axis)
    (output,) = node.outputs
    output.shape, output.type = ir.Shape(shape), ir.TensorType(INT)
    return output


def ints(*numbers: int) -> ir.Value:
    array = np.array(numbers)
    found = value("known", INT, len(numbers))
    found.const_value = ir.tensor(array)
    return found


@pytest.mark.parametrize("kind", [INT, ir.DataType.INT32, ir.DataType.BOOL])
def test_casts_of_integers_keep_limits(kind: ir.DataType) -> None:
    node = ir.Node("", "Cast", [value("x", kind, 2)])
    assert converted(node, [KNOWN]) is KNOWN
    unknown = np.full(2, -MOST), np.full(2, MOST)
    assert converted(node, [unknown]) is unknown


def test_nothing_is_known_of_what_is_taken_of_nothing() -> None:
    """Limits of the last of no numbers were an internal error."""
    taken = made("Gather", value("x", INT, 0), ints(-1), shape=(1,))
    node = taken.producer()
    assert node is not None
    assert gathered(node, [(np.zeros(0), np.zeros(0)), KNOWN]) is None
    assert gathered(node, [KNOWN, KNOWN]) == (np.array([1]), np.array([9]))


def test_floats_are_whole_only_where_all_of_them_have_limits() -> None:
    """Of others nobody knows that they are integers."""
    node = ir.Node("", "Cast", [value("x", FLOAT, 2)])
    assert converted(node, [KNOWN]) is KNOWN
    for low, high in (([0, -MOST], [4, 9]), ([0, 1], [MOST, 9])):
        assert converted(node, [(np.array(low), np.array(high))]) is None
    untyped = ir.Node("", "Cast", [value("x", None, 2)])
    assert converted(untyped, [KNOWN]) is None


def test_a_number_is_followed_through_rows() -> None:
    row, other = value("row", INT, 3), value("other", INT, 2)
    joined = made("Concat", other, row, shape=(5,))
    assert origin(joined, 1) == (other, 1)
    assert origin(joined, 2) == (row, 0) and origin(joined, 4) == (row, 2)
    taken = made("Gather", joined, ints(4, -5), shape=(2,))
    assert origin(taken, 0) == (row, 2) and origin(taken, 1) == (other, 0)
    cut = made("Slice", row, ints(1), ints(3), ints(0), shape=(2,))
    assert origin(cut, 1) == (row, 2)
    steps = made("Slice", row, ints(0), ints(3), ints(0), ints(2), shape=(2,))
    assert origin(steps, 1) == (row, 2)
    one = made("Unsqueeze", value("n", INT), ints(0), shape=(1,))
    assert origin(one, 0)[0].name == "n"


def test_a_number_of_a_matrix_is_not_followed() -> None:
    """Its place would be two numbers."""
    matrix, one = value("matrix", INT, 2, 3), ints(1)
    one.shape, one.const_value = ir.Shape(()), ir.tensor(np.array(1))
    for word, given, size in (("Gather", one, 3), ("Reshape", ints(6), 6)):
        taken = made(word, matrix, given, shape=(size,))
        assert origin(taken, 2) == (taken, 2)


def test_casts_of_floats_are_where_they_are() -> None:
    cast = made("Cast", value("x", FLOAT, 2), shape=(2,))
    assert origin(cast, 1) == (cast, 1)


@pytest.mark.parametrize(
    ("kind", "call"), [("int64", "Range(s, e, e)"), ("float", "HammingWindow(s)")]
)
def test_ranges_up_to_no_number_are_refused(kind: str, call: str) -> None:
    text = f"g (int64[0] s, int64 e) => ({kind}[k] y) {{ y = {call} }}"
    head = '<ir_version: 8, opset_import: ["": 17]>'
    feeds = {"s": np.zeros(0, np.int64), "e": np.array(3)}
    with pytest.raises(ModelError, match="scalar"):
        nanoloom.compile(onnx.parser.parse_model(head + text))(feeds)
