"""A step of an AMX tile: the left operand's registers by the panel's, each by each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.vector.nanokernel.amx import instructions as tiles

Between = Callable[[int, int], None]  # behind which product of a step, of how many


def no_loads(number: int, count: int) -> None:
    """Between the products of a step."""
    del number, count


@dataclass(frozen=True)
class LhsRows:
    """Where the left operand's rows of a tile lie.

    row: the loop that they run along, -1 for a single row.  parts: how many of them go
    to each tile register.  apart: bytes from the first row of one to that of the next.
    """

    buffer: ir.Value
    indexing: ir.AffineMap
    row: int
    parts: list[int]
    apart: int


def step(
    left: LhsRows,
    at: list[ir.Value],
    panels: list[ir.Value],
    sums: list[ir.Value],
    instruction: str,
    between: Between,
) -> list[ir.Value]:
    """Load the left operand's tiles of one step and multiply each pair of them.

    at: the loop variables of their place.  between: called behind each product.
    """
    distance = tiles.row_distance(left.buffer, left.indexing, left.row)
    made: list[ir.Value] = []
    for part, rows in enumerate(left.parts):
        ahead = part * left.apart
        start = tiles.address(left.buffer, left.indexing, at, ahead)
        tile = tiles.load(start, rows, distance)
        for panel in panels:
            begun = sums[len(made)]
            made.append(tiles.multiply(instruction, rows, begun, tile, panel))
            between(len(made) - 1, len(sums))
    return made
