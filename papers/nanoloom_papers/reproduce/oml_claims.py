"""What the OML-vect paper claims, each with its figure here, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nanoloom_papers.reproduce.oml_results import (
    BASE,
    COSTS,
    CYCLES,
    FOUND,
    MEMORY,
    OURS,
    RISCV,
    SECONDS,
    SHARE,
    SIZE,
    STATIC,
    STRIDES,
    TABLE,
    WHOLE_MODELS,
    X86,
    Result,
    mean,
    ratio,
    values,
)


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


COUNT, LOADS, STORES = (
    f"{what}, vlen 512" for what in ("instructions", "vector loads", "vector stores")
)
# What, the paper's figure, whether that is an upper bound; figure and quantity, whose
# is divided by whose.  Speeds are ratios of seconds.
RATIOS = (
    ("kinds of reductions found, of those in Table I", 1.0, False,
     TABLE, "found", "nanoloom", "loops"),
    ("speed of forced vectors across rows, of none", 1.0, True,
     STRIDES, "seconds", "none", "forced"),
    ("reductions found, of MLIR's", 2.5, False,
     FOUND, "reductions", "nanoloom", "mlir"),
    ("speed of OML-vect, of ONNX-MLIR's, on x86", 1.05, False,
     X86, "seconds", BASE, OURS),
    ("speed of OML-vect, of ONNX-MLIR's without its own products, on x86", 1.92, False,
     X86, "seconds", "plain", OURS),
    ("speed of OML without the two passes, of plain loops, on x86", 1.0, True,
     X86, "seconds", "plain", "oml"),
    ("speed of ONNX Runtime, of OML-vect, on x86", 1.0, False,
     X86, "seconds", OURS, "ort"),
    ("speed of OML-vect, of ONNX-MLIR's, whole models on x86", 1.05, False,
     WHOLE_MODELS, "seconds", BASE, OURS),
    ("ONNX-MLIR's instructions on RISC-V, of OML-vect's (the paper: time)", 1.59, False,
     RISCV, COUNT, BASE, OURS),
    ("ONNX-MLIR's cycles in the inner loop on RISC-V, of OML-vect's (the paper: time)",
     1.59, False, RISCV, CYCLES.format("sifive-x280"), BASE, OURS),
    ("OML-vect's vector loads on RISC-V, of ONNX-MLIR's", 0.8117, True,
     RISCV, LOADS, OURS, BASE),
    ("OML-vect's vector stores on RISC-V, of ONNX-MLIR's", 0.01, True,
     RISCV, STORES, OURS, BASE),
    ("OML-vect's binary, of ONNX-MLIR's", 1.0267, True,
     COSTS, SIZE, OURS, BASE),
    ("OML-vect's instructions in the binary, of ONNX-MLIR's", 0.978, True,
     COSTS, STATIC, OURS, BASE),
    ("OML-vect's peak memory, of ONNX-MLIR's", 0.65, True,
     COSTS, MEMORY, OURS, BASE),
    ("OML-vect's time of compilation for RISC-V, of ONNX-MLIR's", 23.1 / 11, True,
     COSTS, SECONDS.format("riscv64"), OURS, BASE),
    ("OML-vect's time of compilation for x86, of ONNX-MLIR's", 8.2 / 9.5, True,
     COSTS, SECONDS.format("x86-64"), OURS, BASE),
)  # fmt: skip


def claims(results: Sequence[Result]) -> list[Claim]:
    """The paper's, each with its figure here."""
    found = [
        Claim(what, paper, ratio(results, figure, quantity, above, below), most)
        for what, paper, most, figure, quantity, above, below in RATIOS
    ]
    shares = [
        share
        for machine in ("riscv64", "x86-64")
        for share in values(results, COSTS, SHARE.format(machine), OURS).values()
    ]
    what = "share of the two passes in the time of compilation"
    faster = "models on which OML-vect outruns ONNX Runtime on RISC-V, of 8"
    return [*found, Claim(what, 0.085, mean(shares), most=True), Claim(faster, 4, None)]


def as_dict(results: Sequence[Result], target: str) -> dict[str, Any]:
    """What `--json` prints."""
    told = [{**asdict(claim), "holds": claim.holds} for claim in claims(results)]
    found = [asdict(each) for each in results]
    return {"target": target, "results": found, "claims": told}
