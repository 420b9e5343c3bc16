"""What decides about the compiled code: one frozen value, all of it in the cache key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nanoloom.target.facts import Target

Precision = Literal["f32"]


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation.

    target: the CPU to compile for.  precision: of the arithmetic on f32 tensors.
    schedules: (kernel name or pattern, Transform script) pairs that replace the chosen
    ones.
    """

    target: Target
    precision: Precision = "f32"
    schedules: tuple[tuple[str, str], ...] = ()
