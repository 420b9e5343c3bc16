"""Measurements of "YFlows: Systematic Dataflow Exploration and Code Generation".

Figure 2, the basic dataflows; Figure 7, the best extended ones beside the basic ones
(a) and beside each other (b); and the paper's findings 1 to 5, with one thread, in f32
and in int8.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from nanoloom.compiler import Report, partition_model
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.schedule.dataflow.dataflow import KINDS, Dataflow
from nanoloom.schedule.dataflow.recommended import candidates
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce.flow_layers import (
    ELEMENTS,
    F32_NUMBERS,
    INT8,
    FlowLayer,
    written,
)
from nanoloom_papers.reproduce.flow_search import Ranked, search, searchers

Say = Callable[[str, int, int], None]
FILTERS, SIZES, COUNTS = (3, 4, 5), (56, 112), (128, 256, 512)
STRIDES, REGISTERS = (1, 2), (1, 2, 4)
ROUNDS, QUICK_ROUNDS = 5, 2
SECONDS = 1.0  # of the rounds of a layer: none behind the second begins later
BITS = {F32_NUMBERS: 32, INT8: 8}
ALIKE, OF_CASES = 0.06, 0.5  # findings 3 and 2: within 6 %, of most cases


@dataclass(frozen=True)
class Row:
    """A layer, and all dataflows that were tried, the fastest first."""

    layer: FlowLayer
    ranked: tuple[Ranked, ...]

    def seconds(self, flow: Dataflow) -> float | None:
        return next((x.seconds for x in self.ranked if x.flow == flow), None)

    def basic(self, anchor: str) -> float | None:
        """Of the dataflow that keeps nothing but its anchor."""
        return self.seconds(Dataflow(anchor, registers=self.layer.registers))

    def best(self, anchor: str) -> float | None:
        """Of the fastest dataflow of an anchor."""
        own = [x.seconds for x in self.ranked if x.flow.anchor == anchor]
        return min((x for x in own if x is not None), default=None)

    def first(self, anchor: str, operand: str) -> float | None:
        """Of the fastest one that gives its registers to an operand first."""
        own = [
            x.seconds
            for x in self.ranked
            if x.flow.anchor == anchor
            and x.flow.resident
            and x.flow.resident[0][0] == operand
        ]
        return min((x for x in own if x is not None), default=None)


def layers(target: Target, *, quick: bool) -> list[FlowLayer]:
    """The paper's, with vector variables of this machine's registers."""
    lanes = {element: target.lanes(BITS[element]) for element in ELEMENTS}
    shapes = product(STRIDES, REGISTERS, FILTERS, SIZES, COUNTS)
    if quick:
        shapes = ((s, r, 3, 14, 5) for s, r in ((1, 1), (2, 1), (1, 2)))
    return [
        FlowLayer(f, i, n, s, r, r * lanes[element], element)
        for s, r, f, i, n in shapes
        for element in ELEMENTS
    ]


def run(
    target: Target, say: Say, *, quick: bool, done: Sequence[Row] = ()
) -> Iterator[Row]:
    """Every layer: checked with float64, then timed in turns.  done: rows of an earlier
    run, which are given as they are."""
    chosen = layers(target, quick=quick)
    known = {row.layer: row for row in done}
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        searchers(Path(scratch)) as company,
    ):
        for number, layer in enumerate(chosen):
            if layer in known:
                yield known[layer]
                continue
            say(layer.name, number, len(chosen))
            flows = tried(layer, target)
            try:
                found = search(
                    layer,
                    flows,
                    target,
                    rounds=rounds,
                    longest=SECONDS,
                    company=company,
                )
            except Error as error:
                found = tuple(Ranked(flow, None, str(error)) for flow in flows)
            yield Row(layer, found)


def tried(layer: FlowLayer, target: Target) -> list[Dataflow]:
    """The basic dataflows, and those that fill all registers."""
    program = partition_model(written(layer), CompileOptions(target), Report())
    (kernel,) = program.kernels.values()
    return list(candidates(kernel.nest, target, layer.registers))


# ---- the findings --------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What the paper finds, the figures here, and whether it holds here; None where
    nothing was measured."""

    number: int
    what: str
    here: str
    holds: bool | None
    element: str = F32_NUMBERS


