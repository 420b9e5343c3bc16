"""Borders that a product leaves out: the steps of a sum that are outside of an image.

    p = x inside, z around it;  y[i] = sum of p[s i + k] w[k]
      ->  y[i] = sum of x[s i + k - low] w[k], over the steps k that are within x
                 + sum of z w[k], over the others: nothing for zeros

Of bytes instructions multiply four pixels of a row at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.nest.contraction import Contraction, bits, elements, roles
from nanoloom.nest.guard import Guard, Partition
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement

AT_SOURCE = "its source"  # where what a pad makes is stored, if it is left out
AROUND = "its source, with a border"  # where a pad lies that is written around that
FLOATS = ({"f32"}, {"f64"})


def may_be_implicit(
    product: Statement,
    shape: Contraction,
    operand: int,
    around: Sequence[bool],
    *,
    known: bool,
) -> bool:
    """Whether a border of a constant adds steps to a product's sums, and does nothing
    else.

    around: which dimensions of the operand have one.  Each of them is gone along by one
    axis of the sum, and at most one of rows, which no other dimension is; along a row
    bytes have an axis of groups beside, and filters that are known: they lie in fours.
    """
    if operand != shape.left or not any(around):
        return False
    floats = set(elements(product, shape)) in FLOATS
    if not floats and not (known and is_in_quads(product, shape)):
        return False
    indices = product.reads[operand].indices
    every = [axis for index in indices for axis in index.axes]
    for place, (index, here) in enumerate(zip(indices, around, strict=True)):
        if not here:
            continue
        most = 1 if floats or place < len(indices) - 1 else 2
        steps = [axis for axis, _ in index.terms if is_summed(product, axis)]
        plain = not index.other and not index.offset
        if not plain or not 1 <= len(steps) <= most:
            return False
        if len(index.terms) - len(steps) > 1:
            return False
        if any(n < 1 or every.count(axis) > 1 for axis, n in index.terms):
            return False
    return True


def is_in_quads(product: Statement, shape: Contraction) -> bool:
    """Whether four bytes that lie together in a row of pixels are a step of a sum."""
    *kinds, sums = elements(product, shape)
    if sums != "i32" or not {*kinds} <= {"s8", "u8"} or not shape.reduced:
        return False
    read, last = product.reads[shape.left], shape.reduced[-1]
    name = product.names[last]
    apart = sum(name in index.axes for index in read.indices) == 1
    row = read.indices[-1]
    pixels = any(not is_summed(product, axis) for axis in row.axes)
    four = shape.extents[last] == bits("i32") // bits("u8")
    return apart and pixels and row.factor(name) == 1 and four


def is_summed(stage: Statement, axis: str) -> bool:
    found = stage.axis(axis)
    return found is not None and found.is_reduction


def implicit_padding(nest: LoopNest, product: Statement) -> Statement | None:
    """The pad whose border a product can leave out, reading what is inside itself."""
    shape = roles(product)
    if shape is None:
        return None
    left, right = (product.reads[n].buffer for n in (shape.left, shape.right))
    pad = nest.writer(left)
    if pad is None or pad.inside is None or nest.readers(left) != (product,):
        return None
    if pad.cropped or not isinstance(pad.outside, str):
        return None  # other numbers are in the border's place, or only a run knows it
    around = borders(nest, pad)
    if around is None:
        return None
    known = nest.buffer(right).role is Role.CONSTANT
    given = product, shape, shape.left, around
    return pad if may_be_implicit(*given, known=known) else None


def is_at_source(nest: LoopNest, stage: Statement) -> bool:
    """Whether a schedule leaves a pad out: no loop takes it in."""
    return nest.placement(stage.name).stored == AT_SOURCE


def borders(nest: LoopNest, pad: Statement) -> list[bool] | None:
    """Which axes of a pad have a border, None where not all of a tensor is inside."""
    assert pad.inside is not None, "a pad has an inside"
    extents = nest.buffer(pad.inside.buffer).shape
    found: dict[str, bool] = {}
    for index, extent in zip(pad.inside.indices, extents, strict=True):
        if not index.terms and extent == 1 and not index.offset:
            continue
        if index.other or len(index.terms) != 1 or index.offset > 0:
            return None
        ((name, _),) = index.terms
        axis = pad.axis(name)
        assert axis is not None, "its own"
        found[name] = index.offset < 0 or axis.extent != extent
    others = [axis for axis in pad.axes if axis.name not in found]
    if any(axis.extent != 1 for axis in others):  # a single row, in the middle of some
        return None
    return [found.get(name, False) for name in pad.names]


def tiles_at_ends(nest: LoopNest, product: Statement, row: str, rows: int) -> int:
    """How many tiles, of so many points of an axis, reach into a border along it."""
    pad, shape = implicit_padding(nest, product), roles(product)
    assert pad is not None and pad.inside is not None and shape is not None
    read, width = product.reads[shape.left], product.axis(row)
    assert width is not None and isinstance(width.extent, int), "sizes are known"
    found = 0
    for index, name in zip(read.indices, pad.names, strict=True):
        inside = [i for i in enumerate(pad.inside.indices) if name in i[1].axes]
        step = index.factor(row)
        if not step or not inside:
            continue
        ((place, at),) = inside
        size, low = nest.buffer(pad.inside.buffer).shape[place], -at.offset
        assert isinstance(size, int), "sizes are known"
        reach = sum(
            factor * (extent_of(product, axis) - 1)
            for axis, factor in index.terms
            if axis != row
        )
        inside = Guard(-low, step, size, reach).steps(width.extent)
        found += len(Partition.of(inside, width.extent, rows).ends)
    return found


def extent_of(stage: Statement, axis: str) -> int:
    found = stage.axis(axis)
    assert found is not None and isinstance(found.extent, int), "sizes are known"
    return found.extent


def is_padding(nest: LoopNest, stage: Statement) -> bool:
    """Whether a schedule writes a border around what makes its inside."""
    return nest.placement(stage.name).stored == AROUND
