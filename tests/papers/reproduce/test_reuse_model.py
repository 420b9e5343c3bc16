"""Table I of the paper, reproduced by counting what the generated code reads."""

from __future__ import annotations

import pytest

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.dataflow.dataflow import Dataflow, parse
from nanoloom.schedule.dataflow.layer import Layer, layer_of
from nanoloom.schedule.dataflow.recommended import candidates, recommended
from nanoloom.target import by_name
from nanoloom_papers.reproduce.reuse_model import (
    Sizes,
    Traffic,
    saved,
    table_one,
    traffic,
)
from tests.notation.programs import kernels
from tests.schedule.dataflow.executed import executed
from tests.schedule.dataflow.layers import DEPTHWISE, Case
from tests.vector.kernel_harness import stage_text

AVX2, AVX512 = by_name("x86-64-v3"), by_name("x86-64-v4")
# One block of channels, one task.
PLAIN = Case((9, 14), (3, 3), 8, kind=DEPTHWISE)
STRIDED = Case((11, 15), (3, 3), 8, strides=(2, 2), kind=DEPTHWISE)
LARGER = Case((12, 30), (5, 4), 8, strides=(1, 1), kind=DEPTHWISE)
CUBE = Case((5, 6, 9), (2, 3, 3), 8, kind=DEPTHWISE)


def nest_of(case: Case) -> LoopNest:
    (kernel,) = kernels(case.written()).kernels.values()
    return kernel.nest


def layer(case: Case) -> Layer:
    return layer_of(nest_of(case))


def counted(case: Case, text: str) -> Traffic:
    """In the code: of the inputs, and of the result but for the zeros in front."""
    flow = parse(f"{text}; block 0 0 0")
    program = kernels(case.written())
    (kernel,) = program.kernels.values()
    schedule = flow.schedule_of(kernel.nest, AVX2)
    found = executed(stage_text(program, "vector", AVX2, script=schedule))
    filled = layer(case).outputs if flow.anchor != "output" else 0
    reads = sum(count for (word, _), count in found.items() if word == "read")
    return Traffic(reads, sum(found.values()) - reads - filled)


@pytest.mark.drawn
@pytest.mark.parametrize("case", [PLAIN, STRIDED, LARGER, CUBE], ids=str)
@pytest.mark.parametrize(
    "flow",
    [
        "output",
        "output; weight 4",
        "output; input 3",
        "output; weight 30; input 30",
        "weight",
        "weight; output 6",
        "weight; output 20; input 2",
        "input",
        "input; weight 5",
        "input; output 1",
        "input; output 7; weight 2",
    ],
)
def test_the_model_counts_what_the_code_does(case: Case, flow: str) -> None:
    assert counted(case, flow) == traffic(parse(flow), layer(case))


def spared(case: Case, anchor: str, operand: str, count: int) -> Traffic:
    """By one more variable behind so many."""
    fewer = ((operand, count),) if count else ()
    found = layer(case)
    more = saved(Dataflow(anchor, ((operand, count + 1),)), found)
    return more - saved(Dataflow(anchor, fewer), found)


def sizes(case: Case) -> Sizes:
    return Sizes(case.window, case.size, case.result, case.steps[0])  # type: ignore[arg-type] - pairs


@pytest.mark.parametrize("case", [PLAIN, STRIDED, LARGER], ids=str)
def test_outputs_that_stay(case: Case) -> None:
    """E reads for each weight but the first, and for each input but a row's first."""
    (high, wide), (rows, _) = case.window, case.result
    outputs = layer(case).outputs
    for number in range(high * wide):
        assert spared(case, "output", "weight", number) == Traffic(outputs - 1)
        told = table_one("output", "weight", number + 1, sizes(case))
        assert told == Traffic(outputs)
    again = (wide - case.steps[0]) * high
    for number in range(again + 2):
        read = outputs - rows if number < again else 0
        assert spared(case, "output", "input", number) == Traffic(read)
        told = table_one("output", "input", number + 1, sizes(case))
        assert told == Traffic(outputs if number < again else 0)


