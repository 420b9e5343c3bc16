"""How far loops are unrolled: as asked for, else as a target's registers suggest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.target.facts import Target
from nanoloom_papers.affine.strategies import Unrolling

MANY = 32  # registers
# Sums at once, rows and columns, by whether there are many registers.
ALONG_SUM = {True: (6, 4), False: (2, 4)}
# Where one instruction is of several registers: vectors of a sum, and its tile: four
# sums, two rows and a column fill 28 of 32.
GROUPED, IN_GROUPS = 4, (2, 2)
ALONG_COLUMNS = {True: (6, 4), False: (4, 2)}  # columns in vectors
# Of ONNX-MLIR: rows, vectors of columns, and steps between a load and a store; rows and
# columns where sums are lanes.
IN_MEMORY, STEPS_IN_MEMORY, BY_ROWS = (4, 1), 8, (1, 4)


@dataclass(frozen=True)
class Factors:
    """Lanes of a vector, vectors of a sum, and rows and columns of a product at once.

    sum_tile: where a sum's steps are lanes; column_tile: where columns are, in vectors;
    memory_tile: the same, where sums stay in memory.
    """

    lanes: int
    k: int
    sum_tile: tuple[int, int]
    column_tile: tuple[int, int]
    memory_tile: tuple[int, int]

    @staticmethod
    def of(target: Target, given: Unrolling) -> Factors:
        many = target.vector.registers >= MANY
        grouped = target.vector.grouped >= GROUPED

        def tile(rows: int, columns: int) -> tuple[int, int]:
            return given.m or rows, given.n or columns

        return Factors(
            given.vlen or target.vector.min_bits // 32,
            given.k or (GROUPED if grouped else 1),
            tile(*(IN_GROUPS if grouped else ALONG_SUM[many])),
            tile(*ALONG_COLUMNS[many]),
            tile(*IN_MEMORY),
        )

    @property
    def by_rows(self) -> Factors:
        """Those of a product whose right operand ONNX-MLIR reads along the sum."""
        return replace(self, k=1, sum_tile=BY_ROWS)
