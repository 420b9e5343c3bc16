"""The words of expressions: what they take, and how they are written.

What they become is in `bodies.py`, a row for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import ml_dtypes
import numpy as np

from nanoloom.errors import Error

BOOL = np.dtype(np.bool_)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
KINDS = {"f": "floats", "i": "integers", "b": "bool"}
ELEMENTS = (
    *map(np.dtype, ("float32", "float64", "float16")),
    BFLOAT16,
    *(np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
    BOOL,
)


@dataclass(frozen=True)
class FunctionEntry:
    """takes: letters of KINDS.  symbol: between two operands, "" for word(operands).

    compares: gives bool, whatever it takes.  starts: of a reduction that combines with
    it, the value that changes nothing.
    """

    name: str
    takes: str
    symbol: str = ""
    operands: int = 2
    compares: bool = False
    starts: str = ""

    @property
    def taken(self) -> str:
        return " and ".join(KINDS[letter] for letter in self.takes)


def functions(names: str) -> tuple[FunctionEntry, ...]:
    """Functions of one float."""
    return tuple(FunctionEntry(name, "f", operands=1) for name in names.split())


comparison = partial(FunctionEntry, compares=True)
WORDS = {
    word.name: word
    for word in (
        FunctionEntry("add", "fi", "+", starts="zero"),
        FunctionEntry("subtract", "fi", "-"),
        FunctionEntry("multiply", "fi", "*", starts="one"),
        FunctionEntry("divide", "f", "/"),
        FunctionEntry("and", "ib", "&", starts="ones"),
        FunctionEntry("or", "ib", "|", starts="zero"),
        FunctionEntry("xor", "ib", "^", starts="zero"),
        FunctionEntry("shift_left", "i", "<<"),
        FunctionEntry("shift_right", "i", ">>"),
        FunctionEntry("maximum", "fi", starts="lowest"),
        FunctionEntry("minimum", "fi", starts="highest"),
        FunctionEntry("power", "f"),
        comparison("less", "fi", "<"),
        comparison("less_equal", "fi", "<="),
        comparison("greater", "fi", ">"),
        comparison("greater_equal", "fi", ">="),
        comparison("equal", "fib", "=="),
        comparison("differs", "fib", "!="),
        FunctionEntry("negative", "fi", operands=1),
        FunctionEntry("invert", "ib", operands=1),
        FunctionEntry("absolute", "fi", operands=1),
        FunctionEntry("popcount", "i", operands=1),
        *functions("exp log sqrt rsqrt sin cos tanh erf floor ceil round"),
    )
}


def kind_of(dtype: np.dtype) -> str:
    """The letter of KINDS for an element type."""
    if dtype == BOOL:
        return "b"
    return "i" if dtype.kind in "iu" else "f"


def element_type(given: object, where: str) -> np.dtype:
    """A numpy element type by its name; raises Error for one that is not known."""
    try:
        dtype = BFLOAT16 if given == "bfloat16" else np.dtype(given)  # type: ignore[call-overload]
    except TypeError:
        dtype = None
    if dtype is None or dtype not in ELEMENTS:
        known = ", ".join(each.name for each in ELEMENTS)
        raise Error(
            f"{given} is no element type", where=where, hint=f"choose one of {known}"
        )
    return dtype


def start_of(word: FunctionEntry, dtype: np.dtype) -> int | float | bool:
    """What a reduction begins with where nothing else is said."""
    if dtype == BOOL:
        return word.starts == "ones"
    is_integer = kind_of(dtype) == "i"
    match word.starts:
        case "one":
            return 1
        case "ones":
            return int(ml_dtypes.iinfo(dtype).max) if dtype.kind == "u" else -1
        case "lowest":
            return int(ml_dtypes.iinfo(dtype).min) if is_integer else -float("inf")
        case "highest":
            return int(ml_dtypes.iinfo(dtype).max) if is_integer else float("inf")
        case _:
            return 0


def is_exact(number: float, dtype: np.dtype) -> bool:
    """Whether a number is one of this type; floats are rounded to it."""
    if isinstance(number, bool) or dtype == BOOL:
        return isinstance(number, bool) and dtype == BOOL
    if kind_of(dtype) == "f":
        return True
    limits = ml_dtypes.iinfo(dtype)
    return isinstance(number, int) and int(limits.min) <= number <= int(limits.max)