def findings(rows: Sequence[Row]) -> list[Finding]:
    """The paper's five, of each element type; as there, of layers with stride 1."""
    found = (
        first_finding,
        second_finding,
        third_finding,
        fourth_finding,
        fifth_finding,
    )
    made: list[Finding] = []
    for element in dict.fromkeys(row.layer.element for row in rows) or (F32_NUMBERS,):
        near = [
            row
            for row in rows
            if row.layer.stride == 1 and row.layer.element == element
        ]
        made += [replace(each(near), element=element) for each in found]
    return made


def first_finding(rows: Sequence[Row]) -> Finding:
    gains = {anchor: middle(gain(row, anchor) for row in rows) for anchor in KINDS}
    times = {anchor: middle(to_output(row, anchor) for row in rows) for anchor in KINDS}
    what = "weight-anchored dataflows gain least from what else stays, and are slowest"
    told = "; ".join(
        f"{anchor} {shown(gains[anchor])} times as fast as basic, "
        f"{shown(times[anchor])} of output's time"
        for anchor in KINDS
    )
    holds = None
    if None not in (*gains.values(), *times.values()):
        least = min(gains, key=lambda x: gains[x] or 0.0)
        slowest = max(times, key=lambda x: times[x] or 0.0)
        holds = (least, slowest) == ("weight", "weight")
    return Finding(1, what, told, holds)


def second_finding(rows: Sequence[Row]) -> Finding:
    found = [x for row in rows if (x := to_output(row, "input")) is not None]
    part = sum(x > 1 for x in found) / len(found) if found else None
    what = "outputs as the anchor are faster than inputs in most cases"
    told = f"{shown(part)} of the cases, {shown(middle(found))} times at the median"
    return Finding(2, what, told, None if part is None else part > OF_CASES)


def third_finding(rows: Sequence[Row]) -> Finding:
    found = middle(ordered(row, "output", "input", "weight") for row in rows)
    what = "under outputs it does not matter whether inputs or weights come first"
    told = f"weights first are {shown(found)} times as fast as inputs first"
    return Finding(3, what, told, None if found is None else abs(found - 1) <= ALIKE)


def fourth_finding(rows: Sequence[Row]) -> Finding:
    found = middle(ordered(row, "input", "weight", "output") for row in rows)
    what = "under inputs it is better to give registers to outputs first"
    told = f"outputs first are {shown(found)} times as fast as weights first"
    return Finding(4, what, told, None if found is None else found > 1)


def fifth_finding(rows: Sequence[Row]) -> Finding:
    found = middle(ordered(row, "weight", "input", "output") for row in rows)
    what = "under weights outputs first are slightly better than inputs first"
    told = f"outputs first are {shown(found)} times as fast as inputs first"
    holds = None if found is None else 1 <= found <= 1 + ALIKE
    return Finding(5, what, told, holds)


def gain(row: Row, anchor: str) -> float | None:
    """How many times as fast the best extended dataflow is as the basic one (7a)."""
    return ratio(row.basic(anchor), row.best(anchor))


def to_output(row: Row, anchor: str) -> float | None:
    """The time of the best one of an anchor, of the best one of outputs (7b)."""
    return ratio(row.best(anchor), row.best("output"))


def to_basic_output(row: Row, anchor: str) -> float | None:
    """The time of a basic dataflow, of outputs' (Figure 2)."""
    return ratio(row.basic(anchor), row.basic("output"))


def ordered(row: Row, anchor: str, one: str, other: str) -> float | None:
    """How many times as fast it is to give registers to the other one first."""
    return ratio(row.first(anchor, one), row.first(anchor, other))


def ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def middle(values: Iterator[float | None] | Sequence[float]) -> float | None:
    """The median of those that there are."""
    found = [x for x in values if x is not None]
    return statistics.median(found) if found else None


def shown(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"
