"""Arrays on their way between processes: .npz files that know bf16."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
MARK = ":bf16"  # behind the name of an array whose numbers are stored as uint16


def save(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name; numpy's format has no bf16."""
    plain = {
        f"{name}{MARK}" if array.dtype == BFLOAT16 else name: array.view(np.uint16)
        if array.dtype == BFLOAT16
        else array
        for name, array in arrays.items()
    }
    with path.open("wb") as file:  # np.savez takes keys with any characters this way
        np.savez(file, allow_pickle=False, **plain)


def load(path: Path) -> dict[str, Array]:
    """The arrays that `save` wrote."""
    with np.load(path, allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    return {
        name.removesuffix(MARK): array.view(BFLOAT16) if name.endswith(MARK) else array
        for name, array in arrays.items()
    }
