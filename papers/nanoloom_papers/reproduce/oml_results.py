"""What is measured of the OML-vect paper's layers and models, as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from nanoloom_papers.reproduce.tables import csv_of

TABLE, STRIDES, FOUND, X86, RISCV, COSTS, WHOLE_MODELS = (
    "Table I", "Figure 3", "Figure 7", "Figure 8", "Figure 9", "Section VI-C",
    "Whole models",
)  # fmt: skip
CYCLES = "cycles of 1024 multiply-adds in the inner loop, {}"  # of a core
SECONDS, SHARE = "seconds of compilation, {}", "share of the two passes, {}"
MEMORY = "peak memory of a process in KiB"
SIZE, STATIC = "bytes of the executable", "instructions of the kernels"
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


def as_csv(results: Sequence[Result]) -> str:
    return csv_of(FIELDS, [asdict(each) for each in results])
