"""What a drawn module is called with: shapes that share sizes, and how tensors lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

SYMBOLS = "BNM"
# By call.  The first is what a module is exported with.
SIZES = ((3, 5, 7), (2, 4, 6, 9), (1, 8, 11, 13))
DTYPES = (*[torch.float32] * 6, torch.bfloat16, torch.bfloat16, torch.float16,
          torch.float64)  # fmt: skip
INTEGERS = (torch.int64, torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16,
            torch.bool)  # fmt: skip
EMPTY = 0.08  # share of modules the last call of which has a size 0


@dataclass(frozen=True)
class Given:
    """An input: its element type, and its axes, each a size or a symbol."""

    dtype: Any
    axes: tuple[int | str, ...]

    def tensor(self, sizes: dict[str, int], rng: np.random.Generator) -> Any:
        shape = tuple(sizes[a] if isinstance(a, str) else a for a in self.axes)
        if self.dtype == torch.bool:
            return torch.from_numpy(np.array(rng.random(shape) < 0.5))
        if not self.dtype.is_floating_point:
            low = 0 if self.dtype == torch.uint8 else -4
            return torch.from_numpy(np.array(rng.integers(low, 6, shape))).to(
                self.dtype
            )
        x = rng.normal(0, 1.5, shape)
        if rng.random() < 0.3:  # numbers that are equal
            x = np.round(x * 2) / 2
        return torch.from_numpy(np.array(x)).to(self.dtype)


def drawn_inputs(rng: np.random.Generator, dtype: Any) -> list[Given]:
    """One to four inputs, the first of floats."""
    found: list[Given] = []
    base: tuple[int | str, ...] = ()
    for number in range(int(rng.integers(1, 5))):
        kind = dtype
        if number and rng.random() < 0.45:
            kind = INTEGERS[int(rng.integers(len(INTEGERS)))]
        elif number and rng.random() < 0.15:
            kind = DTYPES[int(rng.integers(len(DTYPES)))]
        axes = base if number and rng.random() < 0.5 else drawn_axes(rng)
        if number and rng.random() < 0.08:
            axes = ()
        base = base or axes
        found.append(Given(kind, axes))
    return found


def drawn_axes(rng: np.random.Generator) -> tuple[int | str, ...]:
    rank = int(rng.choice([1, 2, 2, 3, 3, 3, 4, 4, 5]))
    return tuple(
        SYMBOLS[int(rng.integers(3))] if rng.random() < 0.4 else
        int(rng.choice([1, 2, 3, 4, 6, 8])) for _ in range(rank)
    )  # fmt: skip


def drawn_sizes(rng: np.random.Generator) -> list[dict[str, int]]:
    """The sizes of each call."""
    found: list[dict[str, int]] = []
    for sizes in SIZES:
        chosen = rng.choice(sizes, len(SYMBOLS), replace=False)
        found.append({s: int(n) for s, n in zip(SYMBOLS, chosen, strict=True)})
    if rng.random() < EMPTY:
        found[-1][SYMBOLS[int(rng.integers(3))]] = 0
    return found


# ---- how they lie


def relaid(x: Any, rng: np.random.Generator) -> Any:
    """The same numbers with other strides, or an offset."""
    way = int(rng.integers(6))
    if x.dim() >= 2 and way == 0:
        return x.mT.contiguous().mT
    if x.dim() == 4 and way == 1:
        return x.contiguous(memory_format=torch.channels_last)
    if x.dim() and way == 2:  # every second row of a larger one
        wide = torch.stack([x, torch.zeros_like(x)], 1).flatten(0, 1)
        return wide[::2]
    if x.dim() and way == 3:
        return torch.cat([x[:0], x.new_zeros((1, *x.shape[1:])), x])[1:]
    if x.dim() and way == 4:
        order = [int(a) for a in rng.permutation(x.dim())]
        back = [order.index(a) for a in range(x.dim())]
        return x.permute(order).contiguous().permute(back)
    return x
