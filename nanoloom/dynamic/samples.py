"""Numbers that stand for dimensions while a program for all sizes is made.

Primes that nothing else in a model is: products of them tell which dimensions they come
from, and no size is one that other code is made for, as 1 and multiples of vectors are.
They are in an order in which few sums of dimensions and a number are another size, and
near each other: what is chosen by costs is chosen alike for all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from nanoloom.dynamic.floor_division import Floor, floors_of

# Samples: a size has two numbers at most (polynomial.py), the third proves it.
COUNT = 3
FEW = (3, 7, 5, 13, 17, 19, 11, 23, 29)
# Lengths: the second ones for models that take no longer ones.  Thrice the first one,
# as with the first batch, is one less than a multiple of 8: tiles of 8 rows are no
# worse than others, and up to 8 rows read the weights once.
MANY = (149, 139, 127, 131, 199, 173, 163, 107, 101, 179, 113, 197)
SHORT = (11, 19, 23, 29, 31, 37, 47, 43, 41, 53, 59, 61)
# Of recurrences: a step has many rows, too.  The first of three is what is scheduled
# for: one less than a multiple of 8, so that tiles of 8 rows, as a batch of 8 has, are
# no worse than others.
STEPS = (127, 163, 131, 151, 197, 193, 167, 157, 101, 191, 149, 181)
Samples = tuple[Mapping[str, int], ...]
# Of images: even and odd ones, with much that is left over when they are divided by 2,
# 4, ... 32, so that floors are told apart.  Two numbers are found, two prove them.  A
# third side leaves volumes below 2 ** 24 elements, a number that f32 has exactly.
IMAGES = ((203, 298, 342, 170), (213, 227, 362, 309), (107, 118, 83, 94))
# Four sides are those of two images, as of one that is made larger or smaller.
TWO_IMAGES = (*IMAGES[:2], (371, 247, 310, 405), (283, 398, 186, 331))
# Of the one length of a signal, which many strides divide by hundreds: as many rows are
# left of it as of an image.
SIGNAL = ((6469, 9618, 7844, 5107),)
# The same for images that are multiples of what all strides of a network make.
MULTIPLE = 32
PARTS = ((5, 8, 11, 7), (7, 6, 9, 10), (6, 11, 5, 8))
BATCHES = (3, 5, 7, 11)


def samples_of(
    shapes: Sequence[Sequence[int | str]],
    names: Sequence[str],
    lengths: Sequence[int] = MANY,
) -> Samples:
    """Samples of these dimensions; none where there are more than primes.

    A first axis is a batch: there are few of those, unless there is one row in each, as
    in a sequence of frames, and many of STEPS.
    """
    rows = () if lengths == STEPS else shapes
    first = {shape[0] for shape in rows if has_rows(shape[1:])}
    few = [name for name in names if name in first]
    many = [name for name in names if name not in first]
    others = [n for n in lengths if n not in FEW[: COUNT * len(few)]]
    if len(few) * COUNT > len(FEW) or len(many) * COUNT > len(others):
        return ()
    made = tuple(
        {name: FEW[COUNT * i + k] for i, name in enumerate(few)}
        | {name: others[COUNT * i + k] for i, name in enumerate(many)}
        for k in range(COUNT)
    )
    numbers = [number for sample in made for number in sample.values()]
    return made if len(set(numbers)) == len(numbers) else ()


def has_rows(shape: Sequence[int | str]) -> bool:
    """Whether there are several rows of numbers in it."""
    return any(isinstance(d, str) for d in shape) or prod(map(int, shape[:-1])) > 1


def image_samples(
    shapes: Sequence[Sequence[int | str]],
    names: Sequence[str],
    numbers: Sequence[Sequence[int]],
    multiple: int,
) -> Samples:
    """Samples of one to four sides of images, and of a batch; () for other inputs.

    Of a signal's length as well, of which steps take a part; the axis of a tensor that
    has no other is one.

    Of a batch alone only where it is no question what images are multiples of.
    """
    first = {shape[0] for shape in shapes if len(shape) > 1}
    sides = [name for name in names if name not in first]
    within = {d for shape in shapes for d in shape[1:] or shape}
    batches = [name for name in names if name in first]
    few = len(sides) <= len(numbers) and len(batches) <= 1
    few = few and (bool(sides) or multiple == 1)
    if not few or not within.issuperset(sides):
        return ()
    return tuple(
        dict.fromkeys(batches, BATCHES[k])
        | {name: multiple * row[k] for name, row in zip(sides, numbers, strict=False)}
        | {
            Floor(name, 0, multiple).name: row[k]
            for name, row in zip(sides, numbers, strict=False)
            if multiple > 1
        }
        for k in range(len(BATCHES))
    )


def tried_samples(
    shapes: Sequence[Sequence[int | str]], names: Sequence[str], *, floats: bool = False
) -> tuple[Samples, ...]:
    """What a model is bound to, one after the other until it takes them.

    floats: whether inputs are none of integers, as texts are, whose masks have all
    pairs of tokens.
    """
    tried = [samples_of(shapes, names, lengths) for lengths in (STEPS, MANY, SHORT)]
    if not any(tried[1:]):  # more batches than there are small numbers
        tried.append(samples_of((), names))
    sides = [image_samples(shapes, names, rows, 1) for rows in (IMAGES, TWO_IMAGES)]
    sides = sides[:1] if sides[0] else sides[1:]
    if floats and all(open_axes(shape) < 2 for shape in shapes):
        sides.append(image_samples(shapes, names, SIGNAL, 1))
    tried += reversed(sides) if all(map(is_recorded, shapes)) else sides
    tried.append(image_samples(shapes, names, PARTS, MULTIPLE))
    return tuple(samples for samples in tried if samples)


def open_axes(shape: Sequence[int | str]) -> int:
    """How many of them are sizes, but for the batch."""
    return sum(isinstance(d, str) for d in shape[1:])


def is_recorded(shape: Sequence[int | str]) -> bool:
    """Whether it is one number after the other: a signal, and not made of one."""
    return all(isinstance(d, str) or d == 1 for d in shape)


def proving(samples: Samples) -> Samples:
    """Those that are enough to find sizes and prove them.

    Of a dimension of which no floors are taken, COUNT, also where images were looked
    at: each one more is the whole model once more.
    """
    return samples[:COUNT] if len(samples[0]) == 1 else samples


def multiple_of(samples: Sequence[Mapping[str, int]]) -> int:
    """What heights and widths are multiples of."""
    return MULTIPLE if samples and floors_of(samples[0]) else 1


def are_of_steps(samples: Sequence[Mapping[str, int]]) -> bool:
    """Whether they are for models with recurrences alone (recurrent_batch.py)."""
    return set(samples[0].values()) <= {*STEPS[::COUNT]}


def are_of_images(samples: Sequence[Mapping[str, int]]) -> bool:
    """Whether they tell floors of dimensions apart."""
    return len(samples) > COUNT
