"""A module as text, with what it is called with; what its options are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

Call = tuple[tuple[Any, ...], dict[str, Any]]
HEAD = """import dataclasses
import math
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import nn


"""
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass
class Written:
    """init, forward: lines of the module; forward begins with the parameters' names.

    calls: the first one is what it is exported with.  shapes: torch's dynamic_shapes,
    by which the other calls fit too.  head: what the module's file has besides.
    """

    forward: str
    calls: list[Call]
    init: str = ""
    shapes: Any = None
    head: str = ""
    dtype: Any = torch.float32
    whole: bool = True  # torch.export takes it

    @property
    def source(self) -> str:
        names, _, body = self.forward.strip().partition("\n")
        lines = [*self.init.strip().splitlines()]
        text = f"{HEAD}{self.head}\nclass Written(nn.Module):\n"
        text += "    def __init__(self):\n        super().__init__()\n"
        text += "".join(f"        {x.strip()}\n" for x in lines if x.strip())
        text += f"\n    def forward(self, {names}):\n"
        return text + "".join(f"        {x}\n" for x in dedented(body))


def dedented(body: str) -> list[str]:
    lines = [x for x in body.splitlines() if x.strip()]
    inset = min(len(x) - len(x.lstrip()) for x in lines)
    return [x[inset:] for x in lines]


@dataclass
class Drawn:
    """Choices of a seed."""

    rng: np.random.Generator
    generator: Any = field(init=False)

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(int(self.rng.integers(2**31)))

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def some(self, choices: Sequence[Any], least: int = 1, most: int = 3) -> list[Any]:
        count = min(int(self.rng.integers(least, most + 1)), len(choices))
        order = self.rng.permutation(len(choices))[:count]
        return [choices[int(i)] for i in order]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def flag(self) -> bool:
        return self.chance(0.5)

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def randn(self, *shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(shape, generator=self.generator).to(dtype)

    def ints(self, low: int, high: int, *shape: int, dtype: Any = torch.int64) -> Any:
        """Of low to high, without high."""
        made = torch.randint(low, high, shape, generator=self.generator)
        return made.to(dtype)

    def bools(self, *shape: int, share: float = 0.5) -> Any:
        return torch.rand(shape, generator=self.generator) < share

    def float_type(self) -> Any:
        return self.pick(torch.float32, torch.float32, torch.bfloat16, torch.float16,
                         torch.float64)  # fmt: skip


Kind = Callable[[Drawn], Written]
