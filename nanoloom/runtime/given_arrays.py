"""Arrays that a call is given: where their numbers are, or what is wrong with them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nanoloom.errors import InputError
from nanoloom.interface.tensor import Tensor
from nanoloom.runtime.arrays import address

if TYPE_CHECKING:
    from nanoloom.runtime.library import Instance, Library

NOWHERE: Mapping[str, np.ndarray] = MappingProxyType({})  # all outputs are new arrays
Wanted: TypeAlias = tuple[np.dtype, tuple[int, ...], str]


def wanted(tensors: Sequence[Tensor]) -> list[Wanted]:
    return [(x.element.dtype, x.shape, x.name) for x in tensors]


def point(
    places: ctypes.Array[ctypes.c_void_p],
    kind: str,
    arrays: Sequence[object],
    expected: list[Wanted],
) -> None:
    """Write where the arrays' numbers are; raises InputError for one that does not fit.

    Takes what arrays.c leaves: subclasses, and element types that are equal only.
    """
    if len(arrays) != len(expected):
        raise InputError(f"{len(arrays)} {kind}s given, the model has {len(expected)}")
    for number, array in enumerate(arrays):
        dtype, shape, name = expected[number]
        if not isinstance(array, np.ndarray):
            raise InputError(
                f"{type(array).__name__} given, the model wants an array",
                where=f"{kind} {name}",
            )
        if array.dtype != dtype or array.shape != shape:
            raise InputError(
                f"{array.dtype}{list(array.shape)} given, the model wants "
                f"{dtype}{list(shape)}",
                where=f"{kind} {name}",
            )
        places[number], flags = address(array), array.flags
        dense = flags.c_contiguous and flags.aligned
        if not dense or (kind == "output" and not flags.writeable):
            raise InputError(
                "the array must be contiguous, aligned and, for an output, writable",
                where=f"{kind} {name}",
            )


def times_of(array: np.ndarray, steps: int) -> int:
    """Where a run leaves nanoseconds; raises ValueError for an array that is not so."""
    flags, right = array.flags, array.dtype == np.int64 and array.shape == (steps,)
    if not right or not flags.c_contiguous or not flags.writeable:
        raise ValueError(f"nanoseconds must be int64[{steps}]")
    return address(array)


def place(
    names: Sequence[str],
    made: list[np.ndarray],
    into: Mapping[str, np.ndarray],
    cut: Iterable[str],
) -> None:
    """Put given arrays in the place of new ones.

    names: of the program's outputs.  cut: of those that a run makes shorter.  Raises
    InputError for these, and for what is no single tensor.
    """
    others = set(cut)
    for name, array in into.items():
        if name not in names or name in others:
            raise InputError(
                "is no tensor of a size that is known before the call",
                where=f"output {name}",
                hint="take the array that the call returns",
            )
        made[names.index(name)] = array


def begun_in(
    pairs: Sequence[tuple[int, int]],
    given: Sequence[np.ndarray],
    made: Sequence[np.ndarray],
) -> Sequence[np.ndarray]:
    """The inputs, those that a program writes over copied to where it may.

    pairs: numbers of inputs, and of the outputs that lie in their memory.  What does
    not fit stays, and is found to be so later.
    """
    if not pairs:
        return given
    inputs = list(given)
    for number, output in pairs:
        if number >= len(given) or output >= len(made):
            break
        old, new = inputs[number], made[output]
        alike = (old.dtype, old.shape) == (new.dtype, new.shape)
        if old is not new and alike and new.flags.writeable:
            new[...] = old
            inputs[number] = new
    return inputs


def run_exact(
    library: Library,
    instance: Instance,
    names: Sequence[str],
    inputs: Mapping[str, object],
) -> list[np.ndarray] | None:
    """New outputs, where inputs are just the arrays that a program takes; else None.

    names: of the program's inputs, in its order.
    """
    if len(inputs) != len(names):
        return None
    try:
        given = [inputs[name] for name in names]
    except KeyError:
        return None
    made = library.new_outputs()
    return made if instance.run_exact(given, made) else None
