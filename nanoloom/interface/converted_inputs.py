"""Inputs of other element types, as numpy casts real numbers: `run(convert=True)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nanoloom.errors import InputError
from nanoloom.interface.check_inputs import Spec


def converted(
    inputs: Sequence[Spec], given: Mapping[str, object]
) -> Mapping[str, object]:
    """Arrays of numbers in the declared element types, as numpy casts real ones."""
    types = {x.name: x.dtype for x in inputs if not getattr(x, "is_text", False)}
    made = dict(given)
    for name in types.keys() & made.keys():
        where = f"input {name}"
        try:
            array = np.asarray(given[name])
        except ValueError:
            hint = "give lists of one length, side by side"
            raise InputError("is no array", where=where, hint=hint) from None
        if array.dtype.kind == "c":
            hint = "give array.real, or what else is meant"
            raise InputError("is complex", where=where, hint=hint)
        if not is_numeric(array.dtype):
            hint = "give an array of numbers"
            raise InputError(f"is of {array.dtype}", where=where, hint=hint)
        with np.errstate(over="ignore", invalid="ignore"):  # as numpy casts them
            made[name] = array.astype(types[name], copy=False)
    return made


def is_numeric(dtype: np.dtype) -> bool:
    """Whether its elements are real numbers or truths; of ml_dtypes, too."""
    other = dtype.kind == "V" and dtype.names is None and dtype.type is not np.void
    return dtype.kind in "biuf" or other
