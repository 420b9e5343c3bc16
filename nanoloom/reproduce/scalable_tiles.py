"""A Transform script that tiles and vectorizes by the same sizes.

Each size is a parameter of the script, made once; both operations read it, as the
discussion under "Scalable Vectorisation in Linalg" proposes.  Two things of LLVM 22
stand in the way.  Tiling takes a scalable parameter as a plain number: its loop steps
by 4, not by 4 * vscale.  So "nanoloom.scaled" makes the product in the code, and tiling
takes that.  And MLIR prints [[%size]] but does not read it: vectorization is written
in the generic form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nanoloom.mlir import ir, transform_dialect
from nanoloom.nest.extent import Lanes
from nanoloom.reproduce.scalable_mlir import ANY, match, script
from nanoloom.vector.transform_ops import load_operations
from nanoloom.vector.transform_words import ScaledOp
from nanoloom.vector.widths import elements

PARAMETER = "!transform.param<i64>"
GIVEN = str(-(2**63))  # a size in MLIR's lists that an operand gives


def load_sizes() -> None:
    """Make the operation known in the current context: once in each."""
    load_operations()

    class Interface(transform_dialect.TransformOpInterface):
        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            del rewriter
            (size,) = state.get_params(op.size)
            (front,) = state.get_payload_ops(op.target)
            with ir.InsertionPoint(front), front.location:
                product = elements(Lanes(size.value, scalable=True))
            assert isinstance(product, ir.Value)  # of a scalable width
            results.set_ops(op.product, [product.owner])
            return transform_dialect.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            del op
            return False

    class Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: Any, effects: Any) -> None:
            transform_dialect.only_reads_handle(op.op_operands, effects)
            transform_dialect.produces_handle(op.results, effects)
            transform_dialect.modifies_payload(effects)

    Interface.attach(ScaledOp.OPERATION_NAME)
    Effects.attach(ScaledOp.OPERATION_NAME)


def tiled_and_vectorized(operation: str, tiles: str, *, contracts: bool = False) -> str:
    """The script for an operation, by its name in MLIR; load_sizes() comes before it.

    tiles: sizes of its loops, as 8, [4], 1; scalable ones in brackets.  contracts: sums
    of products become vector.contract.
    """
    sizes = tiles.split(", ")
    steps, by, kinds = [match("op", operation)], list[str](), [ANY]
    for n, size in enumerate(sizes):
        number = size.strip("[]")
        steps += [f"%size{n} = transform.param.constant {number} : i64 -> {PARAMETER}"]
        if is_scalable := number != size:
            steps += [
                f'%scaled{n} = "nanoloom.scaled"(%op, %size{n}) '
                f": ({ANY}, {PARAMETER}) -> {ANY}"
            ]
        by.append(f"%{'scaled' if is_scalable else 'size'}{n}")
        kinds.append(ANY if is_scalable else PARAMETER)
    loops = f"%loops:{len(sizes)}" if len(sizes) > 1 else "%loops"
    tile = (
        f"%tiled, {loops} = transform.structured.tile_using_for %op tile_sizes "
        f"[{', '.join(by)}] : ({', '.join(kinds)}) -> "
        f"({', '.join([ANY] * len(kinds))})"
    )
    return script(*steps, tile, vectorized(sizes, "%tiled", contracts))


def vectorized(sizes: Sequence[str], handle: str, contracts: bool) -> str:
    """The step that vectorizes by the parameters %size0, %size1, ..."""
    operands = ", ".join([handle, *(f"%size{n}" for n in range(len(sizes)))])
    scalable = ", ".join(str(size.startswith("[")).lower() for size in sizes)
    words = "create_named_contraction, " if contracts else ""
    return (
        f'"transform.structured.vectorize"({operands}) <{{{words}'
        f"static_vector_sizes = array<i64: {', '.join([GIVEN] * len(sizes))}>, "
        f"scalable_sizes = array<i1: {scalable}>}}> : "
        f"({', '.join([ANY] + [PARAMETER] * len(sizes))}) -> ()"
    )
