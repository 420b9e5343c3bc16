"""A loaded program's table of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Table:
    """A program's table of calls.  room: the memory that a bound one lies in."""

    program: Any  # a pointer to layout.Program
    room: np.ndarray | None = None
