"""What a program takes or gives: a name, a shape, an element type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interface:
    """An input or output as the model declares it; a dimension may be a name."""

    name: str
    shape: tuple[int | str, ...]
    dtype: np.dtype
    is_text: bool = False  # strings; dtype is that of their numbers
    holds: str = ""  # "list", "optional" or "optional list": of such arrays

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)
