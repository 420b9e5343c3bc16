"""What a dataflow reads and writes: counted, and as the paper's Table I says.

Both for one block of channels and one vector of filters: the block of code that
Stationary makes, once.  A vector variable is read or written whole, as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from nanoloom.nest.register_residency import residency
from nanoloom.nest.reuse import Place, moved
from nanoloom.nest.taps import Tap, Window
from nanoloom.schedule.dataflow.dataflow import Dataflow
from nanoloom.schedule.dataflow.layer import Layer

Key = tuple[int, Place]


@dataclass(frozen=True)
class Traffic:
    """Vector variables that come from memory, and that go there."""

    reads: int = 0
    writes: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.reads + other.reads, self.writes + other.writes)

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.reads - other.reads, self.writes - other.writes)

    def __mul__(self, count: int) -> Traffic:
        return Traffic(count * self.reads, count * self.writes)


def traffic(flow: Dataflow, layer: Layer) -> Traffic:
    """All that the block of code of a dataflow reads and writes.

    Results are read where they are added to later, too: not with an output that stays,
    which begins with zeros for each block.
    """
    window = layer.steps(flow.anchor)
    kept = {layer.operands[name]: count for name, count in flow.resident}
    sums, extents = layer.extents(layer.window), layer.extents(layer.pixels)
    if window.stays_still:
        return outside(window, kept, sums, extents)
    taps = window.taps(sums)
    still: set[Key] = set()
    for operand, count in kept.items():
        if operand != window.result and not window.moves(operand):
            places = dict.fromkeys((operand, window.place(operand, t)) for t in taps)
            still |= set(list(places)[:count])
    counted = Counted(window, {**kept, window.anchor: 1}, still, extents)
    return Traffic(reads=len(still)) + counted.rows(taps, 0)


def saved(flow: Dataflow, layer: Layer) -> Traffic:
    """What the vector variables that a dataflow keeps spare the basic one."""
    return traffic(Dataflow(flow.anchor), layer) - traffic(flow, layer)


def outside(
    window: Window, kept: Mapping[int, int], sums: list[int], extents: list[int]
) -> Traffic:
    """With an anchor that all points share: the first use of what stays is read, and
    the last one written."""
    steps, points = prod(sums), prod(extents)
    again = Traffic()
    for (operand, _), uses in residency(window, sums, extents, kept).keys.items():
        again += Traffic(uses - 1, uses - 1 if operand == window.result else 0)
    return Traffic(steps + 2 * steps * points, steps * points) - again


@dataclass
class Counted:
    """The loops of a block of code, walked without any code.

    still: what is read in front of them.  extents: of the window's points.
    """

    window: Window
    kept: Mapping[int, int]
    still: set[Key]
    extents: list[int]

    def rows(self, taps: list[Tap], level: int) -> Traffic:
        """As the loops around the innermost one go
        (vector/stationary/output_stationary.py).
        """
        if level == len(self.extents) - 1:
            return self.sweep(self.window.in_order(taps))
        total, extent = Traffic(), self.extents[level]
        for group in self.window.groups(taps, level):
            backs = sorted({-tap.points[level] for tap in group})
            whole = max(0, extent - (backs[-1] - backs[0]))
            total += self.rows(group, level + 1) * whole
            for back in backs:
                here = [tap for tap in group if -tap.points[level] == back]
                if extent > whole:
                    total += self.rows(here, level + 1) * (extent - whole)
        return total

    def sweep(self, taps: list[Tap]) -> Traffic:
        """All steps of the innermost loop."""
        result, extent = self.window.result, self.extents[-1]
        keep = self.keep(taps)
        begins = 0 if self.window.anchor == result else 1
        held: set[Key] = set()
        reads = writes = 0
        for at in range(extent + max(-tap.points[-1] for tap in taps)):
            for number, tap in enumerate(taps):
                if not 0 <= at + tap.points[-1] < extent:
                    continue
                keys = [(n, self.window.place(n, tap)) for n in range(result + 1)]
                missing = [k for k in keys if k not in held and k not in self.still]
                reads += sum(begins if k[0] == result else 1 for k in missing)
                held -= set(keys)
                held |= {key for key in keys if key[0] in keep[number]}
                writes += result not in keep[number]
            held = set(self.advanced(held))
        return Traffic(reads, writes + sum(key[0] == result for key in held))

    def keep(self, taps: list[Tap]) -> list[set[int]]:
        """Of each tap the operands that are used again."""
        found: list[set[int]] = [set() for _ in taps]
        for operand, count in self.kept.items():
            if self.window.moves(operand):
                for link in self.window.links(taps, operand, count):
                    found[link.begin].add(operand)
        return found

    def advanced(self, held: Iterable[Key]) -> Iterable[Key]:
        """What is held, from where the next step is."""
        last = self.window.points[-1]
        for operand, place in held:
            yield operand, moved(place, self.window.factors[operand][last], -1)


# ---- Table I -------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """Of one block of channels and one filter, in vector variables.

    filter: its height and width; inputs, outputs: those of the images; stride.
    """

    filter: tuple[int, int]
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    stride: int = 1


def table_one(anchor: str, operand: str, number: int, sizes: Sizes) -> Traffic:
    """What the `number`th vector variable of an operand spares, by the paper's Table I.

    Edges are left out in it.  Of inputs that move under an output only (fw - s) * fh
    are used again (section IV-A): there is no more to spare.  Of an anchor that is not
    in the table, or a number behind its last row: nothing.
    """
    high, wide = sizes.filter
    match anchor, operand:
        case "output", "weight":
            rows = [(high * wide, Traffic(prod(sizes.outputs)))]
        case "output", "input":
            again = (wide - sizes.stride) * high
            rows = [(again, Traffic(prod(sizes.outputs)))]
        case "weight", "input":
            rows = [(prod(sizes.inputs), Traffic(high * wide))]
        case "weight", "output":
            rows = [(prod(sizes.outputs), Traffic(high * wide, high * wide))]
        case "input", "weight":
            rows = weights_of_inputs(sizes)
        case "input", "output":
            rows = [(most, Traffic(n, n)) for most, n in outputs_of_inputs(sizes)]
        case _:
            rows = []
    return next((found for most, found in rows if number <= most), Traffic())


def weights_of_inputs(sizes: Sizes) -> list[tuple[int, Traffic]]:
    """The table's rows for weights that are kept under an input."""
    (high, wide), stride, inputs = sizes.filter, sizes.stride, prod(sizes.inputs)
    if stride == 1:
        return [(high * wide, Traffic(inputs))]
    return [
        (wide, Traffic(inputs // stride)),
        (2 * wide, Traffic(inputs // ((wide - stride) * stride))),
    ]


def outputs_of_inputs(sizes: Sizes) -> list[tuple[int, int]]:
    """The table's rows for outputs that are kept under an input."""
    (high, wide), stride, inputs = sizes.filter, sizes.stride, prod(sizes.inputs)
    if stride == 1:
        return [(high * wide, inputs)]
    rows, one = sizes.inputs[0], inputs + inputs // wide
    more = rows * (wide - stride - 1) // stride
    return [
        (1, one),
        (2, rows * one // (wide - stride) + more),
        (
            3 + wide - stride,
            (high - stride) * (wide - stride) * inputs // (high * wide),
        ),
    ]
