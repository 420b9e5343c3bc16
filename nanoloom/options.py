"""What decides about the compiled code: one frozen value, all in the cache key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from nanoloom.target.facts import Target

Precision = Literal["f32", "bf16"]


class Given(Protocol):
    """A schedule in place of the chosen one: a Schedule of schedule/language.py."""

    def to_transform(self, nest: Any) -> str: ...


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation.

    target: the CPU to compile for.  precision: of the products of f32
    contractions (sums stay f32).
    schedules: (kernel name or pattern, Schedule or Transform script) pairs that replace
    the chosen ones.  checked: an index out of range makes a call fail; else it is
    clamped.  exact_conv: convolutions by sums of products only, not by Winograd's
    method.
    """

    target: Target
    precision: Precision = "f32"
    schedules: tuple[tuple[str, Given | str], ...] = ()
    checked: bool = True
    exact_conv: bool = False

    @property
    def faster_on(self) -> Target | None:
        """The target, where convolutions may be computed by Winograd's method."""
        exact = self.exact_conv or self.precision != "f32"
        return None if exact else self.target
