"""What a schedule's loops are predicted to cost, from the scheduled nest alone.

The unit is that of register tiles: cycles for the least that the work can take on the
target's ports, 1 at best.  Three limits of each innermost loop are looked at:
arithmetic, loads and stores, and the latency of the chains of a sum; what points side
by side share is loaded once.  Of memory nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from types import MappingProxyType

from nanoloom.nest.contraction import bits
from nanoloom.nest.extent import Extent, Lanes
from nanoloom.nest.footprint import footprint
from nanoloom.nest.index import Access
from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.reduction import KEEPS_NAN, NO_WORK
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import number
from nanoloom.schedule.families import FAMILIES
from nanoloom.schedule.inner_loops import at_tile
from nanoloom.schedule.register_tile import limits
from nanoloom.target.facts import Target

LIMITS = "arithmetic", "loads", "stores", "latency"
FUNCTION = 16  # operations that a function (exp, tanh) is worth
NO_KERNELS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Work:
    """cycles: predicted of a stage.  least: that it takes at any rate.  limit: the port
    that it waits for, or latency."""

    cycles: float
    least: float
    limit: str = ""


def predicted(
    nest: LoopNest, target: Target, kernels: Mapping[str, float] = NO_KERNELS
) -> float:
    """Cycles of a scheduled nest for the least work that there is, 1 at best.

    kernels: of stages that nanokernels compute, the cost of their register tiles.
    """
    found = [work(nest, s, target, kernels.get(s.name)) for s in nest.stages]
    least = sum(each.least for each in found)
    return sum(each.cycles for each in found) / least if least else 1.0


def work(
    nest: LoopNest, stage: Statement, target: Target, known: float | None = None
) -> Work:
    """Of one stage.  known: its cost for the least, where that is predicted already."""
    placement, unit = nest.placement(stage.name), target.vector
    points = prod(map(number, stage.extents))
    arithmetic = operations(stage, target) / (unit.alu_per_cycle or unit.fma_per_cycle)
    if stage.is_contraction:
        arithmetic = max(arithmetic, 1 / unit.fma_per_cycle)
    written = prod(number(a.extent) for a in stage.axes if not a.is_reduction)
    store = written / points / unit.store_per_cycle
    made = [write.buffer for write in stage.writes]
    kept = in_registers(nest)
    stores = store * len([buffer for buffer in made if buffer not in kept])
    needed = store * len([buffer for buffer in made if buffer in nest.results])
    lanes = target.lanes(max(8, min(64, bits(stage.writes[0].element))))
    most = max(arithmetic, distinct(nest, stage) / unit.load_per_cycle, needed)
    least = most * points / lanes
    if known is not None:
        return Work(known * least, least, limit_of(placement, target))
    vectors = [x for x in placement.loops if isinstance(x.trips, Lanes)]
    if not vectors:  # a number at a time
        loads = len(stage.reads) / unit.load_per_cycle
        waits = unit.fma_latency / side_by_side(placement) if stage.is_reduction else 0
        cycles, limit = largest(arithmetic, loads, stores, waits)
        return Work(points * cycles, least, limit)
    along = vectors[0]
    width = number(along.trips)
    registers = max(1, width / lanes)  # of a vector
    sums = side_by_side(placement) * along.chains * registers
    waits = unit.fma_latency / sums if stage.is_reduction else 0
    held = sums + 2 - unit.registers  # and one of each operand: others are spilled
    spilled = max(0, held) / sums * (1 / unit.load_per_cycle + 1 / unit.store_per_cycle)
    loads = (
        loaded(stage, placement, along, kept)
        + gathered(stage, along, width) / registers
    )
    loads /= unit.load_per_cycle
    cycles, limit = largest(arithmetic, loads, stores, waits)
    cycles += spilled
    extent = number(next(a.extent for a in stage.axes if a.name == along.axis))
    whole = -(-extent // width) * width / extent  # with lanes that do not count
    return Work(cycles * whole * points / lanes, least, limit)


def largest(
    arithmetic: float, loads: float, stores: float, latency: float
) -> tuple[float, str]:
    """The most cycles of these, and what they are of."""
    found = zip((arithmetic, loads, stores, latency), LIMITS, strict=True)
    return max(found, key=lambda each: each[0])


def limit_of(placement: Placement, target: Target) -> str:
    """What a register tile waits for; "" of other code."""
    code = placement.by
    if code is None or code.family not in FAMILIES:
        return ""
    family = FAMILIES[code.family]
    if family.tiles:
        return LIMITS[0]
    step = family.cost if code.packed else family.flat_cost or family.cost
    found = limits(code.rows, code.vectors, code.rows, target.vector, step)
    return max(found, key=lambda name: found[name])


def operations(stage: Statement, target: Target) -> float:
    """Instructions of arithmetic for a vector of points.

    Of a pad it is one, a choice: where it reads is known for all of a row.
    """
    if stage.inside is not None:
        return 1
    found = [name for name in stage.body if name not in NO_WORK]
    count = sum(FUNCTION if name.startswith("math.") else 1 for name in found)
    if not target.isa.keeps_nan:
        count += sum(2 for name in found if name in KEEPS_NAN)
    floats = any(name.endswith("mulf") for name in found)
    return count - (stage.is_contraction and floats and target.fuses)


def in_registers(nest: LoopNest) -> set[str]:
    """The buffers that are in no memory: of stages at the tile that reads them, and of
    the numbers that sums start from."""
    kept = {
        write.buffer
        for stage in nest.stages
        if at_tile(nest, stage)
        for write in stage.writes
    }
    return kept | {
        name
        for stage in nest.stages
        for name in stage.begins
        if name and (writer := nest.writer(name)) and not writer.reads
    }


def distinct(nest: LoopNest, stage: Statement) -> float:
    """Numbers of the kernel's arguments that are read once at least, for each point."""
    sizes: dict[str, Extent] = {axis.name: axis.extent for axis in stage.axes}
    most: dict[str, int] = {}
    for read in stage.reads:
        if nest.writer(read.buffer):
            continue
        each = (number(footprint(x, sizes, 10**12)) for x in read.indices)
        most[read.buffer] = max(most.get(read.buffer, 1), prod(each))
    points = prod(map(number, stage.extents))
    return sum(min(1, count / points) for count in most.values())


