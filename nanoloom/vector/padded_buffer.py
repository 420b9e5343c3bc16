"""Borders around what a task makes: what "nanoloom.store_at" does with "padded".

    forall: y = f(slice(pad(t)))
      ->  forall: q = empty();  q[border] = number;  q[inside] = slice(t);  y = f(q)

Of t just that is sliced which is inside of the part that a task reads: what makes it is
computed there, and writes it into the middle of q.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nanoloom.errors import Error
from nanoloom.ir.access import offset_of
from nanoloom.ir.linalg_query import Op, bordered, is_pad, yielded
from nanoloom.ir.mlir import arith, ir, tensor
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.linalg.builder.tensor_slices import (
    Number,
    bounds_of,
    extents_of,
    inserted,
    sliced,
)

# The expressions of a map, or numbers, of those of what it is given.
Form = Callable[[list[Any]], list[Any]]
SLICE = "tensor.extract_slice"


@dataclass(frozen=True)
class PaddedSpan:
    """A part of an axis with a border, as a task reads it.

    extent: of the part.  begin, count: what it has of the inside.  front: how much of
    it is border, in front of that.  low, high: whether there is one at either end.
    """

    extent: Number
    begin: Number
    count: Number
    front: Number
    low: bool
    high: bool

    @staticmethod
    def of(
        start: Number, extent: Number, low: int, size: Number, whole: int
    ) -> PaddedSpan:
        """Of a part that begins at `start`; size: of the inside, which is at `low`.

        Behind an inside of any size there may be a border of any width.
        """
        if size == whole:
            return PaddedSpan(extent, start, extent, 0, low=False, high=False)
        begin = number("max", lambda x: [x[0] - low, 0], start)
        end = number("min", lambda x: [x[0] + x[1] - low, x[2]], start, extent, size)
        count = number("min", lambda x: [x[0] - x[1], x[2]], end, begin, extent)
        front = number("apply", lambda x: [x[0] - x[1] + low], begin, start)
        high = not isinstance(size, int) or low + size < whole
        return PaddedSpan(extent, begin, count, front, low > 0, high)

    @property
    def strips(self) -> list[tuple[Number, Number]]:
        """Where its border is, and how wide."""
        found: list[tuple[Number, Number]] = []
        if self.low:
            found.append((0, self.front))
        if self.high:
            end = number("apply", lambda x: [x[0] + x[1]], self.front, self.count)
            rest = number("apply", lambda x: [x[0] - x[1]], self.extent, end)
            found.append((end, rest))
        return found


def write_padding(op: Op) -> None:
    """Let the readers of a border's parts have it around parts of what is inside.

    Raises Error for what is no border around another stage, or is read whole.
    """
    if not is_pad(op):
        raise Error("only a border is stored around something else")
    source, reading, _ = bordered(op)
    lows = [low_of(expr, place) for place, expr in enumerate(reading.results)]
    choice = yielded(op)[0].owner
    value = choice.operands[2].owner.attributes["value"]  # type: ignore[union-attr] - a pad chooses a constant
    for use in list(op.operation.results[0].uses):
        user = use.owner.operation
        if user.name == "tensor.dim":  # asks for an extent, reads nothing
            user.operands[0] = list(op.operation.operands)[-1]
            continue
        if is_unused(user):
            continue  # what was fused, whose copies are in the loops
        if user.name != SLICE:
            raise Error(
                "a border around another stage is read whole",
                hint="compute it inside of a loop over tasks",
            )
        with ir.InsertionPoint(user), user.location:
            user.results[0].replace_all_uses_with(part_of(user, source, lows, value))
        user.erase()
    erase_with_users(op.operation)  # nothing else makes what is inside of it


def erase_with_users(op: ir.Operation) -> None:
    """An operation and all that is made of it, which nothing needs."""
    for made in op.results:
        while list(made.uses):
            erase_with_users(next(iter(made.uses)).owner.operation)
    op.erase()


def is_unused(op: ir.Operation) -> bool:
    """Whether nothing is made of what an operation makes."""
    users = [use.owner.operation for made in op.results for use in made.uses]
    return bool(op.results) and all(map(is_unused, users))


def low_of(expr: ir.AffineExpr, place: int) -> int:
    """How far the inside of a border begins behind it along an axis."""
    low = -offset_of(expr)
    if expr - offset_of(expr) != ir.AffineExpr.get_dim(place) or low < 0:
        raise Error("a border is around all of another stage, its axes in their order")
    return low


def part_of(
    part: ir.Operation, source: ir.Value, lows: Sequence[int], value: ir.Attribute
) -> ir.Value:
    """A part of a border with what is inside of it."""
    whole = ir.RankedTensorType(part.operands[0].type).shape
    sizes = extents_of(source)
    starts, extents = bounds_of(part)
    spans = [
        PaddedSpan.of(*row)
        for row in zip(starts, extents, lows, sizes, whole, strict=True)
    ]
    element = ir.RankedTensorType(source.type).element_type
    made: ir.Value = tensor.empty([x.extent for x in spans], element)
    zeros: list[Number] = [0] * len(spans)
    for place, span in enumerate(spans):
        for begin, count in span.strips:
            at = [*zeros[:place], begin, *zeros[place + 1 :]]
            size = [*extents[:place], count, *extents[place + 1 :]]
            strip = pointwise(
                [], sliced(made, at, size), lambda: arith.constant(element, value)
            )
            made = inserted(strip, made, at, size)
    counts = [span.count for span in spans]
    inside = sliced(source, [span.begin for span in spans], counts)
    return inserted(inside, made, [span.front for span in spans], counts)


def number(word: str, form: Form, *given: Number) -> Number:
    """An affine operation of numbers, or what it is of numbers that are known."""
    values = [x for x in given if not isinstance(x, int)]
    dims = iter(range(len(values)))
    terms = [
        ir.AffineConstantExpr.get(x)
        if isinstance(x, int)
        else ir.AffineDimExpr.get(next(dims))
        for x in given
    ]
    rows = form(terms)
    exprs = [ir.AffineConstantExpr.get(x) if isinstance(x, int) else x for x in rows]
    known = [x.value for x in exprs if isinstance(x, ir.AffineConstantExpr)]
    if len(known) == len(exprs):
        return {"max": max, "min": min, "apply": lambda x: x[0]}[word](known)
    indexing = ir.AffineMap.get(len(values), 0, exprs)
    words = {"map": ir.AffineMapAttr.get(indexing)}
    kind = ir.IndexType.get()
    return ir.Operation.create(f"affine.{word}", [kind], values, words).results[0]
