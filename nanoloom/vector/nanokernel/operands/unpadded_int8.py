"""Dot products of bytes with an image that is read where it lies, its border left out.

Reference loop, x in fours of pixels of a row, z the number of the border:

    acc[v] = sum of z * w[k] over the rows k above and below the image
    for k of the others: for r in rows: acc[r] += x[y + k, s (x + r) + l] * w[k, l]

What is above and below is the same for all pixels of a tile: it is added up once, and
where it is zero not at all.  At the ends of a row (unpadded_fma.py) a group of four is
put together of the pixels that are there, and of the border.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.access import add, constant_of, index
from nanoloom.vector.guard import Bounds
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.fma import vector_kind
from nanoloom.vector.nanokernel.operands.unpadded_fma import by_place
from nanoloom.vector.nanokernel.operands.unpadded_lhs import Pixels, UnpaddedImage
from nanoloom.vector.nanokernel.reduction_loops import counted, with_value
from nanoloom.vector.nanokernel.tile.tile import Tile, read_vector, zero_of

Values = list[ir.Value]
StepOf = Callable[[Callable[[k_groups.Row], ir.Value]], k_groups.Step]


def image_of(tile: Tile) -> UnpaddedImage | None:
    """The image, None where a tile's left operand is read as it is."""
    operand = UnpaddedImage.of(tile)
    along = None if operand is None else operand.along
    fours = along is not None and tile.shape.reduced[-1] in along.steps
    return operand if fours else None


def accumulate(
    tile: Tile, operand: UnpaddedImage, step_of: StepOf, start: Values, *, adds: bool
) -> Values:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators.

    step_of: a step, of what reads a group.  adds: whether the border does to a sum.
    """
    shape, limits, ivs = tile.shape, operand.limits, tile.ivs(index(0), index(0))
    if adds:
        more = border_sums(tile, operand, limits, step_of)
        start = [arith.addi(x, more[n % len(more)]) for n, x in enumerate(start)]

    def sums(pixels: Pixels, rows: Values) -> Values:
        made = k_groups.Sums(tile, step_of(partial(group, pixels)), rows)
        if pixels.begin is None or operand.along is None:
            return made.through(shape.reduced, ivs, start, limits)
        apart = [d for d in operand.along.steps if d != shape.reduced[-1]]
        others, now = [d for d in shape.reduced if d not in apart], start
        for number in range(prod(shape.extents[d] for d in apart)):
            here = [index(number) if d in apart else x for d, x in enumerate(ivs)]
            now = made.through(others, here, now, limits)
        return now

    return by_place(tile, operand, sums)


def border_sums(
    tile: Tile, operand: UnpaddedImage, limits: Mapping[int, Bounds], step_of: StepOf
) -> Values:
    """What is above and below the image adds to each row of the tile: its vectors."""
    shape, number, kind = tile.shape, operand.outside, vector_kind(tile)

    def border(row: k_groups.Row) -> ir.Value:
        return vector.broadcast(ir.VectorType.get([row.group], number.type), number)

    alone = replace(tile, plan=replace(tile.plan, rows=1))
    made = k_groups.Sums(alone, step_of(border), [index(0)])

    def through(dims: Sequence[int], ivs: Values, sums: Values) -> Values:
        if not limits.keys() & {*dims}:
            return sums
        (dim, *inner), extent = dims, shape.extents[dims[0]]
        begin, end = limits.get(dim, (index(0), index(extent)))

        def outside(place: ir.Value, now: Values) -> Values:
            return made.through(inner, with_value(ivs, dim, place), now)

        def inside(place: ir.Value, now: Values) -> Values:
            return through(inner, with_value(ivs, dim, place), now)

        sums = counted(begin, 1, sums, outside)
        sums = counted(end, 1, sums, inside, begin=begin)
        return counted(extent, 1, sums, outside, begin=end)

    zero = vector.broadcast(kind, zero_of(kind.element_type))
    start = tile.ivs(index(0), index(0))
    return through(shape.reduced, start, [zero] * tile.plan.vectors)


def group(pixels: Pixels, row: k_groups.Row) -> ir.Value:
    """A group of a row, of the border what is not in the image."""
    source, at = pixels.image.source, pixels.place(row.ivs)
    found = pixels.crossing(row.ivs, row.place_in_tile)
    if found is None:
        return read_vector(source, at, row.group, None)
    place, around = found
    begin, last = constant_of(at[place]), known_last(around.size, row.group)
    if begin is None or last < 0:
        return scalar_reductions(pixels, row)
    inside = min(max(begin, 0), last)
    at[place] = index(inside)
    whole = read_vector(source, at, row.group, None)
    return moved(whole, inside - begin, pixels.image.outside)


def known_last(size: ir.Value | int, group: int) -> int:
    """Where the last whole group of a row begins, below 0 where nobody knows."""
    return size - group if isinstance(size, int) else -1


def moved(whole: ir.Value, by: int, border: ir.Value) -> ir.Value:
    """The group that begins so many numbers in front of one, or behind it, with the
    border for the others: by shifts, as ports of shuffles are busy with products."""
    kind = ir.VectorType(whole.type)
    (count,) = kind.shape
    around = vector.broadcast(kind, border)
    if not by:
        return whole
    if abs(by) >= count:
        return around
    bits = kind.element_type.width  # type: ignore[attr-defined] - MLIR's stubs know no widths
    word = ir.IntegerType.get_signless(bits * count)
    number, beside = (k_groups.word_of(x, word) for x in (whole, around))
    far = arith.constant(word, bits * abs(by))
    rest = arith.constant(word, bits * (count - abs(by)))
    if by > 0:
        made = arith.ori(arith.shli(number, far), arith.shrui(beside, rest))
    else:
        made = arith.ori(arith.shrui(number, far), arith.shli(beside, rest))
    return vector.bitcast(kind, vector.broadcast(ir.VectorType.get([1], word), made))


def scalar_reductions(pixels: Pixels, row: k_groups.Row) -> ir.Value:
    """A group where only a run knows how much of it is inside."""
    dim, numbers = row.tile.shape.reduced[-1], list[ir.Value]()
    for g in range(row.group):
        ivs = with_value(row.ivs, dim, add(row.ivs[dim], index(g)))
        numbers.append(pixels.number(ivs, row.place_in_tile))
    kind = ir.VectorType.get([row.group], numbers[0].type)
    return vector.from_elements(kind, numbers)
