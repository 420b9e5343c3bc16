"""Inputs of a model: as it declares them, and made up where there are none."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nanoloom.errors import InputError, Unsupported
from nanoloom.frontend.memory_claims import available_memory, in_words
from nanoloom.interface.check_inputs import Array, Spec

if TYPE_CHECKING:  # a second to import, and a compiled model runs without it
    import onnx_ir as ir


@dataclass(frozen=True)
class InputSpec:
    """An input as its model declares it."""

    name: str
    shape: tuple[int | str, ...]
    dtype: np.dtype[Any]


def input_specs(
    model: ir.Model, but: Container[str | None] = ()
) -> tuple[InputSpec, ...]:
    """The inputs of a model, bound or not, but for some.

    Raises Unsupported for an input that is no tensor of numbers or bool.
    """
    from nanoloom.frontend.problems import value_problems
    from nanoloom.frontend.symbolic_dims import input_dims

    dims = input_dims(model)
    found: list[InputSpec] = []
    for value in model.graph.inputs:
        dtype = value.dtype
        if value.name in but:
            continue
        if value.name not in dims or dtype is None or dtype.name == "STRING":
            reason = "is no tensor of numbers"
            if value.name not in dims and value.type is not None:
                reason = value_problems("input", [value])[0].reason
            hint = "nanoloom check MODEL lists what to change"
            raise Unsupported(reason, where=f"input {value.name}", hint=hint)
        found.append(InputSpec(value.name, dims[value.name], np.dtype(dtype.numpy())))
    return tuple(found)


def random_inputs(
    specs: Sequence[Spec], seed: int = 0, *, memory: int | None = None
) -> dict[str, Array]:
    """Plausible values without data: the same for the same seed, name and shape.

    Floats are standard normal, integers 0 or 1 (valid ids for any table), masks 1.
    memory: bytes that may be taken, by default what the machine has free.
    Raises InputError for a dimension without a number and for too large inputs.
    """
    limit = available_memory() if memory is None else memory
    total = 0
    for spec in specs:
        total += math.prod(static(spec)) * spec.dtype.itemsize
        if total > limit:
            raise InputError(
                f"inputs up to this one need {in_words(total)}, {in_words(limit)} of"
                " memory are free",
                where=f"input {spec.name}",
                hint="bind smaller dimensions",
            )
    return {spec.name: random_input(spec, seed) for spec in specs}


def static(spec: Spec) -> tuple[int, ...]:
    sizes = tuple(d for d in spec.shape if isinstance(d, int))
    if len(sizes) < len(spec.shape):
        names = [d for d in spec.shape if isinstance(d, str)]
        raise InputError(
            f"has no number for dimension {', '.join(names)}",
            where=f"input {spec.name}",
            hint="bind it: --dim NAME=N",
        )
    return sizes


def random_input(spec: Spec, seed: int) -> Array:
    shape, kind = static(spec), spec.dtype.kind
    if "mask" in spec.name.lower():
        return np.ones(shape, spec.dtype)
    generator = np.random.default_rng([seed, *spec.name.encode()])
    if kind in "iub" or spec.dtype.name in ("int4", "uint4", "int2", "uint2"):
        return generator.integers(0, 2, shape, np.int8).astype(spec.dtype)
    if kind == "c":
        parts = generator.standard_normal((2, *shape))
        return (parts[0] + 1j * parts[1]).astype(spec.dtype)
    drawn = np.float64 if spec.dtype == np.float64 else np.float32
    return generator.standard_normal(shape, drawn).astype(spec.dtype)
