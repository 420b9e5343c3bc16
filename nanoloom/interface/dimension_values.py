"""Numbers that a user gives for a model's dimensions; fast to import."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from nanoloom.errors import InputError
from nanoloom.interface.expressions import evaluate, names

LARGEST = 2**63 - 1


class Shaped(Protocol):
    """An input; a dimension may be a name, or an expression of names."""

    @property
    def shape(self) -> Sequence[int | str]: ...


def checked_dimension(name: str, value: object) -> int:
    """The number of a dimension; raises InputError for what is none."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number <= LARGEST or isinstance(value, bool):
        hint = "give a whole number from 0 on, or two: (1, 512)"
        raise InputError(f"dimension {name} is {value!r}", hint=hint)
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


def bound_dims(inputs: Iterable[Shaped], dims: Mapping[str, object]) -> dict[str, int]:
    """The numbers of dimensions, those of expressions of them among them.

    Raises InputError for a name that the inputs do not have, or what is no number.
    """
    if not hasattr(dims, "items"):
        raise InputError(f"dims are a {type(dims).__name__}", hint="give a dict")
    texts = [d for x in inputs for d in x.shape if isinstance(d, str)]
    check_known(texts, dims)
    given = {name: checked_dimension(name, value) for name, value in dims.items()}
    computed = {text: evaluate(text, given) for text in texts}
    return {t: n for t, n in computed.items() if n is not None} | given
