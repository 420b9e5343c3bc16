"""Symbolic dimensions: their names, and the numbers that take their places.

A dimension of an input is a number, a name (`batch`), an expression of names
(`past + 1`) or unknown; an unknown one is called after its input and axis (`ids.0`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from nanoloom.errors import InputError, ModelError
from nanoloom.frontend.declared import (
    AS_WRITTEN,
    CONTRADICTIONS,
    contradictions_of,
)
from nanoloom.frontend.memory_claims import check_sizes
from nanoloom.interface.dimension_values import check_known, checked_dimension
from nanoloom.interface.expressions import evaluate, names

UNKNOWN = "?"
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def input_dims(model: ir.Model) -> dict[str, tuple[int | str, ...]]:
    """The dimensions of every tensor input, each a number or a name.

    Raises ModelError for an input of unknown rank.
    """
    found: dict[str, tuple[int | str, ...]] = {}
    for value in model.graph.inputs:
        if not isinstance(value.type, ir.TensorType):
            continue  # `problems` speaks of it
        if value.shape is None:
            raise ModelError(
                "has no shape, not even a number of dimensions",
                where=f"input {value.name}",
                hint="export the model with a shape for it",
            )
        found[str(value.name)] = tuple(
            d if isinstance(d, int) else name_of(d) or f"{value.name}.{axis}"
            for axis, d in enumerate(value.shape)
        )
    return found


def name_of(dim: ir.SymbolicDim) -> str:
    """Of a dimension; "" for an unknown one, which some exporters write as `?`."""
    return "" if dim.value in (None, UNKNOWN) else str(dim.value)


def symbols(model: ir.Model) -> tuple[str, ...]:
    """The names that `bind` wants, in order; expressions of others are left out."""
    texts = dim_texts(model)
    plain = {text for text in texts if is_plain(text)}
    return tuple(t for t in texts if t in plain or not (names(t) or set()) <= plain)


def dim_texts(model: ir.Model) -> tuple[str, ...]:
    """The dimensions of the inputs that are no numbers, each once, in order."""
    found = [d for shape in input_dims(model).values() for d in shape]
    return tuple(dict.fromkeys(d for d in found if isinstance(d, str)))


def is_plain(text: str) -> bool:
    """A name rather than an expression of names."""
    inside = names(text)
    return inside is None or inside == {text}


def bind(
    model: ir.Model, dims: Mapping[str, int], *, memory: int | None = None
) -> ir.Model:
    """A copy of the model whose inputs have numbers for all dimensions.

    dims: number by name; names inside expressions count as well.  Weights are shared
    with the model.  memory: as for `load`.
    Raises InputError for names that are unknown, missing, negative or contradictory.
    """
    inputs = input_dims(model)
    texts, wanted = dim_texts(model), symbols(model)
    check_known(texts, dims)
    given = {name: checked_dimension(name, value) for name, value in dims.items()}
    missing = [n for n in wanted if n not in given and evaluate(n, given) is None]
    if missing:
        how = " ".join(f"--dim {quoted(name)}=N" for name in missing)
        raise InputError(
            f"no number is given for dimension {', '.join(missing)}", hint=f"add {how}"
        )
    numbers = {text: resolve(text, given) for text in texts}
    bound = model.clone()
    bound.meta[CONTRADICTIONS] = contradictions_of(model)
    for value in bound.graph.inputs:
        if value.name in inputs:
            shape = (
                d if isinstance(d, int) else numbers[d] for d in inputs[value.name]
            )
            value.shape = ir.Shape(shape)
    substitute(bound, {**given, **numbers})
    check_sizes(bound, "", memory)
    return bound


def resolve(text: str, given: Mapping[str, int]) -> int:
    """The number for a name or expression; both ways to it must agree."""
    others = {name: value for name, value in given.items() if name != text}
    computed = evaluate(text, others)
    number = given.get(text, computed)
    assert number is not None  # `missing` has seen to it
    if computed is not None and computed != number:
        raise InputError(
            f"dimension {text} is given as {number}, the others make it {computed}",
            hint="give dimensions that fit together",
        )
    return checked_dimension(text, number)


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    plain = all(c.isalnum() or c in "._-" for c in name)
    return name if plain else f"'{name}'"


def substitute(model: ir.Model, numbers: Mapping[str, int]) -> None:
    """Put numbers into the declared shapes of all other values, where they settle."""
    for graph in (model.graph, *model.graph.subgraphs()):
        made = [*graph.inputs, *graph.outputs, *(x for n in graph for x in n.outputs)]
        for value in made:
            if value.shape is None or all(isinstance(d, int) for d in value.shape):
                continue
            value.meta.setdefault(AS_WRITTEN, value.shape)
            value.shape = ir.Shape([settled(d, numbers) for d in value.shape])


def settled(
    dim: int | ir.SymbolicDim, numbers: Mapping[str, int]
) -> int | ir.SymbolicDim:
    if isinstance(dim, int) or dim.value is None:
        return dim
    number = numbers.get(dim.value)
    if number is None:
        number = evaluate(dim.value, numbers)
    return dim if number is None or number < 0 else number


def dims_from_inputs(model: ir.Model, inputs: Mapping[str, Array]) -> dict[str, int]:
    """The numbers that given arrays make of the names of dimensions.

    inputs: arrays by input name; some may be missing.  Sizes of fixed dimensions are
    left to `check_inputs`.
    Raises InputError if two axes disagree on a name or an array has another rank.
    """
    found: dict[str, int] = {}
    source: dict[str, str] = {}
    for name, dims in input_dims(model).items():
        if name not in inputs:
            continue
        shape = np.shape(inputs[name])
        if len(shape) != len(dims):
            raise InputError(
                f"has {len(shape)} dimensions, the model wants {len(dims)}:"
                f" {' x '.join(map(str, dims)) or 'a scalar'}",
                where=f"input {name}",
            )
        for axis, (dim, size) in enumerate(zip(dims, shape, strict=True)):
            if isinstance(dim, int):
                continue
            place = f"input {name} (axis {axis})"
            if found.setdefault(dim, size) != size:
                raise InputError(
                    f"dimension {dim} is {found[dim]} in {source[dim]} and"
                    f" {size} in {place}",
                    hint="give inputs that agree",
                )
            source.setdefault(dim, place)
    return found
