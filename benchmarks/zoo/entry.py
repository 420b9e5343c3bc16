"""What the zoo is made of: architectures, and files that exporters write of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
Run = Callable[[], object]


@dataclass(frozen=True)
class Exported:
    """A model's file and inputs for it.

    wanted: what its own framework gives.
    module, tensors: of PyTorch, where it computes the same in the same types.
    """

    path: Path
    feeds: Arrays
    wanted: list[Array]
    module: Any = None
    tensors: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One export.  kind: the library it comes from; way: who wrote the file.

    make: writes it into a folder.
    """

    kind: str
    architecture: str
    way: str
    make: Callable[[Path], Exported]

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.architecture}@{self.way}"

    @property
    def has_module(self) -> bool:
        """Of PyTorch, which computes the same in the same types."""
        in_integers = self.way.endswith(("+int8", "+qdq"))
        return self.kind in ("transformers", "timm") and not in_integers
