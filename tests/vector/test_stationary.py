"""What stays in registers: the same numbers for every order of a stage's points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.index import Index
from nanoloom.notation.functions_table import BFLOAT16
from nanoloom.schedule.dataflow.dataflow import Dataflow, parse
from nanoloom.schedule.language import (
    Instruction,
    Reorder,
    Schedule,
    Stationary,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom_papers.reproduce.flow_layers import FlowLayer, written
from tests.filecheck import check_text
from tests.notation.programs import kernels
from tests.schedule.dataflow.layers import BLOCKED, DEPTHWISE, GROUPED, Case
from tests.vector.kernel_harness import Side, backwards, executable, stage_text
from tests.vector.nanokernel.reference import machine

AVX2 = by_name("x86-64-v3")
FLOWS = (
    "output",
    "output; weight 4; input 3",
    "weight; output 5; input 2",
    "input; output 3; weight 2",
)
EVERY = (
    *FLOWS,
    "output; weight 60",
    "output; input 9; registers 2",
    "output; input 2; weight 1; unroll 3; order filters groups channels",
    "weight",
    "weight; output 40",
    "weight; input 4",
    "input",
    "input; weight 4; registers 4",
    "input; output 8; unroll 2",
)


def run(case: Case, flow: str, side: Side = Side.END) -> tuple[np.ndarray, ...]:
    """What a dataflow computes, what is right, and the bound of their difference."""
    program, given = kernels(case.written()), case.draw()
    (kernel,) = program.kernels.values()
    script = parse(flow).schedule_of(kernel.nest, host()).to_transform(kernel.nest)
    (got,) = executable(program, host(), script)(*given, order=backwards, side=side)
    return got, case.right(*given), case.bound(*given)


def check(case: Case, flow: str, side: Side = Side.END) -> None:
    got, right, bound = run(case, flow, side)
    assert (abs(got - right) <= bound).all()
    assert (abs(right) > bound).any(), "zeros would not be found"


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("flow", EVERY)
def test_each_dataflow(flow: str) -> None:
    check(Case((9, 14), (3, 3)), flow)


@pytest.mark.drawn
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize(
    "case",
    [
        Case((9, 14), (3, 3), strides=(2, 2)),
        Case((13, 17), (5, 4), 2, 9, strides=(3, 3)),
        Case((12, 19), (3, 2), 1, 9, dilations=(2, 3)),
        Case((15, 15), (7, 7), 2, 8, strides=(2, 1)),
        Case((7, 9), (1, 1), 3, 5),
        Case((9, 11), (3, 3), 13, kind=DEPTHWISE),
        Case((9, 12), (3, 3), 3, 10, kind=GROUPED),
        Case((25,), (5,), 3, 9, strides=(2,)),
        Case((5, 6, 9), (2, 3, 3), 2, 9),
        Case((9, 12), (3, 3), 11, 5, kind=BLOCKED),
    ],
    ids=str,
)
def test_each_layer(case: Case, flow: str) -> None:
    check(case, flow)


@pytest.mark.drawn
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("kind", ["plain", BLOCKED])
def test_integers_are_exact(kind: str, flow: str) -> None:
    check(Case((9, 12), (3, 3), 19, 17, (2, 2), kind=kind, dtype=np.int8), flow)


@pytest.mark.parametrize("flow", FLOWS)
def test_pairs_of_bf16(flow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A register is full of numbers; channels that are no whole ones are masked."""
    target = machine("znver4", monkeypatch)
    case = Case((9, 12), (3, 3), 77, 6, kind=BLOCKED, dtype=BFLOAT16)
    program, given = kernels(case.written()), case.draw()
    (kernel,) = program.kernels.values()
    schedule = parse(flow).schedule_of(kernel.nest, target)
    assert Instruction("made", "vdpbf16ps") in schedule.directives
    script = schedule.to_transform(kernel.nest)
    (got,) = executable(program, target, script)(*given, order=backwards)
    right = case.right(*given)
    assert (abs(got - right) <= case.bound(*given)).all() and right.any()


@pytest.mark.parametrize("flow", FLOWS)
def test_nothing_in_front_is_read(flow: str) -> None:
    check(Case((6, 11), (3, 3), 2, 9), flow, Side.START)


