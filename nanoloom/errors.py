"""Every error a user can cause: one clear sentence, never a traceback.

`assert` and other exceptions are for nanoloom's own bugs.  The command line turns an
`Error` into one line on stderr and exit status 1.
"""

from __future__ import annotations


class Error(Exception):
    """Something the user can put right: what, where, why and what to do about it."""

    def __init__(
        self, reason: str, *, where: str = "", hint: str = "", stage: str = ""
    ) -> None:
        self.reason = reason
        self.where = where
        self.hint = hint
        self.stage = stage
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        way_out = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.reason}{way_out}"


class ModelError(Error):
    """The model file is damaged, invalid or missing a part."""


class InputError(Error):
    """An input array has the wrong name, type or shape, or an index out of range."""


class Unsupported(Error):
    """A valid model that nanoloom does not compile (operator, type or attribute)."""


class DataDependent(Unsupported):
    """A shape depends on the values of inputs: those must be known while compiling.

    inputs: names of the model's inputs whose values would be needed.
    """

    def __init__(self, reason: str, inputs: tuple[str, ...], **place: str) -> None:
        self.inputs = inputs
        super().__init__(reason, **place)
