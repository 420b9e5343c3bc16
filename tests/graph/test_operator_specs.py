"""Each operator has one row, and all lists of operators are made of it."""

from __future__ import annotations

import onnx
import pytest

from nanoloom.dynamic import batch_independence, operators, size_predicates
from nanoloom.graph import folding, layout_effects, lookup_tables
from nanoloom.graph.data_dependent import dispatch
from nanoloom.graph.operator_families import ELEMENTWISE, REDUCTIONS
from nanoloom.graph.operator_spec import EVERY, Family, OperatorSpec, Sizes
from nanoloom.graph.operator_specs import SPECS
from nanoloom.linalg.operators import OPERATORS

DOMAINS = ("", "ai.onnx.ml")


def known(name: str) -> bool:
    """Whether somebody has an operator of this name, or did in an earlier opset."""
    return name in OPERATORS or any(
        schema.name == name and schema.domain in DOMAINS
        for schema in onnx.defs.get_all_schemas_with_history()
    )


def test_every_row_is_an_operators() -> None:
    assert not [name for name in SPECS if not known(name)]


def test_rows_are_in_order() -> None:
    assert list(SPECS) == sorted(SPECS)


def test_no_row_says_nothing() -> None:
    assert not [name for name, spec in SPECS.items() if spec == OperatorSpec()]


def test_types_that_fold_are_types_of_numpy() -> None:
    names = {t for spec in SPECS.values() for t in spec.folds if spec.folds != EVERY}
    assert names <= {"float32", "float64", "int8", "uint8", "int32", "int64"}


@pytest.mark.parametrize("rules", [operators.RULES, batch_independence.RULES])
def test_no_operator_has_a_rule_that_is_never_asked(rules: dict[str, object]) -> None:
    """Rows are asked first, rules for the others."""
    if rules is operators.RULES:
        asked = operators.ANY
    else:
        asked = batch_independence.OF_ELEMENTS | batch_independence.OF_IMAGES
    assert not asked & rules.keys()


def test_an_elementwise_operator_needs_nothing_but_its_family() -> None:
    """All that follows the family, of one whose row says no more."""
    assert SPECS["Gelu"] == OperatorSpec(Family.ELEMENTWISE, sizes=Sizes.KNOWN)
    lists = (
        layout_effects.ONE_TO_ONE,
        operators.ANY,
        batch_independence.OF_ELEMENTS,
        dispatch.RULES,
        lookup_tables.ELEMENTWISE,
    )
    for each in lists:
        assert set(each) >= ELEMENTWISE >= {"Gelu"}


def test_a_reduction_needs_nothing_but_its_family() -> None:
    assert operators.ANY >= REDUCTIONS >= {"ReduceL1"}
    assert batch_independence.RULES.keys() >= REDUCTIONS


def test_what_is_said_in_one_row_is_found_in_the_list_of_its_kind() -> None:
    assert "Gather" in folding.EXACT & size_predicates.MOVED
    assert folding.ROUNDED["MatMulInteger"] == ("int8", "uint8")
    assert not folding.EXACT & folding.ROUNDED.keys()