@pytest.mark.parametrize("case", [PLAIN, STRIDED, LARGER], ids=str)
def test_weights_that_stay(case: Case) -> None:
    """R reads and writes for each output but its first and last; of inputs those in
    the middle of a window are read R / s^2 times."""
    taps = layer(case).taps
    for number in range(6):
        found = spared(case, "weight", "output", number)
        assert found == Traffic(taps - 1, taps - 1)
        told = table_one("weight", "output", number + 1, sizes(case))
        assert told == Traffic(taps, taps)
    if case == PLAIN:
        assert spared(case, "weight", "input", 0) == Traffic(taps - 1)
        assert table_one("weight", "input", 1, sizes(case)) == Traffic(taps)


@pytest.mark.parametrize("case", [PLAIN, LARGER], ids=str)
def test_weights_under_an_input(case: Case) -> None:
    """As often as each is used, E times, and H where E is as large."""
    found = layer(case)
    for number in range(found.taps):
        assert spared(case, "input", "weight", number) == Traffic(found.outputs - 1)
    told = table_one("input", "weight", 1, sizes(case))
    assert told.reads == case.size[0] * case.size[1] >= found.outputs


def test_edges_are_all_that_differs() -> None:
    """H reads of each weight and output, and H writes, within 6 % at 112 x 112."""
    large = Case((112, 112), (3, 3), 8, kind=DEPTHWISE)
    for operand, most in (("weight", 9), ("output", 6)):
        for number in range(most):
            told = table_one("input", operand, number + 1, sizes(large))
            got = spared(large, "input", operand, number)
            assert abs(got.reads - told.reads) < 0.06 * told.reads
            assert abs(got.writes - told.writes) <= 0.06 * told.writes
            assert (got.writes > 0) == (operand == "output")


def test_a_stride_leaves_few_inputs() -> None:
    """One output stays through the inputs of a period: more than H / s reads fewer."""
    told = table_one("input", "output", 1, sizes(STRIDED))
    assert told.reads == 15 * 11 + 15 * 11 // 3
    assert 0 < spared(STRIDED, "input", "output", 0).reads < told.reads


def test_nothing_behind_the_last_row_of_the_table() -> None:
    for anchor, operand, number in (
        ("output", "weight", 10),
        ("output", "input", 7),
        ("input", "weight", 10),
        ("output", "output", 1),
    ):
        assert table_one(anchor, operand, number, sizes(PLAIN)) == Traffic()


# ---- Algorithm 8 ---------------------------------------------------------------------


def test_weights_get_the_registers_first() -> None:
    large = nest_of(Case((12, 30), (5, 5), 8, kind=DEPTHWISE))
    assert str(recommended(large, AVX2)) == "output; weight 13"
    assert str(recommended(large, AVX512)) == "output; weight 25; input 4"
    assert str(recommended(large, AVX512, 2)) == "output; weight 13; registers 2"


def test_no_more_than_is_used_again() -> None:
    small = nest_of(Case((9, 14), (2, 2), 8, kind=DEPTHWISE))
    assert str(recommended(small, AVX512)) == "output; weight 4; input 2"
    strided = nest_of(Case((9, 14), (2, 2), 8, strides=(2, 2), kind=DEPTHWISE))
    assert str(recommended(strided, AVX512)) == "output; weight 4"


def test_candidates() -> None:
    nest = nest_of(PLAIN)
    found = [str(flow) for flow in candidates(nest, AVX2)]
    assert len(set(found)) == len(found)
    assert {"output", "weight", "input"} < set(found)
    assert "output; weight 9; input 4" in found
    assert "output; input 6; weight 7" in found
    least = min(candidates(nest, AVX2), key=lambda x: traffic(x, layer(PLAIN)).reads)
    assert least.anchor == "output"
