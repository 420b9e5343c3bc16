"""Tensors at the border of a program, as its library describes them.

These mirror the structs of nanoloom/runtime/program.h one to one.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from nanoloom.errors import Error

NONE = -1  # NANOLOOM_NONE
BFLOAT16 = "bfloat16"


class Space(enum.IntEnum):
    """Which memory a buffer lies in: enum nanoloom_space."""

    ARENA = 0
    PARAMETERS = 1
    INPUT = 2
    OUTPUT = 3
    SIZES = 4


class Element(enum.IntEnum):
    """Element types at the border of a program: enum nanoloom_element."""

    BOOL = 0
    I8 = 1
    U8 = 2
    I16 = 3
    U16 = 4
    I32 = 5
    U32 = 6
    I64 = 7
    U64 = 8
    F16 = 9
    BF16 = 10
    F32 = 11
    F64 = 12

    @property
    def dtype(self) -> np.dtype:
        """The numpy element type of the same width and meaning.

        Raises Error where bfloat16 is asked for and ml_dtypes is not installed.
        """
        return _bfloat16() if self is Element.BF16 else _DTYPES[self]

    @property
    def bytes(self) -> int:
        """Of one number."""
        return 2 if self is Element.BF16 else _DTYPES[self].itemsize

    @classmethod
    def of(cls, dtype: np.dtype | type) -> Element:
        """The element type of a numpy dtype; ValueError when there is none."""
        wanted = np.dtype(dtype)
        if wanted.name == BFLOAT16:
            return Element.BF16
        for element, known in _DTYPES.items():
            if known == wanted:
                return element
        raise ValueError(f"no program has inputs or outputs of type {wanted}")


_DTYPES = {
    Element.BOOL: np.dtype(np.bool_),
    Element.I8: np.dtype(np.int8),
    Element.U8: np.dtype(np.uint8),
    Element.I16: np.dtype(np.int16),
    Element.U16: np.dtype(np.uint16),
    Element.I32: np.dtype(np.int32),
    Element.U32: np.dtype(np.uint32),
    Element.I64: np.dtype(np.int64),
    Element.U64: np.dtype(np.uint64),
    Element.F16: np.dtype(np.float16),
    Element.F32: np.dtype(np.float32),
    Element.F64: np.dtype(np.float64),
}


def _bfloat16() -> np.dtype:
    """numpy has none of its own, and few programs take or give any."""
    try:
        import ml_dtypes
    except ImportError:
        reason = "an input or output is of bfloat16, which numpy does not have"
        raise Error(reason, hint="pip install ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True)
class Tensor:
    """One input or output: dense, row-major.

    words: for each axis which word of the sizes it is, NONE for a number; () for
    numbers only.
    """

    name: str
    element: Element
    shape: tuple[int, ...]
    words: tuple[int, ...] = ()

    @property
    def known(self) -> list[int]:
        """The shape with -1 for what the sizes decide."""
        words = self.words or [NONE] * len(self.shape)
        pairs = zip(self.shape, words, strict=True)
        return [number if word == NONE else -1 for number, word in pairs]

    @property
    def bytes(self) -> int:
        """Size of the whole tensor."""
        return math.prod(self.shape) * self.element.bytes
