"""What an integer that the program computes may be, where extents are sizes.

An upper bound is one of its operands' for all sizes, or their sum or product.  The
least number is 0 or unknown: what it is exactly depends on the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.integer_bounds import (
    MOST,
    RULES,
    Array,
    Limits,
    Rule,
    is_bounded,
)
from nanoloom.graph.types import shape_of

Highs = Callable[[Decisions, Sequence[Array]], Array]


def dynamic_rules(decided: Decisions) -> Mapping[str, Rule]:
    """The rules of integer_bounds.py, with what they decide by noted."""
    largest, least = Decisions.largest, Decisions.bounds
    highs: dict[str, Highs] = {
        "Add": lambda _, given: np.add(*given),
        "Max": largest,
        "Min": least,
        "Mul": lambda _, given: np.multiply(*given),
        "Where": lambda noted, given: noted.largest(given[1:]),
    }
    made = {op: from_zero(high, decided) for op, high in highs.items()}
    made |= {"Min": least_of(decided), "Sub": difference(decided)}
    made |= {"Div": quotient(decided), "Where": made["Where"]}
    for op, high in (("ReduceMax", largest), ("ReduceMin", least)):
        made[op] = folded(high, decided)
    return {**RULES, **made}


def zero(lows: Sequence[Array], decided: Decisions) -> Array:
    """0 where none of some least numbers is below it; else nothing is known."""
    low = np.minimum.reduce(np.broadcast_arrays(*lows))
    for each in lows:
        decided.require(each[each >= 0])
    return np.where(low >= 0, 0, -MOST)


def from_zero(high: Highs, decided: Decisions) -> Rule:
    """Of numbers that are never below 0."""

    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        numbers = given[1:] if node.op_type == "Where" else given
        low = zero([low for low, _ in numbers], decided)
        bounded = all(map(is_bounded, numbers))
        if (low < 0).any() or not bounded:
            return None
        return low, np.asarray(high(decided, [most for _, most in given]))

    return rule


def least_of(decided: Decisions) -> Rule:
    """Of any numbers, of which some may have no bound."""

    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        del node
        high = decided.bounds([most for _, most in given])
        return zero([low for low, _ in given], decided), high

    return rule


def difference(decided: Decisions) -> Rule:
    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        del node
        if not all(map(is_bounded, given)):
            return None
        (low, high), (least, most) = given
        return zero([low - most], decided), high - least

    return rule


def quotient(decided: Decisions) -> Rule:
    """By a known positive number, which leaves nothing over or does not count."""

    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        found = RULES["Div"](node, given)
        if found is None:
            return None
        (low, high), (by, _) = given
        whole = np.where(high % by == 0, found[1], high)
        decided.ways += [(decided.where, int(n)) for n in (high % by == 0).flat]
        return zero([low], decided), whole

    return rule


def folded(high: Highs, decided: Decisions) -> Rule:
    """A reduction of all elements."""

    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        shape, (low, most) = shape_of(node.outputs[0]), given[0]
        if int(np.prod(shape, dtype=np.int64)) != 1 or low.size == 0:
            return None
        found = high(decided, list(most.reshape(-1)))
        return zero(list(low.reshape(-1)), decided).reshape(shape), found.reshape(shape)

    return rule
