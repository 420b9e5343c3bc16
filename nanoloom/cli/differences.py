"""How `nanoloom verify` shows differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from nanoloom.inspect.differences import Difference
    from nanoloom.inspect.layer_differences import Layer

COUNTED = ("int", "uint", "bool", "string")  # types that are equal or not
CLOSEST = 8  # layers that are listed when all agree
COLUMNS = ("~value", "type", ">max abs", ">bound", ">max rel", ">max ULP", "")


def as_dict(difference: Difference) -> dict[str, Any]:
    """A difference as JSON takes it; infinity, which it lacks, as text."""
    found = {**asdict(difference), "passed": difference.passed}
    return {
        key: str(value)
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for key, value in found.items()
    }


def as_table(differences: Sequence[Difference]) -> Table:
    """A row for each."""
    from nanoloom.cli.terminal import table

    return table("", COLUMNS, (row(difference) for difference in differences))


def row(difference: Difference) -> list[str]:
    """A difference as cells."""
    from nanoloom.cli.arrays import dims_text

    is_counted = difference.dtype.startswith(COUNTED)
    bound = f"{difference.bound:g} differ" if is_counted else f"{difference.bound:.1e}"
    return [
        difference.name,
        f"{difference.dtype} {dims_text(difference.shape)}",
        f"{difference.absolute:.1e}",
        bound,
        f"{difference.relative:.1e}",
        str(difference.ulp),
        "ok" if difference.passed else "DIFFERS",
    ]


def listed(layers: Sequence[Layer]) -> list[Layer]:
    """The layers worth a row: those nearest to their bound, and the one that fails."""

    def nearness(layer: Layer) -> float:
        found = layer.difference
        measured = found.absolute if found.bound else float(found.differing)
        return measured / found.bound if found.bound else measured

    failed = [x for x in layers if not x.difference.passed]
    near = sorted((x for x in layers if x.difference.passed), key=nearness)
    chosen = {id(x) for x in near[-CLOSEST:] + failed}
    return [x for x in layers if id(x) in chosen]


def weaknesses(differences: Sequence[Difference]) -> list[str]:
    """What the comparison could not prove."""
    names = [x.name for x in differences if not x.proves]
    if not names:
        return []
    return [
        f"note: for {', '.join(names)} the bound is as large as the values: these"
        " inputs prove nothing there"
    ]
