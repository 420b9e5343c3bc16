"""Two programs for every size as one, whose sizes say at each call which of them runs.

    up to so many pixels, or rows   the calls of the one
    above                           those of the other

They compute the same in other ways (Winograd's method in other tiles; trees by walking
down them, or by comparing with all nodes).  Each is a repeat of one trip or none.
Kernels and weights that both have are there once, and both use the same slots of the
arena.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import prod

from nanoloom.dynamic.polynomial import Dims, Size, found
from nanoloom.interface.bounds import Bounds
from nanoloom.kernels.program import Program
from nanoloom.memory.calls import Call, Place, Repeated, Storage

AXES = 4  # of images: a batch, channels, rows, columns
FEW = 2 / 3  # of one image of the first sample are few pixels, at most


SMALL_BATCH = 4  # rows walk down trees as fast as a vector of them is compared


@dataclass(frozen=True)
class Points:
    """How many come in, pixels of a batch or rows, and how many are few."""

    count: Size
    few: int

    def are_few(self, bounds: Mapping[str, Bounds]) -> bool | None:
        """Whether they are for all dimensions within bounds; None for some."""
        names = {name for _, names in self.count.terms for name in names}
        given = {name: bounds.get(name, Bounds()) for name in names}
        if self.count.of({name: b.least for name, b in given.items()}) > self.few:
            return False
        most = self.count.of({name: b.most for name, b in given.items()})
        return True if most <= self.few else None


def pixels_of(programs: Sequence[Program], samples: Sequence[Dims]) -> Points | None:
    """Those of the first input of images; None where there is none.

    programs: those of the samples.
    """
    for specs in zip(*[program.inputs for program in programs], strict=True):
        shapes = [spec.shape for spec in specs]
        if len(shapes[0]) == AXES:
            count = found([n * h * w for n, _, h, w in shapes], samples)
            one = prod(shapes[0][2:])
            return None if count is None else Points(count, int(FEW * one))
    return None


def rows_of(programs: Sequence[Program], samples: Sequence[Dims]) -> Points | None:
    """The rows of the first input; None where they have no axis."""
    shapes = [program.inputs[0].shape for program in programs if program.inputs]
    if not shapes or not all(shapes):
        return None
    count = found([shape[0] for shape in shapes], samples)
    return None if count is None else Points(count, SMALL_BATCH)


def multiversion(few: Program, many: Program, points: Points) -> Program:
    """The program that is `few` where there are few points, else `many`.

    Words of `few` begin with those of `many`.  Neither has checks: a word of calls that
    did not run would say what it said before.
    """
    assert few.sizes is not None and many.sizes is not None
    assert not few.checks and not many.checks
    word = few.sizes.words.index(points.count)
    slots = tuple(
        tuple(dict.fromkeys((*one, *other)))
        for one, other in zip_longest(
            many.sizes.buffers, few.sizes.buffers, fillvalue=()
        )
    )
    known, behind = len(many.parameters), len(many.calls)
    return replace(
        many,
        kernels=many.kernels | few.kernels,
        calls=(*many.calls, *(moved(call, known) for call in few.calls)),
        parameters=(*many.parameters, *few.parameters),
        offsets=tuple(range(len(slots))),
        repeats=(
            Repeated(0, behind, 1, within=(word, Bounds(points.few + 1))),
            *many.repeats,
            Repeated(behind, len(few.calls), 1, within=(word, Bounds(0, points.few))),
            *(replace(x, first=x.first + behind) for x in few.repeats),
        ),
        sizes=replace(
            many.sizes,
            words=few.sizes.words,
            buffers=slots,
            floors=few.sizes.floors,
        ),
    )


def moved(call: Call, known: int) -> Call:
    """A call whose parameters stand behind so many others."""

    def place(each: Place) -> Place:
        if each.storage is not Storage.PARAMETER:
            return each
        return replace(each, index=each.index + known)

    return replace(call, arguments=tuple(map(place, call.arguments)))
