"""Operators along axes whose sizes are known at run time, and what they require.

Each operator was looked at: does its lowering do the same for every size?  Those that
are not named here stop a model whose sizes reach them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import numpy as np
import onnx_ir as ir

from nanoloom.graph.conditions import keeps_running
from nanoloom.graph.data_dependent.trips import TRIPS
from nanoloom.graph.operator_families import ELEMENTWISE, REDUCTIONS, words
from nanoloom.sizes.dynamic_refusal import NotDynamic
from nanoloom.sizes.sample_walk import Visit

Numbers = tuple[int, ...]  # one for each sample
Limits = list[Numbers]
Rule = Callable[[Sequence[Visit], Set[str]], Limits]
END = 2**31 - 1  # and beyond: where an axis ends

# Each element from those at its place, whole axes, or only moved: for any sizes.
ANY = (
    ELEMENTWISE
    | REDUCTIONS
    | words(
        """
    ArgMax ArgMin BatchNormalization CastLike Concat ConstantOfShape CountedTopK CumSum
    DequantizeLinear Dropout DynamicQuantizeLinear Expand EyeLike Flatten GRU Gemm
    GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample GroupNormalization Hardmax
    If InstanceNormalization LSTM LayerNormalization LogSoftmax MatMul MatMulInteger
    MeanVarianceNormalization OneHot Places QLinearMatMul QuantizeLinear
    RMSNormalization RNN Range Reshape SameSize Scan Shape Size Softmax SortedSlices
    Squeeze Suppressed Tile Transpose Trilu Unsqueeze
    """
    )
)


def limits(visits: Sequence[Visit], kept: Set[str]) -> Limits:
    """What may not be below 0 for an operator; raises Differs where that is unknown.

    kept: constants that are computed when the program runs.
    """
    first = visits[0]
    if first.operator in ANY:
        return []
    if (rule := RULES.get(first.operator)) is None:
        raise NotDynamic(f"{first.name} is compiled for known sizes only")
    try:
        return rule(visits, kept)
    except NotDynamic as reason:
        where = f"{first.name}: {reason}"
        raise NotDynamic(where, computed=reason.computed) from None


def sizes(visits: Sequence[Visit], index: int, axis: int) -> Numbers:
    """The extents of an input's axis."""
    found: list[int] = []
    for visit in visits:
        value = visit.inputs[index]
        if value is None or value.shape is None:
            raise NotDynamic("an input of unknown shape")
        found.append(value.shape[axis])
    return tuple(found)


def rank(visits: Sequence[Visit], index: int = 0) -> int:
    value = visits[0].inputs[index]
    if value is None or value.shape is None:
        raise NotDynamic("an input of unknown shape")
    return len(value.shape)


def numbers(visits: Sequence[Visit], index: int) -> list[Numbers] | None:
    """The elements of a small constant input, each for all samples; None without it."""
    if len(visits[0].inputs) <= index or visits[0].inputs[index] is None:
        return None
    rows: list[list[int]] = []
    for visit in visits:
        value = visit.inputs[index]
        if value is None or value.numbers is None:
            raise NotDynamic("numbers that are known at run time")
        rows.append([int(n) for n in value.numbers.flat])
    if len({len(row) for row in rows}) > 1:
        raise NotDynamic("numbers of numbers")
    return list(zip(*rows, strict=True))


def attribute(visits: Sequence[Visit], name: str, default: int) -> int:
    found = visits[0].node.attributes.get(name)
    return found.as_int() if isinstance(found, ir.Attr) else default


def is_alike(row: Numbers) -> bool:
    return len(set(row)) == 1


def gather(visits: Sequence[Visit], kept: Set[str]) -> Limits:
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


def gather_slices(visits: Sequence[Visit], kept: Set[str]) -> Limits:
    """GatherND, ScatterND: axes that are sizes, with indices that are computed."""
    axes = range(rank(visits))
    fixed = all(is_alike(sizes(visits, 0, axis)) for axis in axes)
    if not fixed and not is_computed(visits, 1, kept):
        raise NotDynamic("constant indices along sizes")
    return []


def is_computed(visits: Sequence[Visit], index: int, kept: Set[str]) -> bool:
    """Whether an input is computed when the program runs."""
    value = visits[0].inputs[index]
    return value is None or not value.is_known or value.name in kept


def cut(visits: Sequence[Visit], _: Set[str]) -> Limits:
    """Slice: begins and ends inside, step 1, along axes that are sizes.

    Or all that there is up to a place that no sample reaches, and no other size may.
    """
    starts, ends = numbers(visits, 1), numbers(visits, 2)
    if starts is None or ends is None:
        raise NotDynamic("where it begins")
    axes = numbers(visits, 3) or [(n,) * len(visits) for n in range(len(starts))]
    steps = numbers(visits, 4) or [(1,) * len(visits)] * len(starts)
    made: Limits = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        extent = sizes(visits, 0, axis[0])
        if is_alike(extent) and is_alike(start) and is_alike(end):
            continue
        if not is_alike(axis) or set(step) != {1}:
            raise NotDynamic("steps along a size")
        begin = inside(start, extent)
        whole = all(n >= e for n, e in zip(end, extent, strict=True))
        if whole and min(end) < END:
            made.append(less(end, extent))
        stop = extent if whole else inside(end, extent)
        made += [begin, less(stop, begin), less(extent, stop)]
    if any(min(row) < 0 for row in made):
        raise NotDynamic("a part that may end where its axis does")
    return made


def inside(places: Numbers, extent: Numbers) -> Numbers:
    """Places on an axis, those below 0 counted from its end."""
    if len({n < 0 for n in places}) > 1:
        raise NotDynamic("places on both sides")
    behind = places[0] < 0
    return tuple(n + e if behind else n for n, e in zip(places, extent, strict=True))


def less(one: Numbers, other: Numbers) -> Numbers:
    return tuple(int(n) for n in np.subtract(one, other))


def neighbours(visits: Sequence[Visit], _: Set[str]) -> Limits:
    """LRN: sums over channels next to each other, which are no size."""
    if not is_alike(sizes(visits, 0, 1)):
        raise NotDynamic("as many channels as a size says")
    return []


def split(visits: Sequence[Visit], _: Set[str]) -> Limits:
    """Parts along an axis that is no size."""
    if not is_alike(sizes(visits, 0, attribute(visits, "axis", 0))):
        raise NotDynamic("a size along its axis")
    return []


def looped(visits: Sequence[Visit], kept: Set[str]) -> Limits:
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


def top_k(visits: Sequence[Visit], _: Set[str]) -> Limits:
    """As many elements as are known, or a size says, along an axis that has more."""
    wanted = numbers(visits, 1)
    if wanted is None:
        raise NotDynamic("its k is an attribute")
    extent = sizes(visits, 0, attribute(visits, "axis", -1))
    return [wanted[0], less(extent, wanted[0])]


def has(visit: Visit, index: int) -> bool:
    return visit.inputs[index] is not None


RULES: dict[str, Rule] = {
    "Gather": gather,
    "GatherElements": gather,
    "GatherND": gather_slices,
    "LRN": neighbours,
    "Loop": looped,
    "ScatterElements": gather,
    "ScatterND": gather_slices,
    "Slice": cut,
    "Split": split,
    "TopK": top_k,
}
