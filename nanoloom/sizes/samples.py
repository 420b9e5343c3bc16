"""Numbers that stand for dimensions while a program for all sizes is made.

Primes that nothing else in a model is: products of them tell which dimensions they come
from, and no size is one that other code is made for, as 1 and multiples of vectors are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

COUNT = (
    3  # samples: a size has two numbers at most (sizes/size.py), the third proves it
)
FEW = (3, 5, 7, 11, 13, 17, 19, 23, 29)
# Lengths: the second ones for models that take no longer ones.
MANY = (131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191)
SHORT = (11, 13, 17, 19, 23, 29, 31, 37, 41)
Samples = tuple[Mapping[str, int], ...]


def samples_of(
    shapes: Sequence[Sequence[int | str]],
    names: Sequence[str],
    lengths: Sequence[int] = MANY,
) -> Samples:
    """Samples of these dimensions; none where there are more than primes.

    A first axis is a batch: there are few of those, unless there is one row in each, as
    in a sequence of frames.
    """
    first = {shape[0] for shape in shapes if has_rows(shape[1:])}
    few = [name for name in names if name in first]
    many = [name for name in names if name not in first]
    if len(few) * COUNT > len(FEW) or len(many) * COUNT > len(lengths):
        return ()
    made = tuple(
        {name: FEW[COUNT * i + k] for i, name in enumerate(few)}
        | {name: lengths[COUNT * i + k] for i, name in enumerate(many)}
        for k in range(COUNT)
    )
    numbers = [number for sample in made for number in sample.values()]
    return made if len(set(numbers)) == len(numbers) else ()


def has_rows(shape: Sequence[int | str]) -> bool:
    """Whether there are several rows of numbers in it."""
    return any(isinstance(d, str) for d in shape) or prod(map(int, shape[:-1])) > 1


def tried_samples(
    shapes: Sequence[Sequence[int | str]], names: Sequence[str]
) -> tuple[Samples, ...]:
    """What a model is bound to, one after the other until it takes them."""
    tried = (samples_of(shapes, names, lengths) for lengths in (MANY, SHORT))
    return tuple(samples for samples in tried if samples)