# ---- the code ------------------------------------------------------------------------


def code(
    case: Case, flow: str, stage: str = "vector", target: str = "x86-64-v3"
) -> str:
    program, machine = kernels(case.written()), by_name(target)
    (kernel,) = program.kernels.values()
    schedule = parse(flow).schedule_of(kernel.nest, machine)
    return stage_text(program, stage, machine, script=schedule)


BYTES = FlowLayer(3, 9, 4, 1, 1, 128, "int8")


@pytest.mark.parametrize("registers", [1, 2])
def test_bytes_are_multiplied_by_four(registers: int) -> None:
    """A register of sums for one of bytes; as many instructions as registers."""
    program, machine = kernels(written(BYTES)), by_name("icelake-server")
    (kernel,) = program.kernels.values()
    flow = Dataflow("output", (("weight", 2),), registers)
    schedule = flow.schedule_of(kernel.nest, machine)
    text = stage_text(program, "vector", machine, script=schedule)
    assert f"vector<{16 * registers}xi32>" in text and "arith.extsi" not in text
    dots = text.count("vpdpbusd.512")
    assert dots and dots % registers == 0


def test_bytes_without_such_an_instruction_are_widened() -> None:
    program = kernels(written(BYTES))
    (kernel,) = program.kernels.values()
    schedule = parse("output").schedule_of(kernel.nest, AVX2)
    text = stage_text(program, "vector", AVX2, script=schedule)
    assert "arith.extsi" in text and "vector<8xi32>" in text


ROW = Case((1, 40), (1, 3), 8, kind=DEPTHWISE)


def test_weights_and_a_moving_window_stay() -> None:
    """Each step reads one vector; the others come from the steps before."""
    check_text(
        code(ROW, "output; weight 3; input 2"),
        """
    CHECK-COUNT-3: vector.load %arg1
    CHECK-COUNT-2: vector.load %arg0
    CHECK: scf.for {{.*}} step %c2 iter_args(
    CHECK-NOT: load
    CHECK-COUNT-2: vector.fma
    CHECK: [[ONE:%.*]] = vector.load %arg0
    CHECK-NEXT: vector.fma [[ONE]], %2
    CHECK: vector.store
    CHECK-NOT: load
    CHECK: vector.fma
    CHECK: vector.fma [[ONE]], %1
    CHECK: [[OTHER:%.*]] = vector.load %arg0
    CHECK: vector.fma [[OTHER]], %2
    CHECK: vector.store
    CHECK-NOT: load
    CHECK: scf.yield [[ONE]], [[OTHER]]
    """,
    )


def test_sums_move_with_an_input_that_stays() -> None:
    """A step reads an input once; one of three sums is complete behind it."""
    check_text(
        code(ROW, "input; weight 3; output 2; unroll 1"),
        """
    CHECK: scf.for {{.*}} iter_args(
    CHECK: vector.load %arg0
    CHECK-NOT: vector.load %arg1
    CHECK: vector.fma
    CHECK: vector.store
    CHECK-COUNT-2: vector.fma
    CHECK-NOT: vector.store
    CHECK: scf.yield
    """,
    )


def test_a_weight_stays_for_all_points() -> None:
    """The first results stay through all weights, the others come and go."""
    check_text(
        code(ROW, "weight; output 2"),
        """
    CHECK: vector.load %arg1
    CHECK-COUNT-2: vector.fma
    CHECK: scf.for
    CHECK-NOT: vector.load %arg1
    CHECK: vector.fma
    CHECK: vector.store
    CHECK: }
    CHECK-NOT: vector.store
    CHECK: vector.load %arg1
    CHECK: scf.for
    """,
    )


@pytest.mark.parametrize(
    ("target", "multiply"),
    [("x86-64-v4", "zmm"), ("neoverse-v1", "fmla"), ("aarch64", "fmla")],
)
def test_code_for_other_targets(target: str, multiply: str) -> None:
    case = Case((6, 30), (3, 3), 2, 64)
    text = code(case, "output; weight 4; input 2", "asm", target)
    assert multiply in text


def test_scalable_vectors() -> None:
    for flow in FLOWS:
        assert "vector<[4]xf32>" in code(ROW, flow, target="neoverse-v1")


# ---- the word ------------------------------------------------------------------------


