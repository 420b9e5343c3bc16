"""The words of schedules that make a kernel by a dataflow.

for task (rows of pixels):
    for groups: for channels: for vector of filters:      (their order is said)
        the block of pixels and window, what stays first: Stationary
"""

from __future__ import annotations

from math import lcm, prod

from nanoloom.nest.extent import Lanes
from nanoloom.nest.granularity import FEWEST_TASKS, JAMMED, MOST_WRITTEN
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.dataflow.dataflow import Dataflow
from nanoloom.schedule.dataflow.layer import Layer, layer_of
from nanoloom.schedule.directives.stationary import MOST_BODIES
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Parallel,
    Reorder,
    Schedule,
    Stationary,
    StoreAt,
    Vectorize,
)
from nanoloom.schedule.library.decisions import with_decisions
from nanoloom.schedule.library.vectors import is_scalable, vectors, width
from nanoloom.target.facts import Target


def schedule_dataflow(flow: Dataflow, nest: LoopNest, target: Target) -> Schedule:
    """Raises Error where the kernel has no product that dataflows know."""
    layer = layer_of(nest)
    others = [s for s in nest.stages if s != layer.stage]
    tasks = tasks_of(flow, layer, nest)
    pads = tuple(StoreAt(pad.name, "task") for pad in nest.pads) if tasks else ()
    words = (
        *tasks,
        *pads,
        *vectors(others, target),
        *product(flow, layer, target),
    )
    return with_decisions(Schedule(words, f"dataflow {flow}"), nest, target)


def product(flow: Dataflow, layer: Layer, target: Target) -> tuple[Directive, ...]:
    """The words for the product itself."""
    stage, operands = layer.stage, layer.operands
    loops = {
        "groups": layer.groups,
        "channels": layer.channels,
        "filters": layer.filters,
    }
    outer = {name: list(axes) for name, axes in loops.items()}
    outer[of_vectors(layer)].append(layer.vectors)
    order = [axis for name in flow.order for axis in outer[name]]
    kept = tuple((operands[name], count) for name, count in flow.resident)
    points = flow.unroll * layer.taps
    if points > MOST_BODIES:
        flow.refuse(
            f"unroll {flow.unroll} of {layer.taps} taps are {points} points behind each"
            f" other, {MOST_BODIES} at most"
        )
    return (
        Vectorize(stage.name, layer.vectors, lanes(flow, layer, target)),
        Reorder(stage.name, (*order, *layer.pixels, *layer.window)),
        Stationary(
            stage.name,
            operands[flow.anchor],
            layer.pixels,
            layer.window,
            kept,
            flow.unroll or interleaved_steps(flow, layer),
        ),
    )


def of_vectors(layer: Layer) -> str:
    """Which of the loops outside the vectors are of."""
    axis = layer.stage.axis(layer.vectors)
    if axis is not None and axis.is_reduction:
        return "channels"
    weights = layer.stage.reads[layer.weight]
    return "filters" if layer.vectors in weights.axes else "groups"


def lanes(flow: Dataflow, layer: Layer, target: Target) -> Lanes:
    """Of a vector variable: full registers of the numbers that fill a lane."""
    place = layer.stage.place(layer.vectors)
    count = flow.registers * target.lanes(max(8, min(layer.bits(target), 64)))
    return width(count, is_scalable(layer.stage, place, target))


def interleaved_steps(flow: Dataflow, layer: Layer) -> int:
    """Steps behind each other, so that what is carried on stays where it is.

    As Algorithm 4: the least common multiple of how many steps numbers stay.
    """
    window = layer.steps(flow.anchor)
    if window.stays_still:
        return 1
    taps = window.in_order(
        window.groups(window.taps(layer.extents(layer.window)), 0)[0]
    )
    found = 1
    for name, count in flow.resident:
        operand = layer.operands[name]
        if window.moves(operand):
            ahead = [x for x in window.links(taps, operand, count) if x.ahead]
            following = {link.begin: link.end for link in ahead}
            for begin in following:
                at, steps = begin, 0
                while at in following and steps < len(taps):
                    at, steps = following[at], steps + 1
                found = lcm(found, steps)
    return found if found * len(taps) <= min(MOST_BODIES, MOST_WRITTEN) else 1


def tasks_of(flow: Dataflow, layer: Layer, nest: LoopNest) -> tuple[Directive, ...]:
    """Tasks of some rows of pixels; one, where nothing is cut.

    The innermost axis of pixels is whole: what stays moves along it.
    """
    last = nest.last
    if last is None or len(layer.pixels) < 2:
        return ()
    axes = list(layer.pixels[:-1])
    sizes = dict(zip(axes, flow.block or usual(flow, layer), strict=False))
    names = same_axes(layer.stage, last)
    cut = [sizes.get(names.get(axis, ""), 0) for axis in last.names]
    while cut and not cut[-1]:
        cut.pop()
    return (Parallel(last.name, tuple(cut), ALL),) if cut else ()


def usual(flow: Dataflow, layer: Layer) -> tuple[int, ...]:
    """All pixels for weights that stay, else some rows."""
    *outer, rows = layer.extents(layer.pixels[:-1])
    if flow.anchor == "weight":
        return ()
    tasks = max(1, 2 * FEWEST_TASKS // prod(outer))
    return (*(1 for _ in outer), min(rows, max(JAMMED, -(-rows // tasks))))


def same_axes(stage: Statement, last: Statement) -> dict[str, str]:
    """The axes of a product, by the axes of a stage that go over the same points."""
    written = stage.writes[0].plain
    if stage == last:
        return {name: name for name in stage.names}
    extents = [axis.extent for name in written if name and (axis := stage.axis(name))]
    if list(last.extents) != extents or len(extents) != len(written):
        return {}
    return {a: b for a, b in zip(last.names, written, strict=True) if b}
