"""GridSample of many channels: where to read is found once for all channels of a pixel.

    along each side:  taps[n, y, x] = (index, weight, inside)
    out[n, y, x, c] = sum over taps of weight * image[n, index, index, c]

With the channels last what is read at a place is a row, as vectors are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, Builder, Map, computed_as
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor


@dataclass(frozen=True)
class Tap:
    """One neighbour along an axis: where, how much, and whether it is in the image."""

    index: Scalar
    weight: Scalar | None
    inside: Scalar | None

    @property
    def parts(self) -> list[Scalar]:
        return [x for x in (self.index, self.weight, self.inside) if x is not None]


@dataclass(frozen=True)
class Along:
    """The taps along a side at a normalized coordinate: `count`, all with weights.

    bordered: they also say whether they are in the image.
    """

    taps: Callable[[Scalar], list[Tap]]
    count: int
    bordered: bool

    def tables(self, b: Builder, grid: Tensor, place: int) -> list[Tensor]:
        """What the taps consist of, at the coordinates at a place of the grid."""
        shape, rank = grid.shape[:-1], grid.rank - 1
        along = [ir.AffineDimExpr.get(d) for d in range(rank)]
        reads = Map.get(rank, 0, [*along, ir.AffineConstantExpr.get(place)])
        tap = INT64, computed_as(grid.dtype), *([BOOL] if self.bordered else [])
        outputs = [Tensor(shape, kind, b.empty(shape, kind)) for kind in tap]
        return b.generic(
            [(grid, reads)],
            [(x, Map.get_identity(rank)) for x in outputs * self.count],
            [PARALLEL] * rank,
            lambda at, *_: [part for tap in self.taps(at) for part in tap.parts],
        )

    def taken(self, given: Iterator[Scalar]) -> list[Tap]:
        """The taps of numbers of these tables, in their order."""
        found: list[Tap] = []
        for _ in range(self.count):
            index, weight = next(given), next(given)
            found.append(Tap(index, weight, next(given) if self.bordered else None))
        return found


def sampled_rows(
    b: Builder, x: Tensor, grid: Tensor, sides: Sequence[Along], out: Sequence[int]
) -> Tensor:
    """[n, c, *out] of an image [n, c, *image] at a grid [n, *out, d]; sides: outermost
    first, as the image has them."""
    image = b.transpose(x, [0, *range(2, x.rank), 1])
    origin, rank, last = b.value(image), len(out) + 2, len(sides) - 1
    pixels = dims(rank, range(rank - 1))
    tables = [side.tables(b, grid, last - d) for d, side in enumerate(sides)]

    def body(*given: Scalar) -> Scalar:
        numbers = iter(given)
        taps = [side.taken(numbers) for side in sides]
        channel = [position(rank - 1)]
        return gathered(b, image, origin, taps, [position(0)], channel)

    read = [(table, pixels) for side in tables for table in side]
    made = map_generic(b, (x.shape[0], *out, x.shape[1]), x.dtype, read, body)
    return b.transpose(made, [0, rank - 1, *range(1, rank - 1)])


def gathered(
    b: Builder,
    x: Tensor,
    origin: ir.Value,
    taps: Sequence[list[Tap]],
    places: list[Scalar],
    behind: list[Scalar],
    inside: Sequence[Scalar] = (),
) -> Scalar:
    """The weighted sum over the neighbours, one axis inside the other.

    places, behind: of the axes in front of those with taps, and behind them.
    """
    if not taps:
        element = b.load(origin, x.dtype, [*places, *behind])
        if inside:
            every = inside[0]
            for one in inside[1:]:
                every = every & one
            assert every.dtype == BOOL
            element = select(every, element, constant(0, element.dtype))
        return element
    total: Scalar | None = None
    for tap in taps[0]:
        conditions = [*inside, *([] if tap.inside is None else [tap.inside])]
        here = [*places, tap.index]
        part = gathered(b, x, origin, taps[1:], here, behind, conditions)
        if tap.weight is not None:
            part = part * tap.weight.cast(part.dtype)
        total = part if total is None else total + part
    assert total is not None
    return total
