"""Bodies in the graph stage: names, unrolling, functions, and which inputs decide."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from nanoloom.errors import DataDependent, ModelError
from nanoloom.graph.stage import bind_values, optimize
from nanoloom.graph.unique_names import Names, nested, unique_names
from nanoloom.linalg.operators import OPERATORS

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
TWICE = """agraph (bool c, bool d, float[2] x) => (float[2] y, float[2] z) {
  y = If (c) <
    then_branch = a () => (p) <float[2] k = {1.0, 2.0}> { p = Add(x, k) },
    else_branch = b () => (p) <float[2] k = {3.0, 5.0}> { p = Add(x, k) }
  >
  z = If (d) <
    then_branch = a () => (p) <float[2] k = {7.0, 8.0}> { p = Mul(x, k) },
    else_branch = b () => (p) <float[2] k = {9.0, 6.0}> { p = Sub(x, k) }
  >
}"""
GROWING = """agraph (int64 m, int64[2] x) => (int64[k] y) {
  go = Constant<value = bool {1}>()
  y = Loop (m, go, x) <
    body = step (int64 i, bool k, int64[q] v) => (k2, w) {
      k2 = Identity(k)
      w = Concat<axis = 0>(v, v)
    }
  >
}"""


def load(text: str) -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(HEAD + text))


def test_every_name_is_given_once() -> None:
    model = load(TWICE)
    unique_names(model.graph)
    values = [v.name for n in nested(model.graph) for v in n.outputs]
    constants = [
        value.name
        for node in model.graph
        for body in (a.as_graph() for a in node.attributes.values())
        for value in body.initializers.values()
    ]
    assert len({*values, *constants}) == len(values) + len(constants) == 10
    assert [v.name for v in model.graph.outputs] == ["y", "z"]
    assert all(node.name for node in nested(model.graph))


def test_fresh_names_count_on() -> None:
    names = Names()
    assert [names.value("a"), names.value("a"), names.value("a")] == ["a", "a.1", "a.2"]
    assert names.node("a") == "a"


def test_known_branches_move_out_and_keep_the_outputs_names() -> None:
    model = load(TWICE)
    bind_values(model, {"c": np.array(True), "d": np.array(False)})
    optimize(model, OPERATORS.keys())
    assert [n.op_type for n in model.graph] == ["Add", "Sub"]
    assert [v.name for v in model.graph.outputs] == ["y", "z"]


def test_a_growing_loop_asks_for_its_trips_then_is_written_out() -> None:
    with pytest.raises(DataDependent, match="changes from trip to trip") as caught:
        optimize(load(GROWING), OPERATORS.keys())
    assert caught.value.inputs == ("m",)
    model = load(GROWING)
    bind_values(model, {"m": np.array(3)})
    optimize(model, OPERATORS.keys())
    assert [n.op_type for n in model.graph] == ["Concat"] * 3
    assert model.graph.outputs[0].shape == ir.Shape([16])
    assert [n.name for n in model.graph] == ["y/0/w", "y/1/w", "y/2/w"]


def test_an_endless_loop_is_refused() -> None:
    model = load(GROWING.replace("Loop (m,", "Loop (,").replace("int64 m, ", ""))
    with pytest.raises(ModelError, match="never ends"):
        optimize(model, OPERATORS.keys())


def test_a_function_with_branches_is_expanded_in_place() -> None:
    text = """agraph (float[2,2,3] theta) => (float[n,5,7,2] grid) {
      size = Constant<value_ints = [2, 1, 5, 7]>()
      grid = AffineGrid(theta, size)
    }"""
    model = load(text)
    model.opset_imports[""] = 20
    next(iter(model.graph)).version = None
    optimize(model, OPERATORS.keys() - {"AffineGrid"})
    assert all(n.op_type not in ("If", "AffineGrid") for n in model.graph)
    assert model.graph.outputs[0].shape == ir.Shape([2, 5, 7, 2])


def test_names_of_two_expanded_functions_differ() -> None:
    text = """agraph (float[3] x) => (float[3] y) {
      a = HardSwish(x)
      y = HardSwish(a)
    }"""
    model = load(text)
    optimize(model, OPERATORS.keys() - {"HardSwish"})
    values = [v.name for n in model.graph for v in n.outputs]
    assert len(set(values)) == len(values) >= 4


def test_a_body_depends_on_the_inputs_outside() -> None:
    text = """agraph (int64[1] n, float[2,9] x) => (float[2,9,k] y) {
      y = Scan (x) <num_scan_inputs = 1,
        body = row (float[9] r) => (o) {
          one = Constant<value_ints = [1]>()  b = Unsqueeze(r, one)
          last = Concat<axis = 0>(one, n)  o = Expand(b, last) }
      >
    }"""
    with pytest.raises(DataDependent, match="Expand") as caught:
        optimize(load(text), OPERATORS.keys())
    assert caught.value.inputs == ("n",)
