"""What a loaded library says of its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nanoloom.interface.bounds import Bounds
from nanoloom.runtime import layout

Shape: TypeAlias = tuple[int | str, ...]


@dataclass(frozen=True)
class OpenSizes:
    """The sizes of a program, in their order, and what each may be.

    inputs, outputs: their shapes; what sizes decide is a text: `2 * batch`.
    """

    bounds: Mapping[str, Bounds]
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.bounds)


def open_sizes(entry: layout.Library, inputs: int, outputs: int) -> OpenSizes | None:
    """None for a program whose shapes are known.  inputs, outputs: how many it has."""
    if not entry.sizes.contents:
        return None
    sizes = entry.sizes.contents.contents
    shapes = [shape(sizes.shape_texts[i].decode()) for i in range(inputs + outputs)]
    bounds = {
        sizes.dims[i].decode(): Bounds(
            sizes.least[i], sizes.most[i], bool(sizes.or_none[i])
        )
        for i in range(sizes.dim_count)
    }
    return OpenSizes(bounds, tuple(shapes[:inputs]), tuple(shapes[inputs:]))


def shape(text: str) -> Shape:
    """`[batch, 64]` as C has it."""
    axes = text[1:-1].split(", ") if text != "[]" else []
    return tuple(int(axis) if axis.isdecimal() else axis for axis in axes)
