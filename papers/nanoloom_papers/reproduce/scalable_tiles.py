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

from nanoloom.schedule.transform_writer import ANY, PARAMETER
from nanoloom_papers.reproduce.scalable_mlir import match, script

GIVEN = str(-(2**63))  # a size in MLIR's lists that an operand gives


def tiled_and_vectorized(operation: str, tiles: str, *, contracts: bool = False) -> str:
    """The script for an operation, by its name in MLIR.

    It is read behind load_operations() (vector/transform_ops.py).  tiles: sizes of its
    loops, as 8, [4], 1; scalable ones in brackets.  contracts: sums of products become
    vector.contract.
    """
    sizes = tiles.split(", ")
    steps, by, kinds = [match("op", operation)], list[str](), [ANY]
    for n, size in enumerate(sizes):
        number = size.strip("[]")
        steps += [f"%size{n} = transform.param.constant {number} : i64 -> {PARAMETER}"]
        if is_scalable := number != size:
            steps += [
                f'%scaled{n} = "nanoloom.scaled"(%op, %size{n}) '
                f"{{vectors = 1 : i64}} : ({ANY}, {PARAMETER}) -> {ANY}"
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
