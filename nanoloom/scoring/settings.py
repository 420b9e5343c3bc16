"""What decides how a table is scored, beside the model; it travels to workers."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nanoloom.errors import InputError
from nanoloom.scoring.rowwise import Rowwise

ERRORS = ("raise", "column")
ERROR_COLUMN = "error"


@dataclass(frozen=True)
class Padding:
    """mask: the input that says which positions count.  fill: numbers by input."""

    mask: str
    fill: Mapping[str, float]


@dataclass(frozen=True)
class Settings:
    """As `Scorer` takes them.  columns: of each input."""

    columns: Mapping[str, tuple[str, ...]]
    outputs: tuple[str, ...] | None
    keep: tuple[str, ...]
    batch_rows: int
    padding: Padding | None
    reproducible: bool
    in_column: bool  # errors
    convert: bool

    @classmethod
    def checked(
        cls,
        columns: Mapping[str, str | Sequence[str]] | None,
        outputs: Sequence[str] | None,
        keep: Sequence[str],
        batch_rows: int,
        padding: Padding | None,
        reproducible: bool,
        errors: str,
        convert: bool,
    ) -> Settings:
        """Raises InputError for what is none of the words and numbers wanted."""
        if errors not in ERRORS:
            raise InputError(
                f"errors is {errors!r}", hint=f"give {' or '.join(ERRORS)}"
            )
        try:
            most = operator.index(batch_rows)
        except TypeError:
            most = 0
        if most < 1:
            raise InputError(f"batch_rows is {batch_rows!r}", hint="give 1 at least")
        chosen = {
            name: (given,) if isinstance(given, str) else tuple(given)
            for name, given in (columns or {}).items()
        }
        wanted = None if outputs is None else tuple(outputs)
        kept = (keep,) if isinstance(keep, str) else tuple(keep)
        in_column = errors == "column"
        return cls(
            chosen, wanted, kept, most, padding, reproducible, in_column, convert
        )

    def require(self, model: Rowwise) -> None:
        """Raise InputError for names that the model has not, or that come twice."""
        made = [x.name for x in model.chosen(self.outputs)]
        own = [*self.keep, *made, *([ERROR_COLUMN] if self.in_column else [])]
        if twice := [name for name in own if own.count(name) > 1]:
            reason = f"the result would have two columns {twice[0]}"
            raise InputError(reason, hint="rename one, or leave it out of keep")
        inputs = {x.name for x in model.inputs}
        if self.padding is not None:
            for name in (self.padding.mask, *self.padding.fill):
                if name not in inputs:
                    reason, there = "the model has no such input", ", ".join(inputs)
                    raise InputError(reason, where=name, hint=f"it has: {there}")
