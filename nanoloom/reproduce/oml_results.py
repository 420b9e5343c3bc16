"""What is measured of the OML-vect paper's layers, and what the paper claims of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nanoloom.reproduce.tables import csv_of

TABLE, STRIDES, FOUND, X86, RISCV, COSTS = (
    "Table I", "Figure 3", "Figure 7", "Figure 8", "Figure 9", "Section VI-C",
)  # fmt: skip
FIELDS = ("figure", "layer", "size", "contender", "quantity", "value", "note")
BASE, OURS = "onnx-mlir", "oml-vect"


@dataclass(frozen=True)
class Result:
    """A number.  layer: or a reduction, in Table I.  note: why it is missing."""

    figure: str
    layer: str
    size: str
    contender: str
    quantity: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what it is here; None where nothing was measured.

    most: whether the paper's figure is an upper bound.
    """

    what: str
    paper: float
    here: float | None
    most: bool = False

    @property
    def holds(self) -> bool | None:
        if self.here is None:
            return None
        return self.here <= self.paper if self.most else self.here >= self.paper


def values(
    results: Sequence[Result], figure: str, quantity: str, contender: str
) -> dict[str, float]:
    """What there is of a quantity, by the layers."""
    return {
        each.layer: each.value
        for each in results
        if (each.figure, each.quantity, each.contender) == (figure, quantity, contender)
        and each.value is not None
    }


def ratio(
    results: Sequence[Result], figure: str, quantity: str, above: str, below: str
) -> float | None:
    """Of a quantity of two contenders, geometric mean over the layers with both."""
    one, other = (values(results, figure, quantity, name) for name in (above, below))
    return mean([one[each] / other[each] for each in one if other.get(each)])


def mean(found: Sequence[float]) -> float | None:
    """The geometric one."""
    if not found or not all(found):
        return None
    return math.exp(sum(map(math.log, found)) / len(found))


def claims(results: Sequence[Result]) -> list[Claim]:
    """The paper's, each with its figure here."""
    counted = RISCV, "instructions, vlen 512"
    return [
        Claim(
            "kinds of reductions found, of those in Table I",
            1.0,
            ratio(results, TABLE, "found", "nanoloom", "loops"),
        ),
        Claim(
            "speed of forced vectors across rows, of none",
            1.0,
            ratio(results, STRIDES, "seconds", "none", "forced"),
            most=True,
        ),
        Claim(
            "reductions found, of MLIR's",
            2.5,
            ratio(results, FOUND, "reductions", "nanoloom", "mlir"),
        ),
        Claim(
            "speed of OML-vect, of ONNX-MLIR's, on x86",
            1.05,
            ratio(results, X86, "seconds", BASE, OURS),
        ),
        Claim(
            "ONNX-MLIR's instructions on RISC-V, of OML-vect's",
            1.59,
            ratio(results, *counted, BASE, OURS),
        ),
        Claim(
            "OML-vect's vector loads on RISC-V, of ONNX-MLIR's",
            0.8117,
            ratio(results, RISCV, "vector loads, vlen 512", OURS, BASE),
            most=True,
        ),
        Claim(
            "OML-vect's vector stores on RISC-V, of ONNX-MLIR's",
            0.01,
            ratio(results, RISCV, "vector stores, vlen 512", OURS, BASE),
            most=True,
        ),
        *cost_claims(results),
    ]


def cost_claims(results: Sequence[Result]) -> list[Claim]:
    """Of section VI-C."""
    told = (("OML-vect's binary, of ONNX-MLIR's", 1.0267, "bytes of the executable"),)
    return [
        Claim(what, paper, ratio(results, COSTS, quantity, OURS, BASE), most=True)
        for what, paper, quantity in told
    ]


def as_csv(results: Sequence[Result]) -> str:
    return csv_of(FIELDS, [asdict(each) for each in results])


def as_dict(results: Sequence[Result], target: str) -> dict[str, Any]:
    """What `--json` prints."""
    told = [{**asdict(claim), "holds": claim.holds} for claim in claims(results)]
    found = [asdict(each) for each in results]
    return {"target": target, "results": found, "claims": told}
