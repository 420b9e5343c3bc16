"""What is found of "Scalable Vectorisation in Linalg", and whether its claims hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nanoloom.target.tail_forms import (
    MASKED,
    MASKED_REMAINDER,
    SCALAR_REMAINDER,
    VECTOR_LENGTH,
)
from nanoloom_papers.reproduce.scalable_attempts import MLIR, VECTORIZED, Attempt
from nanoloom_papers.reproduce.tables import csv_of

INSTRUCTIONS, CYCLES = "instructions", "cycles"
FIELDS = ("quantity", "kernel", "size", "machine", "form", "value", "note")
TRIED = ("kind", "name", "rfc", "by", "machine", "works", "reason")
V1, RISCV = ("neoverse-v1",), ("sifive", "spacemit")  # cores, by their first words


@dataclass(frozen=True)
class Result:
    """A number: instructions under qemu, or cycles in llvm-mca.

    machine: with the length of its vectors, or a core.  note: why it is missing.
    """

    quantity: str
    kernel: str
    size: int
    machine: str
    form: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """What the RFC or its discussion says; what is found; None: it was not measured."""

    what: str
    here: str
    holds: bool | None


@dataclass(frozen=True)
class Found:
    """Everything of a run.  files: of the example, by their names."""

    files: Mapping[str, str]
    attempts: Sequence[Attempt]
    results: Sequence[Result]

    def value(
        self, quantity: str, kernel: str, size: int, machine: str, form: str
    ) -> float | None:
        for x in self.results:
            at = (x.quantity, x.kernel, x.size, x.machine, x.form)
            if at == (quantity, kernel, size, machine, form):
                return x.value
        return None

    def ratio(
        self, quantity: str, machines: tuple[str, ...], above: str, below: str
    ) -> float | None:
        """Of two forms, the geometric mean over kernels and sizes with both.

        machines: beginnings of their names.
        """
        logarithms: list[float] = []
        for x in self.results:
            fits = x.quantity == quantity and x.form == above and x.value
            if not fits or not x.machine.startswith(machines):
                continue
            other = self.value(quantity, x.kernel, x.size, x.machine, below)
            if other and x.value and min(x.value, other) > 0:
                logarithms.append(math.log(x.value / other))
        if not logarithms:
            return None
        return math.exp(sum(logarithms) / len(logarithms))


def claims(found: Found) -> list[Claim]:
    """The RFC's and its discussion's, each with what is found here."""
    return [
        *of_the_example(found.files),
        *of_operations(found.attempts),
        *of_forms(found),
        of_lengths(found),
    ]


def of_the_example(files: Mapping[str, str]) -> list[Claim]:
    tiled = files.get("tiled.mlir", "")
    steps = "vector.vscale" in tiled and "step %c4_vscale" in tiled
    made = [name for name in ("masked-sve.s", "masked-rvv.s") if files.get(name)]
    peeled = files.get("lowered-peeled.mlir", "")
    main = peeled.partition("scf.for")[2].partition("scf.for")[0]
    unmasked = bool(main) and "create_mask" not in main
    return [
        Claim(
            "tiling by [4] makes a loop whose step is 4 x vscale",
            "it does, by the Transform dialect" if steps else "it does not",
            steps if tiled else None,
        ),
        Claim(
            "the method is the same for SVE and RVV, though vscale is not",
            f"one text becomes {' and '.join(made) or 'nothing'}",
            len(made) == 2 if files else None,
        ),
        Claim(
            "peeling works with scalable sizes: a main loop without masks",
            "the main loop has no mask" if unmasked else "the main loop has masks",
            unmasked if peeled else None,
        ),
    ]


def of_operations(attempts: Sequence[Attempt]) -> list[Claim]:
    """Of the table, and of what the first vectorizer could."""
    told: list[Claim] = []
    for word, what in (
        ("yes", "operations that the table says yes to work on scalable vectors"),
        ("no", "operations that it says no to are missing"),
    ):
        works = {x.name: True for x in attempts if x.rfc == word}
        for x in attempts:
            if x.rfc == word and x.by == MLIR:
                works[x.name] = works[x.name] and x.works
        count = sum(works.values())
        holds = count == len(works) if word == "yes" else count == 0
        here = f"{count} of {len(works)} work in MLIR today, on SVE and RVV"
        told.append(Claim(what, here, holds if works else None))
    kernels = {x.name for x in attempts if x.kind == VECTORIZED}
    missing = {
        x.name for x in attempts if x.kind == VECTORIZED and x.by == MLIR and x.reason
    }
    here = f"{len(kernels - missing)} of {len(kernels)} kinds of kernels"
    here += f"; not {', '.join(sorted(missing))}" if missing else ""
    only = kernels - missing <= {"elementwise", "copy", "fill"}
    told.append(
        Claim("only elementwise is vectorized so", here, only if kernels else None)
    )
    return told


def of_forms(found: Found) -> list[Claim]:
    """Masked against peeled, and vsetvli against both."""
    v1 = found.ratio(CYCLES, V1, MASKED, MASKED_REMAINDER)
    sve = found.ratio(INSTRUCTIONS, ("sve",), MASKED, MASKED_REMAINDER)
    rvv = found.ratio(INSTRUCTIONS, ("rvv",), MASKED, MASKED_REMAINDER)
    scalar = found.ratio(INSTRUCTIONS, ("",), SCALAR_REMAINDER, MASKED_REMAINDER)
    length = found.ratio(INSTRUCTIONS, ("rvv",), VECTOR_LENGTH, MASKED)
    against = found.ratio(INSTRUCTIONS, ("rvv",), VECTOR_LENGTH, MASKED_REMAINDER)
    asked = found.ratio(CYCLES, RISCV, VECTOR_LENGTH, MASKED)
    return [
        Claim(
            "Neoverse V1: a main loop without masks may be faster than a masked one",
            times(v1, "cycles of the masked form, of the peeled one's, in llvm-mca"),
            None if v1 is None else v1 > 1,
        ),
        Claim(
            "SVE: masking the main loop costs no more than peeling it",
            times(sve, "instructions of the masked form, of the peeled one's"),
            None if sve is None else sve <= 1,
        ),
        Claim(
            "RVV: masking the main loop costs no more than peeling it",
            times(rvv, "instructions of the masked form, of the peeled one's"),
            None if rvv is None else rvv <= 1,
        ),
        Claim(
            "a scalar remainder costs no more than a masked one",
            times(scalar, "instructions with a scalar one, of a masked one's"),
            None if scalar is None else scalar <= 1,
        ),
        Claim(
            "RVV: strip-mining by setvl works better than masks",
            times(length, "instructions of the vector length, of the masked form's")
            + (f", {against:.2f} of the peeled one's" if against else "")
            + (f"; {asked:.2f} of the masked form's cycles" if asked else ""),
            None if length is None else max(length, asked or 0) < 1,
        ),
    ]


def times(ratio: float | None, of: str) -> str:
    return "no figure" if ratio is None else f"{ratio:.2f} {of}"


def of_lengths(found: Found) -> Claim:
    """One file at 128 and at 512 bits, of the largest elementwise size."""
    what = "compiled once, it uses the full width of every machine"
    sizes = [x.size for x in found.results if x.quantity == INSTRUCTIONS]
    told: list[str] = []
    fewer: list[float] = []
    for name in ("sve", "rvv"):
        at = INSTRUCTIONS, "elementwise", max(sizes, default=0)
        least = found.value(*at, f"{name} 128", MASKED_REMAINDER)
        most = found.value(*at, f"{name} 512", MASKED_REMAINDER)
        if least and most:
            fewer.append(least / most)
            told.append(f"{least / most:.1f} times fewer on {name.upper()}")
    here = f"instructions from 128 to 512 bits: {', '.join(told) or 'not measured'}"
    return Claim(what, here, all(x > 1 for x in fewer) if fewer else None)


def as_csv(results: Sequence[Result]) -> str:
    return csv_of(FIELDS, [asdict(each) for each in results])


def attempts_csv(attempts: Sequence[Attempt]) -> str:
    """The table of operations."""
    return csv_of(TRIED, [told(each) for each in attempts])


def told(attempt: Attempt) -> dict[str, Any]:
    return {**asdict(attempt), "works": attempt.works}


def as_dict(found: Found) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "files": sorted(found.files),
        "operations": [told(each) for each in found.attempts],
        "results": [asdict(each) for each in found.results],
        "claims": [asdict(each) for each in claims(found)],
    }
