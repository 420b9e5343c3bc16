"""Numbers that a user gives for a model's dimensions; fast to import."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping

from nanoloom.errors import InputError
from nanoloom.frontend.expressions import names

LARGEST = 2**63 - 1


def checked_dimension(name: str, value: object) -> int:
    """The number of a dimension; raises InputError for what is none."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number <= LARGEST or isinstance(value, bool):
        raise InputError(
            f"dimension {name} is {value!r}", hint="give a whole number from 0 on"
        )
    return number


def check_known(texts: Iterable[str], dims: Mapping[str, object]) -> None:
    """Raise InputError for a number that belongs to no dimension.

    texts: the dimensions of the inputs that are names or expressions of names.
    """
    wanted = tuple(dict.fromkeys(texts))
    known = {*wanted, *(name for text in wanted for name in names(text) or ())}
    for name in dims:
        if name not in known:
            has = f"it has {', '.join(wanted)}"
            raise InputError(
                f"the model has no dimension {name}",
                hint=has if wanted else "all its dimensions are numbers already",
            )
