"""A model whose dimensions share a name where arrays give them one size.

Exporters give each dimension a name of its own (`unk__12`), or none, though all inputs
have one batch and one length.  Where that is refused as sizes of one program, those of
one axis that are alike in the first call are taken for one.  A call in which they are
not makes them several again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nanoloom.cache import Cache
from nanoloom.interface.expressions import names
from nanoloom.model.source import Source
from nanoloom.model.split_symbols import SplitSymbols, split_by_sizes

Shapes = Mapping[str, Sequence[int | str]]


class JoinedSymbols(SplitSymbols):
    """shared: the name that each symbol of the model has by now, its first one's."""

    def __init__(
        self, source: Source, shapes: Shapes, shared: Mapping[str, str]
    ) -> None:
        apart = {
            (name, axis): shared[d]
            for name, shape in shapes.items()
            for axis, d in enumerate(shape)
            if isinstance(d, str) and shared.get(d, d) != d
        }
        super().__init__(source, apart)
        self.shared = shared


def with_other_names(
    source: Source, cache: Cache, shapes: Mapping[str, Sequence[int]], given: set[str]
) -> Source | None:
    """The model with names that are worth a try where its sizes are refused.

    given: names that a user says something of, which stay.  None where there are none;
    for names that were joined already, the model as it is, which stays so.
    """
    if isinstance(source, JoinedSymbols):
        return source.source
    if isinstance(source, SplitSymbols) or not source.joins:
        return None
    declared = {x.name: x.shape for x in source.interface(cache)[0]}
    sizes = sizes_of(declared, shapes)
    if 0 in sizes.values():  # a past of nothing is like no other
        return None
    axes = first_axes(declared, given)
    return joined(source, declared, {d: (axes[d], sizes[d]) for d in axes})


def joined(
    source: Source, shapes: Shapes, kinds: Mapping[str, tuple[object, int]]
) -> JoinedSymbols | None:
    """The model with one name for all symbols of a kind; None if each has its own."""
    shared = names_by_kind(shapes, kinds)
    if all(name == d for d, name in shared.items()):
        return None
    return JoinedSymbols(source, shapes, shared)


def names_by_kind(
    shapes: Shapes, kinds: Mapping[str, tuple[object, int]]
) -> dict[str, str]:
    """The first symbol of its kind for each.

    Those that are in expressions keep their names, which others of their kind take.
    """
    fixed = {d: kinds[d] for d in sorted(in_expressions(shapes)) if d in kinds}
    first: dict[tuple[object, int], str] = {}
    for name, kind in (*fixed.items(), *kinds.items()):
        first.setdefault(kind, name)
    return {d: d if d in fixed else first[kind] for d, kind in kinds.items()}


def parted_by_sizes(
    source: Source, cache: Cache, arrays: Mapping[str, object]
) -> Source:
    """The model with a name for each size that arrays give, where one had several.

    Warns of those that the model itself calls by one name.
    """
    if not isinstance(source, JoinedSymbols):
        return split_by_sizes(source, cache, arrays)
    shapes = {x.name: x.shape for x in source.source.interface(cache)[0]}
    given = {name: np.shape(arrays[name]) for name in shapes}  # type: ignore[arg-type] - any array
    sizes, shared = sizes_of(shapes, given), source.shared
    kinds = {d: (shared[d], sizes[d]) for d in shared}
    made = joined(source.source, shapes, kinds)
    source.source.joins = made is not None  # or calls would join and part in turns
    return made or source.source


def sizes_of(shapes: Shapes, given: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """What arrays of these shapes give each symbol, the first of its places."""
    found: dict[str, int] = {}
    for name, shape in shapes.items():
        for d, size in zip(shape, given[name], strict=True):
            if isinstance(d, str):
                found.setdefault(d, size)
    return found


def first_axes(shapes: Shapes, given: Iterable[str]) -> dict[str, int]:
    """The axis on which each symbol is first that may share a name: one that a user
    says nothing of, and that is no expression."""
    found: dict[str, int] = {}
    for shape in shapes.values():
        for axis, d in enumerate(shape):
            if isinstance(d, str):
                found.setdefault(d, axis)
    kept = {*given, *(d for d in found if is_expression(d))}
    return {d: axis for d, axis in found.items() if d not in kept}


def is_expression(d: str) -> bool:
    return (names(d) or {d}) != {d}


def in_expressions(shapes: Shapes) -> set[str]:
    """The symbols that expressions are of."""
    each = {d for shape in shapes.values() for d in shape if isinstance(d, str)}
    return {name for d in each if is_expression(d) for name in names(d) or ()}
