"""A model some of whose dimensions have names of their own, which share one in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nanoloom.cache import Cache
from nanoloom.errors import ModelWarning
from nanoloom.frontend.symbol_places import Place, named_places, places_by_size, renamed
from nanoloom.interface.interface import Interface
from nanoloom.model.source import Source

if TYPE_CHECKING:
    import onnx_ir


class SplitSymbols(Source):
    """The same model and digest: a program of known sizes is the same one.

    apart: the names of these places of inputs.
    """

    def __init__(self, source: Source, apart: Mapping[Place, str]) -> None:
        self.given, self._hashed, self._model = source.given, source._hashed, None
        self.source, self.apart, self.texts = source, apart, source.texts
        self.conditions = source.conditions
        self._simplified = None

    def unchanged(self) -> str:
        return self.source.unchanged()

    def model(self) -> onnx_ir.Model:
        if self._model is None:
            self._model = with_names(self.source.model(), self.apart)
        return self._model

    def simplified(self) -> onnx_ir.Model:
        if self._simplified is None:
            self._simplified = with_names(self.source.simplified(), self.apart)
        return self._simplified

    def interface(
        self, cache: Cache
    ) -> tuple[tuple[Interface, ...], tuple[Interface, ...]]:
        inputs, outputs = self.source.interface(cache)
        self.conditions = self.source.conditions
        shapes = renamed({x.name: x.shape for x in inputs}, self.apart)
        made = tuple(replace(x, shape=shapes[x.name]) for x in inputs)
        self.texts = replace(self.source.texts, entries=made)
        if not self.texts.steps:
            self.texts = replace(self.texts, inputs=made)
        return made, outputs


def with_names(model: onnx_ir.Model, apart: Mapping[Place, str]) -> onnx_ir.Model:
    """A copy of a model whose inputs have these names for dimensions."""
    import onnx_ir

    from nanoloom.frontend.declared import CONTRADICTIONS, contradictions_of

    made = model.clone()
    made.meta[CONTRADICTIONS] = contradictions_of(model)
    for value in made.graph.inputs:
        if value.shape is not None:
            rows = enumerate(value.shape)
            value.shape = onnx_ir.Shape(
                [apart.get((str(value.name), axis), d) for axis, d in rows]
            )
    return made


def split_by_names(source: Source, cache: Cache, names: Iterable[str]) -> Source:
    """The model with those names of single places that a user gives numbers for."""
    if isinstance(source, SplitSymbols):
        return source
    shapes = {x.name: x.shape for x in source.interface(cache)[0]}
    apart = named_places(shapes, names)
    return SplitSymbols(source, apart) if apart else source


def split_by_sizes(
    source: Source, cache: Cache, arrays: Mapping[str, object]
) -> SplitSymbols:
    """The model with a name for each size that arrays give; warns of new ones."""
    before: Mapping[Place, str] = {}
    if isinstance(source, SplitSymbols):
        source, before = source.source, source.apart
    shapes = {x.name: x.shape for x in source.interface(cache)[0]}
    sizes = {name: np.shape(arrays[name]) for name in shapes}  # type: ignore[arg-type] - any array
    apart = places_by_size(shapes, before, sizes)
    told = [
        f"{shapes[name][axis]} is {sizes[name][axis]} on axis {axis} of input {name},"
        f" where it is called {called}"
        for (name, axis), called in apart.items()
        if before.get((name, axis)) != called
    ]
    text = f"a dimension of one name has several sizes: {'; '.join(told)}"
    warnings.warn(text, ModelWarning, stacklevel=2)
    return SplitSymbols(source, apart)
