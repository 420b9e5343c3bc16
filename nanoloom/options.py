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
    clamped.
    """

    target: Target
    precision: Precision = "f32"
    schedules: tuple[tuple[str, Given | str], ...] = ()
    checked: bool = True
