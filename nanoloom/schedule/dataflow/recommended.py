"""The dataflow that the paper recommends for any layer (Algorithm 8), and others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.dataflow.dataflow import KINDS, Dataflow
from nanoloom.schedule.dataflow.layer import Layer, layer_of
from nanoloom.schedule.language import Schedule
from nanoloom.target.facts import Target


def recommended(nest: LoopNest, target: Target, registers: int = 1) -> Dataflow:
    """Outputs stay; what registers are left are the weights', then the inputs'.

    registers: of a vector variable.  Raises Error where the kernel has no product that
    dataflows know.
    """
    return filled("output", ("weight", "input"), layer_of(nest), target, registers)


def filled(
    anchor: str, order: tuple[str, ...], layer: Layer, target: Target, registers: int
) -> Dataflow:
    """An anchor, and as many variables as there is use for, in this order."""
    left = target.vector.registers // registers - len(KINDS)
    kept: list[tuple[str, int]] = []
    for operand in order:
        count = min(left, most_of(anchor, operand, layer))
        if count > 0:
            kept.append((operand, count))
            left -= count
    return Dataflow(anchor, tuple(kept), registers)


def most_of(anchor: str, operand: str, layer: Layer) -> int:
    """How many vector variables of an operand are used again at all."""
    window = layer.steps(anchor)
    number = layer.operands[operand]
    if window.stays_still:
        return layer.outputs
    taps = window.in_order(window.taps(layer.extents(layer.window)))
    if not window.moves(number):
        return len({window.place(number, tap) for tap in taps})
    everything = window.links(taps, number, len(taps))
    used = [0] * len(taps)
    for link in everything:
        for gap in range(link.begin, link.begin + link.length(len(taps))):
            used[gap % len(taps)] += 1
    return max(used, default=0)


def candidates(
    nest: LoopNest, target: Target, registers: int = 1
) -> Iterator[Dataflow]:
    """The three basic dataflows, and each with its registers filled in both orders."""
    layer = layer_of(nest)
    made: list[Dataflow] = []
    for anchor in KINDS:
        made.append(Dataflow(anchor, registers=registers))
        one, other = (name for name in KINDS if name != anchor)
        for order in ((one,), (other,), (one, other), (other, one)):
            made.append(filled(anchor, order, layer, target, registers))
    return iter(dict.fromkeys(made))


@dataclass(frozen=True)
class Recommended:
    """The recommended dataflow, whichever kernel it is for."""

    registers: int = 1

    def schedule_of(self, nest: LoopNest, target: Target) -> Schedule:
        """Raises Error as `recommended` does."""
        return recommended(nest, target, self.registers).schedule_of(nest, target)
