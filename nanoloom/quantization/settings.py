"""What a user may decide about a quantized model."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.quantization.calibration import METHODS, Method
from nanoloom.quantization.weight_only import BITS, BLOCKS

Progress = Callable[[str, int, int], None]
MAX_ERROR = 0.1


@dataclass(frozen=True)
class Settings:
    """weights: bits of weights alone, None for all numbers in 8 bits; in blocks of
    `block`.  calibration: how ranges are found.  keep_float: names of nodes.
    max_error: of the outputs, |got - right| / |right|, None for 0.1, or for any with
    random samples, whose errors mean nothing.  times: whether to time layers.
    """

    weights: int | None = None
    block: int = 32
    calibration: Method = "minmax"
    keep_float: Collection[str] = ()
    max_error: float | None = None
    times: bool = False
    threads: int = 1
    random: bool = False

    @property
    def limit(self) -> float:
        """Of the outputs' errors."""
        if self.max_error is not None:
            return self.max_error
        return math.inf if self.random else MAX_ERROR

    def check(self) -> None:
        """Raise Error for what there is not."""
        if self.weights not in (None, *BITS):
            raise Error(
                f"weights of {self.weights} bits are not made", hint="take 4 or 8"
            )
        if self.block not in BLOCKS:
            sizes = ", ".join(map(str, BLOCKS))
            raise Error(f"blocks of {self.block} are not made", hint=f"take {sizes}")
        if self.calibration not in METHODS:
            known = ", ".join(METHODS)
            reason = f"there is no calibration {self.calibration}"
            raise Error(reason, hint=f"take one of {known}")
        if self.max_error is not None and not self.max_error > 0:
            raise Error(f"an error of {self.max_error:g} is no limit above 0")
