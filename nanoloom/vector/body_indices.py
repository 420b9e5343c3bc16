"""Places that a generic's body asks for, as arithmetic that has a form on vectors.

    %i = linalg.index 0; %at = affine.apply (i + tile)  ->  %at = arith.addi %i, tile

A tile's body has to know where the tile is: what a pad or a gather reads.
"""

from __future__ import annotations

from nanoloom.ir.access import apply
from nanoloom.ir.mlir import ir, named


def write_out_places(module: ir.Module) -> None:
    """Affine expressions in the bodies of generics become index arithmetic."""
    for op in named(module, "affine.apply"):
        around = op.operation.parent
        if around is None or around.name != "linalg.generic":
            continue
        indexing: ir.AffineMap = op.operation.attributes["map"].value  # type: ignore[attr-defined]
        given = list(op.operation.operands)
        dims, symbols = given[: indexing.n_dims], given[indexing.n_dims :]
        with ir.InsertionPoint(op), op.operation.location:
            made = apply(indexing.results[0], dims, symbols)
        op.operation.results[0].replace_all_uses_with(made)
        op.operation.erase()
