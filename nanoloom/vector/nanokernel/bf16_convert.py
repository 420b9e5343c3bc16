"""bf16 by loads that convert (AVX-NE-CONVERT): even, odd or one for all lanes."""

from __future__ import annotations

from nanoloom.mlir import ir
from nanoloom.vector.nanokernel import bf16_halves
from nanoloom.vector.nanokernel.tile import Tile


def accumulate(tile: Tile) -> list[ir.Value]:
    return bf16_halves.accumulate(tile)
