"""Bounds are the first sample's for all, and what must hold for sizes is noted."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.dynamic_bounds import dynamic_rules
from nanoloom.graph.data_dependent.integer_bounds import KEY, MOST, limits_of


def test_a_bound_is_the_first_samples() -> None:
    first = Decisions(is_open=True, where="node")
    assert first.bound(7, 100) == 7
    assert first.bounds([np.array([5, 9]), np.array([6, 8])]).tolist() == [5, 8]
    other = Decisions(is_open=True, where="node", given=first.ways)
    assert other.bound(300, 100) == 300
    assert other.bounds([np.array([9, 9]), np.array([6, 8])]).tolist() == [9, 8]
    assert other.ways == first.ways and not other.differences
    strange = Decisions(is_open=True, where="another node", given=first.ways)
    assert strange.bound(300, 100) == 100 and strange.ways != first.ways[:1]


def test_what_must_hold_is_noted() -> None:
    decided = Decisions(is_open=True, where="node")
    assert decided.most(7, 100) == 100 and decided.last(5) == 4
    assert decided.is_less(3, 9) and not decided.is_less(9, 9)
    assert [n for _, n in decided.differences] == [93, 0, 0, 4, 5, 0]
    known = Decisions()
    assert known.most(7, 100) == 100 and not known.differences


def integer(low: int, high: int) -> ir.Value:
    """One that the program computes, from `low` to `high`."""
    kind = ir.TensorType(ir.DataType.INT64)
    made = ir.Value(name="n", shape=ir.Shape([1]), type=kind)
    made.meta[KEY] = low, high
    return made


def limits(op: str, decided: Decisions, *given: ir.Value) -> tuple[int, int]:
    node = ir.Node("", op, given, num_outputs=1)
    node.outputs[0].shape, node.outputs[0].type = ir.Shape([1]), given[0].type
    low, high = limits_of(node.outputs[0], dynamic_rules(decided))
    return int(low[0]), int(high[0])


def test_limits_of_sizes() -> None:
    """The least number is 0 or unknown, the largest one made of those of operands."""
    decided = Decisions(is_open=True)
    few, many = integer(0, 7), integer(3, 100)
    assert limits("Min", decided, few, many) == (0, 7)
    assert limits("Add", decided, few, many) == (0, 107)
    assert limits("Mul", decided, few, many) == (0, 700)
    assert limits("Sub", decided, many, few) == (-MOST, 100)
    assert not [n for _, n in decided.differences if n < 0]
    assert limits("Max", decided, few, many) == (0, 100)
    assert (("", 93)) in decided.differences  # 100 - 7
    again = Decisions(is_open=True, given=decided.ways)
    assert limits("Min", again, integer(0, 500), integer(0, 100)) == (0, 500)
