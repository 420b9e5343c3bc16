"""Operators along axes whose sizes are known at run time, and what they require.

Each operator was looked at: does its lowering do the same for every size?  Those that
are not named here stop a model whose sizes reach them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import onnx_ir as ir

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.dynamic_slices import cut, require_floor
from nanoloom.dynamic.dynamic_windows import windows_of
from nanoloom.dynamic.fit_floors import Samples
from nanoloom.dynamic.sample_walk import Visit
from nanoloom.dynamic.visited_numbers import (
    Limits,
    attribute,
    is_alike,
    less,
    numbers,
    rank,
    sizes,
)
from nanoloom.graph.conditions import keeps_running
from nanoloom.graph.data_dependent.trips import TRIPS
from nanoloom.graph.operator_families import ELEMENTWISE, REDUCTIONS
from nanoloom.graph.operator_spec import Sizes
from nanoloom.graph.operator_specs import named

Rule = Callable[[Sequence[Visit], Set[str], Samples], Limits]

# Each element from those at its place, whole axes, or only moved: for any sizes.
ANY = ELEMENTWISE | REDUCTIONS | named(lambda spec: spec.sizes is Sizes.ANY)


def limits(visits: Sequence[Visit], kept: Set[str], samples: Samples) -> Limits:
    """What may not be below 0 for an operator; raises Differs where that is unknown.

    kept: constants that are computed when the program runs.  samples: may get floors.
    """
    first = visits[0]
    if first.operator in ANY:
        return []
    if (rule := RULES.get(first.operator)) is None:
        raise NotDynamic(f"{first.name} is compiled for known sizes only")
    try:
        return rule(visits, kept, samples)
    except NotDynamic as reason:
        where = f"{first.name}: {reason}"
        raise NotDynamic(
            where, others=reason.others, computed=reason.computed
        ) from None


def gather(visits: Sequence[Visit], kept: Set[str], _: Samples) -> Limits:
    """Constant indices lie inside; others are looked at when the program runs.

    Of Gather and its kin along one axis.
    """
    extent = sizes(visits, 0, attribute(visits, "axis", 0))
    if is_computed(visits, 1, kept) or is_alike(extent):
        return []
    made: Limits = []
    for row in numbers(visits, 1) or []:
        if not is_alike(row):
            index = visits[0].inputs[1]
            assert index is not None
            raise NotDynamic("indices that are sizes", computed=index.name)
        inside = row[0] if row[0] < 0 else -1 - row[0]
        made.append(tuple(n + inside for n in extent))
    return made


def gather_slices(visits: Sequence[Visit], kept: Set[str], _: Samples) -> Limits:
    """GatherND, ScatterND: constant indices of several axes lie inside."""
    axes = range(rank(visits))
    fixed = all(is_alike(sizes(visits, 0, axis)) for axis in axes)
    if fixed or is_computed(visits, 1, kept):
        return []
    batch = attribute(visits, "batch_dims", 0)
    many = sizes(visits, 1, -1)[0]
    made: Limits = []
    for place, row in enumerate(numbers(visits, 1) or []):
        extent = sizes(visits, 0, batch + place % many)
        if not is_alike(row):
            raise NotDynamic("indices that are sizes")
        inside = row[0] if row[0] < 0 else -1 - row[0]
        if not is_alike(extent):
            made.append(tuple(n + inside for n in extent))
    return made


def is_computed(visits: Sequence[Visit], index: int, kept: Set[str]) -> bool:
    """Whether an input is computed when the program runs."""
    value = visits[0].inputs[index]
    return value is None or not value.is_known or value.name in kept


def squeeze(visits: Sequence[Visit], _: Set[str], __: Samples) -> Limits:
    """Without axes, those of 1 go: open ones are larger, or are compiled alone."""
    first = visits[0]
    if "axes" in first.node.attributes or any(x is not None for x in first.inputs[1:]):
        return []
    extents = [sizes(visits, 0, axis) for axis in range(rank(visits))]
    open_ones = [row for row in extents if not is_alike(row)]
    if any(1 in row for row in open_ones):
        raise NotDynamic("a size that goes where it is 1: name the axes")
    return [tuple(n - 2 for n in row) for row in open_ones]


def neighbours(visits: Sequence[Visit], _: Set[str], __: Samples) -> Limits:
    """LRN: sums over channels next to each other, which are no size."""
    if not is_alike(sizes(visits, 0, 1)):
        raise NotDynamic("as many channels as a size says")
    return []


def transformed(visits: Sequence[Visit], _: Set[str], __: Samples) -> Limits:
    """DFT along an axis that is no size."""
    given, length = numbers(visits, 2), numbers(visits, 1)
    # Without one it is 1 before opset 20, and the last but one since.
    axes = (attribute(visits, "axis", 1), attribute(visits, "axis", -2))
    if given is not None:
        axes = (given[0][0],)
    if not all(is_alike(sizes(visits, 0, axis)) for axis in (*axes, -1)):
        raise NotDynamic("a size along the axis that it transforms")
    if length is not None and not is_alike(length[0]):
        raise NotDynamic("a length that is a size")
    return []


def framed(visits: Sequence[Visit], _: Set[str], samples: Samples) -> Limits:
    """STFT of a signal whose length is a size, in frames of one that is none."""
    extent = sizes(visits, 0, 1)
    if is_alike(extent):
        return []
    steps, lengths = numbers(visits, 1), numbers(visits, 3)
    if lengths is None and not has(visits[0], 2):
        raise NotDynamic("a frame as long as the signal")
    size = lengths[0] if lengths else sizes(visits, 2, 0)
    if steps is None or not is_alike(steps[0]) or not is_alike(size):
        raise NotDynamic("steps or frames that are sizes")
    require_floor(less(extent, size), steps[0][0], samples)
    return [less(extent, size)]


def split(visits: Sequence[Visit], _: Set[str], __: Samples) -> Limits:
    """Parts along an axis that is no size."""
    if not is_alike(sizes(visits, 0, attribute(visits, "axis", 0))):
        raise NotDynamic("a size along its axis")
    return []


def looped(visits: Sequence[Visit], kept: Set[str], _: Samples) -> Limits:
    """Loop: so many trips as a size says, or as the program counts."""
    if TRIPS in visits[0].node.meta or not has_scans(visits[0].node):
        return []
    known = not any(is_computed(visits, i, kept) for i in (0, 1) if has(visits[0], i))
    body = visits[0].node.attributes["body"].as_graph()
    if not has(visits[0], 0) or not known or not keeps_running(body):
        raise NotDynamic("a number of trips that is known at run time")
    return []


def has_scans(loop: ir.Node) -> bool:
    """Whether it gives more than what it carries, for which there must be room."""
    return len(loop.outputs) > len(loop.inputs) - 2


def top_k(visits: Sequence[Visit], _: Set[str], __: Samples) -> Limits:
    """As many elements as are known, or a size says, along an axis that has more."""
    wanted = numbers(visits, 1)
    if wanted is None:
        raise NotDynamic("its k is an attribute")
    extent = sizes(visits, 0, attribute(visits, "axis", -1))
    return [wanted[0], less(extent, wanted[0])]


def patched(visits: Sequence[Visit], _: Set[str], samples: Samples) -> Limits:
    """Col2Im: as many blocks as windows stand on the image, and at least one."""
    images, block = numbers(visits, 1), numbers(visits, 2)
    if images is None or block is None or not all(map(is_alike, block)):
        raise NotDynamic("blocks that are sizes")
    made: Limits = []
    kernel = [n[0] for n in block]
    for extent, windows in zip(images, windows_of(visits[0].node, kernel), strict=True):
        if is_alike(extent):
            continue
        more = windows.low + windows.high - windows.span
        room = tuple(n + more for n in extent)
        require_floor(room, windows.stride, samples)
        made.append(room)
    return made


def has(visit: Visit, index: int) -> bool:
    return visit.inputs[index] is not None


RULES: dict[str, Rule] = {
    "Col2Im": patched,
    "DFT": transformed,
    "Gather": gather,
    "GatherElements": gather,
    "GatherND": gather_slices,
    "LRN": neighbours,
    "Loop": looped,
    "STFT": framed,
    "Scatter": gather,
    "ScatterElements": gather,
    "ScatterND": gather_slices,
    "Slice": cut,
    "Split": split,
    "Squeeze": squeeze,
    "TopK": top_k,
}
