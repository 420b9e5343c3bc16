"""Names of weights by their content: the same one in every process and every model."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from nanoloom.cache import key
from nanoloom.cache.digest import of
from nanoloom.weights.weight import Derivation, Source, Weight


def weight_key(weight: Weight, contents: dict[Source, str]) -> str:
    """The name of what is written of a weight: of its source's numbers and changes.

    contents: digests of sources that are known; this one's is added.
    """
    source = weight.source
    if source not in contents:
        contents[source] = content(source)
    return key("weight", contents[source], [parts(each) for each in weight.changes])


def content(source: Source) -> str:
    """The digest of an array of the model, a piece of it in memory at a time."""
    whole = Weight(source)
    pieces = [of(piece.reshape(-1).view(np.uint8).data) for piece in whole.written()]
    source.release()
    return of(source.shape, str(source.dtype), pieces)


def parts(change: Derivation) -> tuple[object, ...]:
    """A change as a part of a key: its type's name and its fields."""
    made = type(change)
    values = [getattr(change, field.name) for field in fields(change)]  # type: ignore[arg-type] - every change is a dataclass
    plain = [str(v) if isinstance(v, np.dtype) else v for v in values]
    return (made.__module__, made.__qualname__, *plain)
