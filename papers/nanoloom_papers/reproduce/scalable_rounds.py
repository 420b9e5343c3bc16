"""Of which loops code is made, and what a size takes by the cycles of their rounds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nanoloom.explain.assembly import inner_loops
from nanoloom.target.tail_forms import MASKED, MASKED_REMAINDER, SCALAR_REMAINDER
from nanoloom_papers.reproduce.llvm_mca import Refused

VECTORS, NUMBERS = "vectors", "numbers"
STORES = {
    "aarch64": (r"^st1w\b", r"^str\s+s\d"),
    "riscv64": (r"^vse\d|^vs\dr", r"^fsw\b"),
}
GROUP = re.compile(r"vsetv\w*\s.*\be(\d+), (mf?\d)")


def loops_of(text: str, arch: str) -> dict[str, list[str]]:
    """The innermost loops that store vectors, and single numbers.

    Before one what a group of RISC-V's registers is, told to llvm-mca in comments.
    """
    found: dict[str, list[str]] = {}
    for loop in inner_loops(text):
        for kind, store in zip((VECTORS, NUMBERS), STORES[arch], strict=True):
            if any(re.match(store, line) for line in loop):
                found.setdefault(kind, [*group_of(text), *loop])
    if VECTORS not in found:
        raise Refused("there is no loop over vectors")
    return found


def group_of(text: str) -> list[str]:
    """The group that f32 are computed in."""
    told = [match.groups() for match in GROUP.finditer(text)]
    groups = [group for bits, group in told if bits == "32"]
    if not groups:
        return []
    return [f"# LLVM-MCA-RISCV-LMUL {groups[0].upper()}", "# LLVM-MCA-RISCV-SEW E32"]


def total(
    form: str, found: Mapping[str, Mapping[str, float]], size: int, lanes: int
) -> float:
    """Cycles for so many numbers: rounds one behind the other, without their latency.

    found: of each form, cycles of a round by kinds of loops.  What a masked remainder
    takes is a round of the masked form.
    """
    whole, rest = divmod(size, lanes)
    round_ = found[form][VECTORS]
    if form == MASKED_REMAINDER:
        return whole * round_ + (found[MASKED][VECTORS] if rest else 0)
    if form == SCALAR_REMAINDER:
        return whole * round_ + rest * found[form].get(NUMBERS, 0)
    return (whole + bool(rest)) * round_
