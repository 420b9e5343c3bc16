"""Neighbouring axes of a product's kernel that are one: the pixels of an image.

    for y: for x: for f: for c: out[y, x, f] += in[y, x, c] * w[f, c]
      ->  for p: for f: for c: out[p, f] += in[p, c] * w[f, c]

A register tile then takes pixels of several rows, and no row's end is a rest.  Two axes
are one where every operand has both, side by side, or neither.  Of what is sliced, or
written into another tensor, they are one there as well (coalesce_slices.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeAlias

from nanoloom.fusion.coalesce_slices import INSERT, SLICE, Pair, is_everywhere, part_of
from nanoloom.fusion.read_through_views import is_permutation
from nanoloom.graph.winograd import TILES
from nanoloom.ir.linalg_query import (
    Op,
    all_dims,
    dims_of,
    extents,
    is_contraction,
    is_generic,
    iterators,
    map_dims,
    maps,
)
from nanoloom.ir.make_generic import set_loops
from nanoloom.ir.mlir import ir, operations, sign
from nanoloom.ir.statement_names import NAME

NUMBER = "tensor.extract"  # of a tensor that keeps its shape
OTHERS = {"arith.constant", "func.return", "tensor.empty", NUMBER, SLICE}
Wanted: TypeAlias = frozenset[Pair] | None  # all of them at once; None: not possible
NOTHING: frozenset[Pair] = frozenset()


def coalesce_loops(
    module: ir.Module, *, every: bool = False, known_sizes: bool = False
) -> None:
    """Make axes one in a kernel around a product, in place.

    every: in any kernel.  known_sizes: also in those that compute elements one by one,
    that fold rows of several axes, and that turn tiles.
    """
    function = module.body.operations[0]
    block = function.operation.regions[0].blocks[0]
    ops = list(block.operations)
    generics = [op for op in ops if is_generic(op)]
    others = [op.operation for op in ops if not is_generic(op)]
    rows = folds_rows(generics)
    apart = known_sizes and (
        rows or transposes_tiles(generics) or all(map(is_in_order, generics))
    )
    if not {op.name for op in others} <= (OTHERS | {INSERT} if apart else OTHERS):
        return
    if not every and not apart and not any(is_contraction(op) for op in generics):
        return
    if any(NAME in op.operation.attributes for op in generics):
        return  # somebody has named the loops
    walks = {op: walk_of(op, rows=rows) for op in generics}
    numbers = operations(function, lambda op: op.operation.name == NUMBER)
    read = {op.operation.operands[0] for op in numbers}  # those in bodies as well
    slices = [part_of(op, cut=apart) for op in others if op.name in (SLICE, INSERT)]
    found = {pair for walk in walks.values() for pair in pairs_of(walk)}
    found |= {
        (x, place) for part in slices for x in part.values for place in part.pairs
    }
    pairs = {pair for pair in found if pair[0] not in read}
    asked = [wants_of(walk) for walk in walks.values()]
    while True:
        kept = {p for p in pairs if all(is_kept(wants, p, pairs) for wants in asked)}
        kept = {p for p in kept if all(is_everywhere(x, p, kept) for x in slices)}
        if kept == pairs:
            break
        pairs = kept
    if pairs:
        collapse(function, block, walks, pairs)
        for part in slices:
            part.shorten([place for value, place in pairs if value == part.values[0]])


def is_in_order(op: Op) -> bool:
    """Whether elements are computed one by one, or all folded into one, in the order of
    what is read: rows that fill no vectors cost masks."""
    return len({*iterators(op)}) <= 1 and keeps_order(op)


def keeps_order(op: Op) -> bool:
    """Whether the axes of all tensors are in the order of the loops."""
    orders = [[d for d in map_dims(way) if d is not None] for way in maps(op)]
    return all(o == sorted(o) for o in orders)


def folds_rows(ops: Sequence[Op]) -> bool:
    """Whether rows of several axes are folded, the last ones of what is read, and all
    else is in their order: an image's channels are normalized.

    A short last axis would be a loop of its own, whose few vectors wait for each other.
    """
    several = any(iterators(op)[-2:] == ["reduction"] * 2 for op in ops)
    sorted_kinds = all(iterators(op) == sorted(iterators(op)) for op in ops)
    ordered = sorted_kinds and all(map(keeps_order, ops))
    return several and ordered and not any(map(is_contraction, ops))


def transposes_tiles(ops: Sequence[Op]) -> bool:
    """Whether a turn's rows are no longer than those of tiles of results (winograd.py),
    side by side in what it reads, too.

    Longer ones are turned as they are: some took 1.6 times as long as one axis.
    """
    if len(ops) != 1 or not is_permutation(ops[0]):
        return False
    (op,) = ops
    last = len(iterators(op)) - 1
    beside = (last - 1, last) in pairwise(map_dims(maps(op)[0]))
    return beside and extents(op)[last] <= max(TILES)


@dataclass(frozen=True)
class Access:
    """How an operation's axes go over one of its tensors.

    dims: the axis of each dimension, None where it is more than one.  axes: all that
    occur.  moved: those that occur where it is more than one.
    """

    value: ir.Value
    dims: list[int | None]
    axes: set[int]
    moved: set[int]


@dataclass(frozen=True)
class Walk:
    """An operation's loops: kinds of its axes, and its operands and results.

    numbered: whether it computes with the numbers of its axes.  folds: whether axes
    that are summed may be one.
    """

    kinds: list[str]
    numbered: bool
    folds: bool
    accesses: list[Access]


def walk_of(op: Op, *, rows: bool = False) -> Walk:
    operation, indexings = op.operation, maps(op)
    results = list(operation.results)
    of_results = indexings[len(indexings) - len(results) :]
    ways = zip([*operation.operands, *results], [*indexings, *of_results], strict=True)
    numbered = operations(op, lambda inner: inner.operation.name == "linalg.index")
    accesses = [access_of(*each) for each in ways]
    kinds = iterators(op)
    return Walk(kinds, bool(numbered), rows or {*kinds} == {"reduction"}, accesses)


def access_of(value: ir.Value, way: ir.AffineMap) -> Access:
    plain = map_dims(way)
    others = zip(plain, way.results, strict=True)
    moved = {d for place, e in others if place is None for d in dims_of(e)}
    return Access(value, plain, all_dims(way), moved)


def pairs_of(walk: Walk) -> Iterator[Pair]:
    """Neighbouring dimensions of every operand and result."""
    for access in walk.accesses:
        if isinstance(access.value.type, ir.RankedTensorType):
            for place in range(ir.RankedTensorType(access.value.type).rank - 1):
                yield access.value, place


def loops_of(walk: Walk, pair: Pair) -> Iterator[tuple[int, int] | None]:
    """The two axes that go over a tensor's dimensions; None where it is not just so."""
    value, place = pair
    for access in walk.accesses:
        if access.value == value:
            first, second = access.dims[place : place + 2]
            yield None if first is None or second is None else (first, second)


