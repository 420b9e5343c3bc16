"""--strategy affine and its kin: words, and the options that belong to them."""

from __future__ import annotations

from typing import Annotated

import typer

from nanoloom.cli.plugins import Strategies
from nanoloom_papers.affine.strategies import NAMES, LoopStrategy, Unrolling

VectorLength = Annotated[
    int | None,
    typer.Option(
        "--vlen",
        min=1,
        max=64,
        metavar="LANES",
        help="Of --strategy: 32-bit lanes of a vector (default: the target's).",
    ),
]
UnrollSum = Annotated[
    int | None,
    typer.Option(
        "--unroll-k", min=1, max=16, metavar="N", help="Of --strategy: along sums."
    ),
]
UnrollRows = Annotated[
    int | None,
    typer.Option(
        "--unroll-m", min=1, max=16, metavar="N", help="Of --strategy: along rows."
    ),
]
UnrollColumns = Annotated[
    int | None,
    typer.Option(
        "--unroll-n", min=1, max=16, metavar="N", help="Of --strategy: along columns."
    ),
]
OPTIONS = {
    "vlen": VectorLength,
    "unroll_k": UnrollSum,
    "unroll_m": UnrollRows,
    "unroll_n": UnrollColumns,
}


def make(
    name: str,
    *,
    vlen: int | None = None,
    unroll_k: int | None = None,
    unroll_m: int | None = None,
    unroll_n: int | None = None,
) -> LoopStrategy:
    """Raises typer.BadParameter for lanes that are no power of two."""
    if vlen is not None and vlen & (vlen - 1):
        raise typer.BadParameter(f"{vlen} is no power of two", param_hint="--vlen")
    unrolling = Unrolling(vlen, unroll_k, unroll_m, unroll_n)
    return LoopStrategy(NAMES[NAMES.index(name)], unrolling)


PLUGIN = Strategies(NAMES, OPTIONS, make)
