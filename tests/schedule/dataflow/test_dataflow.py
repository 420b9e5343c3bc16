"""Dataflows as values, and the words that they become."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.errors import Error
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.dataflow.dataflow import Dataflow, parse
from nanoloom.schedule.language import Schedule, Stationary, Vectorize
from nanoloom.target import by_name
from tests.nest.nests import matmul
from tests.notation.programs import kernels
from tests.schedule.dataflow.layers import BLOCKED, DEPTHWISE, Case

AVX2 = by_name("x86-64-v3")


def nest_of(case: Case) -> LoopNest:
    (kernel,) = kernels(case.written()).kernels.values()
    return kernel.nest


@pytest.mark.parametrize(
    "text",
    [
        "output",
        "output; weight 4; input 2",
        "input; output 3; registers 2; unroll 4",
        "weight; output 8; order filters groups channels; block 8 0",
    ],
)
def test_it_reads_what_it_prints(text: str) -> None:
    made = parse(text)
    assert str(made) == text
    assert {made: 1}[parse(str(made))] == 1


def stationary(schedule: Schedule) -> Stationary:
    """The one directive of a dataflow."""
    (found,) = (x for x in schedule.directives if isinstance(x, Stationary))
    return found


def test_fields() -> None:
    made = parse("output; input 2; weight 4; registers 4; block 7")
    assert made == Dataflow("output", (("input", 2), ("weight", 4)), 4, block=(7,))
    assert (made.variables, made.count("weight"), made.count("output")) == (9, 4, 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("row", "'row' is none of output, weight, input"),
        ("output 3", "'output 3' begins with no anchor"),
        ("output; output 3", "output is the anchor: it has one variable already"),
        ("output; weight 1; weight 2", "an operand is named twice"),
        ("output; weight 0", "an operand has one vector variable at least"),
        ("output; weight many", "'many' is no number from 0 on"),
        ("output; weight", "'weight' is no operand with a number"),
        ("output; registers 3", "a vector variable has 1, 2 or 4 registers, not 3"),
        ("output; unroll 65", "unroll is 65: 0 to 64 is wanted"),
        ("output; order filters", "order has each of groups, channels, filters once"),
        ("output; registers 2; registers 4", "registers stands twice"),
        ("output; block 4; block 4", "block stands twice"),
        ("output; block", "'block' is no operand with a number"),
        ("output; weight 9999999999", "an operand has 1024 vector variables at most"),
        ("output; block 9999999999", "2147483647 points at most"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(Error) as caught:
        parse(text)
    assert reason in str(caught.value)


def test_blocks_are_no_less_than_nothing() -> None:
    with pytest.raises(Error, match="no number is below 0"):
        Dataflow("output", block=(-1,))


def test_words() -> None:
    flow = parse("input; output 2; weight 9; registers 2")
    schedule = flow.schedule_of(nest_of(Case((40, 14), (3, 3))), AVX2)
    assert str(schedule).splitlines() == [
        "Parallel('made', (4,), ('all',))",
        "Vectorize('fill', 'd2', Lanes(8))",
        "Vectorize('made', 'f', Lanes(16))",
        "Reorder('made', ('c', 'f', 'y', 'x', 'r0', 'r1'))",
        "Stationary('made', 0, ('y', 'x'), ('r0', 'r1'), ((2, 2), (1, 9)), 2)",
        "Stack(16384)",
    ]


def test_vectors_lie_along_what_all_operands_have() -> None:
    for case, axis in (
        (Case((9, 9), (3, 3)), "f"),
        (Case((9, 9), (3, 3), kind=BLOCKED), "c"),
    ):
        words = parse("output").schedule_of(nest_of(case), AVX2).directives
        assert [x.loop for x in words if isinstance(x, Vectorize)][-1] == axis


@pytest.mark.parametrize(
    ("flow", "turns"),
    [
        ("output", 1),
        ("output; weight 9", 1),
        ("output; input 1", 1),
        ("output; input 2", 2),
        ("output; input 6", 2),
        ("input; output 4", 2),
        ("output; input 2; unroll 5", 5),
    ],
)
def test_turns_rename_registers(flow: str, turns: int) -> None:
    """As many steps as a number is carried through, in the rows of a window."""
    nest = nest_of(Case((9, 40), (3, 3), 8, kind=DEPTHWISE))
    assert stationary(parse(flow).schedule_of(nest, AVX2)).unroll == turns


def test_turns_of_a_wide_window_are_too_many() -> None:
    nest = nest_of(Case((9, 40), (5, 5), 8, kind=DEPTHWISE))
    said = "unroll 64 of 25 taps are 1600 points behind each other, 1024 at most"
    with pytest.raises(Error, match=said):
        parse("output; unroll 64").schedule_of(nest, AVX2)


def test_a_product_of_matrices_is_a_window_of_one() -> None:
    word = stationary(parse("weight").schedule_of(matmul(), AVX2))
    assert word == Stationary("product", 1, ("i",), ())


def test_what_is_no_convolution() -> None:
    nest = nest_of(Case((9, 9), (3, 3)))
    alone = replace(nest, stages=nest.stages[:1])
    with pytest.raises(Error, match="the kernel has 0 sums of products, not one"):
        parse("output").schedule_of(alone, AVX2)
