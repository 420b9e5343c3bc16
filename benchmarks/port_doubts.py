"""What llvm-mca's models say of cores and is in doubt, and loops without it.

Of LLVM 22.  A loop that a model slows down for a reason that its own figures contradict
is simulated once more, with what the reason is about left out or in another form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

# Instructions with vectors or floating-point numbers; integers are the other ones.
OF_VECTORS = re.compile(r"#|v|fl[wd]\b")


@dataclass(frozen=True)
class Doubt:
    """why: a sentence.  without: a loop as it is simulated, too, in the words `so`."""

    why: str
    so: str
    without: Callable[[Sequence[str]], list[str]]


def broadcasts_as_loads(loop: Sequence[str]) -> list[str]:
    return [re.sub(r"^vbroadcastss\b", "vmovups", line) for line in loop]


def without_integers(loop: Sequence[str]) -> list[str]:
    return [line for line in loop if OF_VECTORS.match(line)]


BROADCASTS = (
    "a broadcast of a number in memory to 512 bits is three operations in the model of "
    "Zen 4, one of them for a cycle on a pipe of multiply-adds or shuffles; to 256 "
    "bits, or of four numbers to 512, it is one.  No register tile of up to eight "
    "vectors comes to more than 89 % with it"
)
IN_ORDER = (
    "llvm-mca lets no result come before an older one, as nothing in the model says "
    "RetireOOO: an addition of addresses, of a cycle, begins when the multiply-add or "
    "load in front of it, of 4 to 8, is about to end"
)
AT_THE_END = (
    "The seven of the product's round leave 87 % even where all of them stand together "
    "at its end"
)
DOUBTS: Mapping[str, Doubt] = MappingProxyType({
    "znver4": Doubt(BROADCASTS, "with broadcasts as loads", broadcasts_as_loads),
    "znver5": Doubt(
        f"llvm-mca has the model of Zen 4 for Zen 5: {BROADCASTS}",
        "with broadcasts as loads",
        broadcasts_as_loads,
    ),
    "sifive-x280": Doubt(IN_ORDER, "without integers", without_integers),
    "spacemit-x60": Doubt(
        f"{IN_ORDER}.  {AT_THE_END}", "without integers", without_integers
    ),
})  # fmt: skip