def side_by_side(placement: Placement) -> int:
    """Points whose results are in registers together."""
    return prod(number(loop.trips) for loop in beside(placement))


def beside(placement: Placement) -> list[Loop]:
    """The loops over points side by side, but for the lanes of a vector."""
    return [
        loop
        for loop in placement.loops
        if not loop.is_reduction
        and (loop.how is How.UNROLLED or loop.how is How.VECTOR)
        and not isinstance(loop.trips, Lanes)
    ]


def loaded(
    stage: Statement, placement: Placement, along: Loop, kept: Collection[str]
) -> float:
    """Loads for a vector of points: each place of a buffer once for all of a tile."""
    points = beside(placement)
    inner = [x.axis for x in placement.loops if x.how is How.SERIAL][-1:]
    moving = {along.axis, *inner, *(x.axis for x in points)}
    places = {
        place_of(read, points, at)
        for read in stage.reads
        if read.axes & moving and read.buffer not in kept
        for at in product(*(range(number(x.trips)) for x in points))
    }
    return len(places) / max(1, side_by_side(placement))


def place_of(
    read: Access, points: list[Loop], at: tuple[int, ...]
) -> tuple[object, ...]:
    """Where one point of a tile reads, beside what all its points have."""
    moved: list[object] = [read.buffer]
    for index in read.indices:
        steps = zip(points, at, strict=True)
        beside = sum((index.factor(x.axis) or 0) * x.step * n for x, n in steps)
        moved.append((index.terms, index.other, index.offset + beside))
    return tuple(moved)


def gathered(stage: Statement, along: Loop, width: int) -> int:
    """Loads of single numbers more, where an operand does not lie along the vectors."""
    return sum(width for read in stage.reads if not is_vector(read, along.axis))


def is_vector(read: Access, axis: str) -> bool:
    """Whether lanes along an axis are one number, or lie side by side."""
    using = [index for index in read.indices if axis in index.axes]
    last = using == [read.indices[-1]] if using else True
    return last and (not using or using[0].factor(axis) == 1)
