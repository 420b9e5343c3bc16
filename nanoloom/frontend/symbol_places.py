"""Places of one name: a dimension of inputs that give it several sizes.

ONNX Runtime takes a name for a hint, and models give one to what differs.  The first
place of `n` keeps it; the second is `n.2` then, the third `n.3`.  Needs no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

Place = tuple[str, int]  # an input, and an axis of it
Shapes = Mapping[str, Sequence[int | str]]


def own_names(shapes: Shapes) -> dict[Place, str]:
    """What a place is called that has a size of its own: all but the first of a name.

    No place gets a name that the model has already.
    """
    texts = {str(d) for shape in shapes.values() for d in shape}
    seen: dict[str, int] = {}
    found: dict[Place, str] = {}
    for name, shape in shapes.items():
        for axis, d in enumerate(shape):
            if not isinstance(d, str):
                continue
            seen[d] = seen.get(d, 0) + 1
            if seen[d] > 1:
                found[name, axis] = own = fresh(f"{d}.{seen[d]}", texts)
                texts.add(own)
    return found


def fresh(name: str, taken: Set[str]) -> str:
    return fresh(f"{name}.2", taken) if name in taken else name


def named_places(shapes: Shapes, names: Iterable[str]) -> dict[Place, str]:
    """The places that a user calls by names of their own."""
    wanted = set(names)
    return {place: n for place, n in own_names(shapes).items() if n in wanted}


def places_by_size(
    shapes: Shapes, apart: Mapping[Place, str], sizes: Mapping[str, Sequence[int]]
) -> dict[Place, str]:
    """The names of places so that all places of one have one size.

    apart: names that places have by now.  sizes: the shapes of arrays.  Places that
    differed stay apart; those of a new size are called after their first.
    """
    own = own_names(shapes)
    found = dict(apart)
    groups: dict[tuple[str, int], str] = {}
    first: set[str] = set()
    for name, shape in shapes.items():
        for axis, text in enumerate(shape):
            place = name, axis
            if not isinstance(text, str):
                continue
            called, size = apart.get(place, text), sizes[name][axis]
            if (called, size) not in groups:
                groups[called, size] = (
                    own.get(place, text) if called in first else called
                )
                first.add(called)
            if groups[called, size] != text:
                found[place] = groups[called, size]
    return found


def renamed(
    shapes: Shapes, apart: Mapping[Place, str]
) -> dict[str, tuple[int | str, ...]]:
    return {
        name: tuple(apart.get((name, axis), d) for axis, d in enumerate(shape))
        for name, shape in shapes.items()
    }
