"""A model whose dimensions have no numbers yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.sizes.bounds import Bounds
from nanoloom.sizes.samples import Samples
from nanoloom.sizes.size import Dims

if TYPE_CHECKING:
    from nanoloom.compiler import Model


@dataclass(frozen=True)
class OpenModel:
    """How to bind it to numbers; samples of them stand for the others.

    bounds: of the dimensions by name.  inputs: their shapes as the model declares them.
    """

    bound: Callable[[Dims], Model]
    samples: Samples
    bounds: Mapping[str, Bounds]
    inputs: Sequence[Sequence[int | str]]