def is_kept(wants: Mapping[Pair, Wanted], pair: Pair, pairs: set[Pair]) -> bool:
    """Whether an operation's axes over these dimensions are side by side everywhere."""
    wanted = wants.get(pair, NOTHING)
    return wanted is not None and wanted <= pairs


def wants_of(walk: Walk) -> dict[Pair, Wanted]:
    """What an operation wants to be one beside each two dimensions of its tensors."""
    of_axes: dict[tuple[int | None, ...], Wanted] = {}
    made: dict[Pair, Wanted] = {}
    for access in walk.accesses:
        for place, axes in enumerate(pairwise(access.dims)):
            if axes not in of_axes:
                of_axes[axes] = beside(walk, axes)
            pair, wanted = (access.value, place), of_axes[axes]
            others = made.get(pair, NOTHING)
            if wanted is None or others is None:
                made[pair] = None
            else:
                made[pair] = wanted | others
    return made


def beside(walk: Walk, axes: tuple[int | None, int | None]) -> Wanted:
    """The dimensions that two axes go over, two of each tensor that has them."""
    if walk.numbered or axes[0] == axes[1]:
        return None
    if not are_alike(walk, axes):
        return None
    wanted: set[Pair] = set()
    for access in walk.accesses:
        if not access.axes & {*axes}:
            continue
        found = [i for i, two in enumerate(pairwise(access.dims)) if two == axes]
        plain = [d for d in access.dims if d in axes]
        if len(found) != 1 or len(plain) != 2 or access.moved & {*axes}:
            return None
        wanted.add((access.value, found[0]))
    return frozenset(wanted)


def are_alike(walk: Walk, axes: tuple[int | None, int | None]) -> bool:
    kinds = {None if d is None else walk.kinds[d] for d in axes}
    return kinds == {"parallel"} or (walk.folds and kinds == {"reduction"})


# ---- the same with fewer dimensions


def collapse(
    function: Op, block: ir.Block, walks: dict[Op, Walk], pairs: set[Pair]
) -> None:
    """Give all tensors and axes their new dimensions."""
    for op, walk in walks.items():
        renumber(op, axes_of(walk, pairs), pairs)
    values = [*block.arguments]
    for op in block.operations:
        values += op.operation.results
    for value in values:
        gone = [place for v, place in pairs if v == value]
        if gone:
            value.set_type(flat(ir.RankedTensorType(value.type), gone))
    returned = list(block.operations)[-1].operation.operands
    sign(function, [v.type for v in returned])


def axes_of(walk: Walk, pairs: set[Pair]) -> set[int]:
    """The second axes of pairs: those that are gone."""
    return {
        axes[1] for pair in pairs for axes in loops_of(walk, pair) if axes is not None
    }


def renumber(op: Op, gone: set[int], pairs: set[Pair]) -> None:
    """An operation's maps without these axes."""
    count = len(iterators(op))
    left = [d for d in range(count) if d not in gone]
    numbers = {d: left.index(d) for d in left}
    new = [ir.AffineDimExpr.get(numbers.get(d, 0)) for d in range(count)]
    made: list[ir.AffineMap] = []
    for value, indexing in zip(op.operation.operands, maps(op), strict=True):
        skipped = {place + 1 for v, place in pairs if v == value}
        kept = [e for i, e in enumerate(indexing.results) if i not in skipped]
        results = [e.compose(ir.AffineMap.get(len(left), 0, new)) for e in kept]
        made.append(ir.AffineMap.get(len(left), 0, results))
    set_loops(op, made, left)


def flat(kind: ir.RankedTensorType, places: list[int]) -> ir.RankedTensorType:
    """A type whose dimensions at and behind these places are one."""
    groups: list[list[int]] = []
    for place, size in enumerate(kind.shape):
        if place - 1 in places:
            groups[-1].append(size)
        else:
            groups.append([size])
    return ir.RankedTensorType.get(list(map(prod, groups)), kind.element_type)
