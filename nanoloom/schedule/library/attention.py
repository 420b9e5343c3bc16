"""Attention: blocks of rows in parallel, their scores in the first-level cache.

    for each head, block of rows:
        scores = q k' by register tiles, with scale and mask
        softmax of each row
        out = softmax v by register tiles

Nothing but the block's scores is kept, so that they never reach memory.
"""

from __future__ import annotations

from nanoloom.kernels.contraction import Contraction, analyse
from nanoloom.kernels.group import may_follow
from nanoloom.kernels.structure import Op, is_contraction, is_generic, maps
from nanoloom.mlir import ir, named
from nanoloom.schedule import register_tile
from nanoloom.schedule.language import (
    Directive,
    Loops,
    Nanokernel,
    Parallel,
    Schedule,
    Tile,
)
from nanoloom.schedule.library.marks import mark
from nanoloom.target.facts import Target

SCORES_BYTES = 32 * 1024  # of a task: a row of them is written once and read thrice
MOST_ROWS = 64


def attention(module: ir.Module, last: Op, target: Target) -> Schedule:
    """The schedule of a kernel that kernels/attention.py has joined."""
    first, root = [op for op in named(module, "linalg.generic") if is_contraction(op)]
    inner, outer = analyse(first), analyse(root)
    assert inner is not None and outer is not None, "joined only if they are known"
    scores = end_of_scores(first)
    mark(first, "product")
    mark(scores, "scores")
    mark(root, "root")
    keys, m = outer.extents[outer.reduced[0]], outer.extents[outer.rows[0]]
    rows = max(1, min(MOST_ROWS, SCORES_BYTES // (4 * keys), m))
    one, other = (
        tile_of(s, o, rows, target) for s, o in ((inner, first), (outer, root))
    )
    task = dict.fromkeys(outer.shared, 1) | {outer.rows[0]: rows}
    directives: tuple[Directive, ...] = (
        Parallel(sizes(outer, root, last, task), ("all",)),
        *products(inner, first, scores, one, "scores", "product", target),
        *products(outer, root, last, other, "last", "root", target),
        Loops(),
    )
    reason = f"{rows} rows of {keys} scores at a time, tiles {one} and {other}"
    return Schedule(directives, reason)


def tile_of(
    shape: Contraction, op: Op, rows: int, target: Target
) -> register_tile.RegisterTile:
    kind = ir.RankedTensorType(op.operation.operands[2].type).element_type
    columns = shape.extents[shape.column]
    return register_tile.choose(rows, columns, kind.width, target.vector)  # type: ignore[attr-defined]


def products(
    shape: Contraction,
    op: Op,
    last: Op,
    tile: register_tile.RegisterTile,
    end: str,
    start: str,
    target: Target,
) -> tuple[Directive, ...]:
    """Register tiles of one product, with what follows it up to the operation `end`."""
    kind = ir.RankedTensorType(op.operation.operands[2].type).element_type
    lanes = target.vector.bits // kind.width  # type: ignore[attr-defined]
    inner = {shape.rows[0]: tile.rows, shape.column: tile.vectors * lanes}
    nanokernel = Nanokernel(tile.rows, tile.vectors, False, "fma", start)
    if op == last:
        return Tile(sizes(shape, op, last, inner), (), start), nanokernel
    return Tile(sizes(shape, op, last, inner), (start,), end), nanokernel


def sizes(
    shape: Contraction, root: Op, last: Op, wanted: dict[int, int]
) -> tuple[int, ...]:
    """Tile sizes of the loops of a product, or of the elementwise end behind it."""
    if root == last:
        return tuple(wanted.get(d, 0) for d in range(len(shape.extents)))
    return tuple(wanted.get(d, 0) for d in shape.result)


def end_of_scores(first: Op) -> Op:
    """The last elementwise operation behind the first product, before the softmax."""
    end = first
    while True:
        uses = list(end.operation.results[0].uses)
        if len(uses) != 1:
            return end
        user = uses[0].owner.opview
        place = list(user.operation.operands).index(end.operation.results[0])
        if not is_generic(user) or not may_follow(user, maps(user)[place]):
            return end
        end = user


__all__ = ["attention"]