STAGE = (Vectorize("made", "f", Lanes(8)), Reorder("made", ("c", "f", "y", "x")))


def stays(*words: object, **changed: object) -> Schedule:
    given = {"anchor": 2, "points": ("y", "x"), "sums": ("r0", "r1"), **changed}
    word = Stationary("made", **given)  # type: ignore[arg-type] - wrong ones are what is tested
    return Schedule((*(words or STAGE), word))  # type: ignore[arg-type] - wrong ones are what is tested


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        (stays(anchor=3), "operands count from 0 to 2, the result"),
        (stays(resident=((2, 1),)), "kept names an operand twice, or the anchor"),
        (stays(resident=((1, 0),)), "a number of vectors is 0: a number from 1 on"),
        (stays(points=()), "points is (): a loop to go along is wanted"),
        (stays(points=("y", "r0")), "r0 is one of points, and is summed over"),
        (stays(sums=("x",)), "x is one of sums, and is no sum"),
        (stays(sums=("r0",)), "the loop r1 runs inside of them"),
        (stays(Reorder("made", ("c", "f", "y"))), "made has no single vectors yet"),
        (stays(*STAGE[:1]), "the loop f runs inside of them"),
        (stays(unroll=200), "1800 points behind each other, 1024 at most"),
    ],
)
def test_refusals(schedule: Schedule, reason: str) -> None:
    (kernel,) = kernels(Case((9, 14), (3, 3)).written()).kernels.values()
    with pytest.raises(Error) as caught:
        schedule.apply(kernel.nest)
    assert reason in str(caught.value)


def test_an_anchor_is_read_forward() -> None:
    """A window that is turned around, as gradients have it: image[x - r + 2]."""
    (kernel,) = kernels(Case((40,), (3,), 8, kind=DEPTHWISE).written()).kernels.values()
    stage = kernel.nest.stage("made")
    image, weights = stage.reads
    turned = Index((("x", 1), ("r0", -1)), 2)
    reads = replace(image, indices=(turned, image.indices[1])), weights
    backward = replace(stage, reads=reads)
    stages = tuple(backward if s == stage else s for s in kernel.nest.stages)
    nest = replace(kernel.nest, stages=stages)
    words = Vectorize("made", "c", Lanes(8)), Reorder("made", ("c", "x", "r0"))
    word = Stationary("made", 2, ("x",), ("r0",))
    assert Schedule((*words, word)).apply(nest)
    with pytest.raises(Error, match="arg0 is not read forward along one axis"):
        Schedule((*words, replace(word, anchor=0))).apply(nest)


def test_a_script_is_looked_at_as_well() -> None:
    """Where no word has been before."""
    program = kernels(ROW.written())
    (kernel,) = program.kernels.values()
    script = parse("output").schedule_of(kernel.nest, AVX2).to_transform(kernel.nest)
    for before, behind, reason in (
        ("anchor = 2", "anchor = 3", "operands count from 0 to 2"),
        ("points = [0", "points = [2", "parallel ones are wanted"),
        ("unroll = 1", "unroll = 9999", "points behind each other, 4096 at most"),
    ):
        edited = script.replace(before, behind)
        assert edited != script
        with pytest.raises(Error, match=reason):
            stage_text(program, "vector", AVX2, script=edited)


def test_its_loops_take_no_more_words() -> None:
    (kernel,) = kernels(Case((9, 14), (3, 3)).written()).kernels.values()
    made = stays().apply(kernel.nest)
    with pytest.raises(Error, match="y, x, r0, r1 of made are one block already"):
        UnrollAndJam("made", "x", 2).apply(made)


def test_it_prints() -> None:
    (kernel,) = kernels(Case((9, 14), (3, 3)).written()).kernels.values()
    text = str(stays(anchor=1, resident=((2, 4),)).apply(kernel.nest))
    assert text.endswith(
        """\
for c in 0..3 (sum):
  for f in 0..3 by 8:
    unrolled r0 in 0..3 (sum):
      unrolled r1 in 0..3 (sum):
        for y in 0..7:
          for x in 0..12:
            vector fv in 0..8 (f):
              made: made[y, x, f] <- arg0[y + r0, x + r1, c], arg1[r0, r1, c, f] by \
arg1 stationary, 4 of made in registers"""
    )
