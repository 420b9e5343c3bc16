"""Which open dimensions a node's inputs and outputs have, by their extents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nanoloom.dynamic.floor_division import dim_of
from nanoloom.dynamic.polynomial import Dims, found
from nanoloom.dynamic.sample_walk import Visit


def dims_of(visits: Sequence[Visit], samples: Sequence[Dims]) -> set[str]:
    """The dimensions; all that there are where nothing says which."""
    made: set[str] = set()
    for extents in varying(visits):
        if size := found(extents, samples):
            made |= {dim_of(name) for _, names in size.terms for name in names}
    return made or {dim_of(name) for name in samples[0]}


def varying(visits: Sequence[Visit]) -> Iterator[tuple[int, ...]]:
    """The extents of each axis that are not the same for all samples."""
    for row in zip(*[(*v.inputs, *v.outputs) for v in visits], strict=True):
        shapes = [x.shape for x in row if x is not None and x.shape is not None]
        if len(shapes) == len(visits) and len({len(shape) for shape in shapes}) == 1:
            yield from (x for x in zip(*shapes, strict=True) if len(set(x)) > 1)
