"""Integers that are computed from sizes: only what is right for all sizes alike.

Samples cannot tell `min(length, 512)` from `length`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.fit_floors import Samples, divided
from nanoloom.dynamic.polynomial import Dims, found
from nanoloom.dynamic.sample_walk import Visit
from nanoloom.dynamic.samples import are_of_images
from nanoloom.graph.operator_spec import OfSizes
from nanoloom.graph.operator_specs import named

# Polynomials of their inputs, or only moved.
WHOLE = named(lambda spec: spec.of_sizes is OfSizes.POLYNOMIAL)
# Only moved, where the inputs from the second on say the same for all sizes.
MOVED = named(lambda spec: spec.of_sizes is OfSizes.MOVED)
# Whose outputs are made of nothing but the numbers of their inputs.
MOVES = {*WHOLE, *MOVED} - {"Shape", "Size"}

DIVISIONS = ("Div", "Mod")
# Of one number they are that number.
OF_SEVERAL = ("Max", "Min", "ReduceMax", "ReduceMin")


def is_right(visits: Sequence[Visit], samples: Sequence[Dims]) -> bool:
    """Whether other sizes than the samples give the same polynomials."""
    first = visits[0]
    rows = [
        [None if x is None else x.numbers for x in inputs]
        for inputs in zip(*[v.inputs for v in visits], strict=True)
    ]
    match first.operator:
        case name if name in WHOLE:
            right = True
        case name if name in MOVED:
            right = all(alike(row) for row in rows[1:])
        case name if name in OF_SEVERAL and all(map(is_one_number, rows[0])):
            right = all(alike(row) for row in rows[1:]) and (
                name.startswith("Reduce") or not rows[1:]
            )
        case "Where":
            right = alike(rows[0])
        case "Equal":
            right = is_never_equal(rows[0], rows[1], samples)
        case "Div":
            right = alike(rows[1]) and all(map(is_whole, *rows))
        case _:
            right = all(alike(row) for row in rows)
    return right


def rounded_down(
    visits: Sequence[Visit], samples: Samples
) -> list[tuple[int, ...]] | None:
    """What may not be below 0 where sizes are divided by numbers; samples get floors.

    A remainder is what a floor leaves.  None for what is no such division.
    """
    columns = None
    if are_of_images(samples) and is_division(visits):
        columns = quotients(visits)
    try:
        for size, over in columns or ():
            divided(size, over, samples)
    except NotDynamic:
        return None
    return None if columns is None else [x for x, _ in columns if len(set(x)) > 1]


def is_division(visits: Sequence[Visit]) -> bool:
    """Whether whole numbers are divided by the same ones above 0 in all samples."""
    return visits[0].operator in DIVISIONS and quotients(visits) is not None


def quotients(visits: Sequence[Visit]) -> list[tuple[tuple[int, ...], int]] | None:
    """What is divided in each sample and the number above 0 that divides it."""
    made: list[np.ndarray] = []
    for visit in visits:
        given = [None if x is None else x.numbers for x in visit.inputs]
        whole = [x for x in given if x is not None and x.size and x.dtype.kind in "iu"]
        if len(whole) < len(given) or whole[1].min() < 1:
            return None
        made.append(np.stack(np.broadcast_arrays(*whole)).reshape(2, -1))
    if len({each.shape for each in made}) > 1 or not alike([m[1] for m in made]):
        return None
    columns = zip(*[m[0].tolist() for m in made], strict=True)
    return list(zip(columns, made[0][1].tolist(), strict=True))


def alike(row: Sequence[np.ndarray | None]) -> bool:
    """Whether an input is the same for all samples."""
    first = row[0]
    if first is None:
        return all(other is None for other in row)
    return all(x is not None and np.array_equal(first, x) for x in row[1:])


def is_dynamic(row: Sequence[np.ndarray | None]) -> bool:
    """Whether a constant is another one for other sizes, as far as it is known.

    The height that is taken out of an image's shape is the same for each batch.
    """
    return any(x is None for x in row) or not alike(row)


def is_never_equal(
    left: Sequence[np.ndarray | None],
    right: Sequence[np.ndarray | None],
    samples: Sequence[Dims],
) -> bool:
    """Whether sizes that no dimension makes smaller meet what is below 0 only."""
    if any(x is None for x in (*left, *right)):
        return False
    try:
        x, y = (np.array([r for r in row if r is not None]) for row in (left, right))
        x, y = np.broadcast_arrays(x, y)
    except ValueError:  # other numbers of elements
        return False
    columns = x.reshape(len(samples), -1).T, y.reshape(len(samples), -1).T
    for one, other in zip(*columns, strict=True):
        if (one == one[0]).all() and (other == other[0]).all():
            continue
        size, number = (one, other) if other[0] < 0 else (other, one)
        if number[0] >= 0 or (number != number[0]).any() or not grows(size, samples):
            return False
    return True


def grows(numbers: np.ndarray, samples: Sequence[Dims]) -> bool:
    """Whether a size is a sum of positive terms, so that it is never below 0."""
    size = found([int(n) for n in numbers], samples)
    return size is not None and all(coefficient >= 0 for coefficient, _ in size.terms)


def is_one_number(x: np.ndarray | None) -> bool:
    return x is not None and x.size == 1


def is_whole(x: np.ndarray | None, y: np.ndarray | None) -> bool:
    """Whether nothing is left over; not of numbers that are none of `Visit`'s."""
    if x is None or y is None:
        return False
    return bool(np.all(y != 0)) and bool(np.all(x % np.where(y == 0, 1, y) == 0))
