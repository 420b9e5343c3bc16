"""A left operand that comes into the cache before its tile reads it.

    for ky: for kx: for c:
        fetch left[y + ky + 1, x + kx, c]; f(left[y + ky, x + kx, c])

Each of a tile's rows goes along a line of its own, all at once, which no processor
follows far.  A round of the innermost loop asks for some rows' lines, and as many
rounds as go along one for those of all rows.
"""

from __future__ import annotations

from math import prod

from nanoloom.errors import Error
from nanoloom.ir.access import add, index, multiply, parts
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, ir, memref
from nanoloom.vector.nanokernel.reduction_loops import Step
from nanoloom.vector.nanokernel.tile.task import as_buffer, locality
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of
from nanoloom.vector.temporaries import LINE, bytes_of


def with_lhs_prefetch(tile: Tile, step: Step) -> Step:
    """The step, and its share of what is read so many steps of the sum later.

    Those are rounds of the sum's outermost axis, or of all of a sum of one axis: the
    rows of a tile further on.  One round, where only a run knows how long it is: its
    script is the one for another length (kernels/share_across_k.py).
    """
    word = tile.word_of(tile.left) if tile.plan.packed else None
    if word is None or tile.row is None:
        return step
    outer, *inner = tile.shape.reduced
    lengths = [tile.shape.extents[d] for d in inner or [outer]]
    whole, known = prod(lengths), min(lengths) >= 0
    if known and word.ahead % whole:
        raise Error(
            f"ahead = {word.ahead}: of a product with panels rows come whole rounds "
            f"of {whole} steps ahead"
        )
    rounds = word.ahead // whole if known else 1
    source, level = as_buffer(tile.left), locality(word)
    line = LINE // bytes_of(ir.RankedTensorType(tile.left.type).element_type)
    steps = tile.plan.unroll
    share = -(-tile.plan.rows // max(1, line // steps))
    indexing, deepest = maps(tile.op)[tile.shape.left], tile.shape.reduced[-1]

    def fetched(ivs: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        begun, here = parts(ivs[deepest])
        if begun is None:
            return step(ivs, sums)
        number = arith.divui(arith.remui(begun, index(line)), index(steps))
        first = multiply(number, index(share))
        later, begin = list(ivs), 0
        if inner:
            later[outer] = add(ivs[outer], index(rounds))
        else:
            begin = rounds * tile.plan.rows
        for more in range(here, share, steps):
            row = add(first, index(begin + more))
            at = place_of(indexing, tile.at_row(later, row))
            memref.PrefetchOp(source, at, False, level, True)
        return step(ivs, sums)

    return fetched
