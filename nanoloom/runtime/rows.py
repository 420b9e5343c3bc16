"""Each row of arrays in a run of its own, many rows in one call of compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nanoloom.runtime.arrays import address, empty_of

if TYPE_CHECKING:
    from nanoloom.interface.tensor import Tensor
    from nanoloom.runtime.library import Instance

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def run_rows(
    instance: Instance, inputs: Mapping[str, Array]
) -> dict[str, Array] | None:
    """Outputs of all rows, [rows, ...]: of each the bits of a run of its own.

    instance: of a program for one row, [1, ...].  inputs: [rows, ...].  None where the
    program or an array is not so, or where a row fails: a run of it says why.
    Raises Cancelled and TimedOut, by the limits of the call that this thread is in.
    """
    library = instance.library
    counts = {len(inputs[x.name]) for x in library.inputs}
    tensors = (*library.inputs, *library.outputs)
    if len(counts) != 1 or any(x.shape[:1] != (1,) for x in tensors):
        return None
    (count,) = counts
    given = [np.ascontiguousarray(inputs[x.name]) for x in library.inputs]
    fits = [is_rows(*pair, count) for pair in zip(given, library.inputs, strict=True)]
    if not all(fits) or instance.is_closed or library.in_place:
        return None
    made = [new_rows(x, count) for x in library.outputs]
    if not ran(instance, given, made, count):
        return None
    return {x.name: array for x, array in zip(library.outputs, made, strict=True)}


def is_rows(array: Array, row: Tensor, count: int) -> bool:
    """Whether an array is so many of a tensor, one behind the other."""
    shape = (count, *row.shape[1:])
    return (
        array.dtype == row.element.dtype
        and array.shape == shape
        and array.flags.aligned
    )


def new_rows(row: Tensor, count: int) -> Array:
    shape, dtype = (count, *row.shape[1:]), row.element.dtype
    return empty_of(shape, dtype, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)


def ran(
    instance: Instance, inputs: Sequence[Array], outputs: Sequence[Array], count: int
) -> bool:
    """Whether all rows went to their end."""
    try:
        used = instance.row_arenas.pop()
    except IndexError:
        used = instance.arena(of_rows=True)
    used.limit()
    used.inputs[:] = [address(array) for array in inputs]
    used.outputs[:] = [address(array) for array in outputs]
    status = used.run_rows(count)
    instance.row_arenas.append(used)
    if status and used.limits and (ended := used.limits.failure(status)) is not None:
        raise ended
    return not status
