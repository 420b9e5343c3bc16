"""Attention: blocks of rows in parallel, their scores in the first-level cache.

    for each head, block of rows:
        scores = q k' by register tiles, with scale and mask
        softmax of each row
        out = softmax v by register tiles

Nothing but the block's scores is kept, so that they never reach memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nanoloom.kernels.contraction import Contraction, analyse
from nanoloom.kernels.group import may_follow
from nanoloom.kernels.structure import (
    Op,
    is_contraction,
    is_fill,
    is_generic,
    maps,
)
from nanoloom.mlir import ir, named
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import AMX_BF16, FAMILIES, FMA_FAMILY, TILE_ROWS
from nanoloom.schedule.language import (
    Directive,
    Loops,
    Nanokernel,
    Parallel,
    Schedule,
    Tile,
)
from nanoloom.schedule.library.contraction import AMX_COLUMNS
from nanoloom.schedule.library.family import family_of, nanokernel_of, step_cost
from nanoloom.schedule.library.marks import mark
from nanoloom.target.facts import Target

# Bytes of a task's scores, which are written once and read thrice, and its rows.  Tile
# registers take more: keys and values are woven anew by every task.
VECTORS, TILES = (64 * 1024, 64), (128 * 1024, 128)


def attention(module: ir.Module, last: Op, target: Target) -> Schedule:
    """The schedule of a kernel that kernels/attention.py has joined."""
    first, root = [op for op in named(module, "linalg.generic") if is_contraction(op)]
    inner, outer = analyse(first), analyse(root)
    assert inner is not None and outer is not None, "joined only if they are known"
    behind = behind_scores(first)
    scores = behind[-1] if behind else first
    mark(first, "product")
    mark(scores, "scores")
    mark(root, "root")
    keys, m = (
        outer.extents[outer.reduced[0]],
        prod(outer.extents[d] for d in outer.rows),
    )
    woven = family_of(first, inner, target, packed=False) is AMX_BF16
    most_bytes, most_rows = TILES if woven else VECTORS
    rows = max(1, min(most_rows, most_bytes // (4 * keys), m))
    one = plan_of(inner, first, rows, target, "product")
    other = plan_of(outer, root, rows, target, "root")
    task = dict.fromkeys(outer.shared, 1) | dict.fromkeys(outer.rows, rows)
    directives: tuple[Directive, ...] = (
        Parallel(sizes(outer, root, last, task), ("all",)),
        *products(inner, [first, *behind], one, "scores", target),
        *products(outer, epilogue(root, last), other, "last", target),
        Loops(),
    )
    reason = (
        f"{rows} rows of {keys} scores at a time, tiles of {one.rows} x {one.vectors} "
        f"and {other.rows} x {other.vectors} vectors"
    )
    return Schedule(directives, reason)


def plan_of(
    shape: Contraction, op: Op, rows: int, target: Target, mark: str
) -> Nanokernel:
    """The nanokernel of one of the products; its right operand is an activation."""
    family = family_of(op, shape, target, packed=False) or FMA_FAMILY
    if family.tiles:
        return Nanokernel(min(rows, TILE_ROWS), 2, False, family.name, mark)
    width = bits_of(op)
    columns = shape.extents[shape.column]
    cost = step_cost(family, op, shape, target, packed=False)
    tile = register_tile.choose(rows, columns, width, target.vector, cost)
    return nanokernel_of(tile, family, mark)


def bits_of(op: Op) -> int:
    """Of a sum."""
    kind = ir.RankedTensorType(op.operation.operands[2].type).element_type
    return kind.width  # type: ignore[attr-defined]


def products(
    shape: Contraction, ops: Sequence[Op], plan: Nanokernel, end: str, target: Target
) -> tuple[Directive, ...]:
    """Register tiles of ops[0], with what follows it up to ops[-1], marked `end`."""
    op, last = ops[0], ops[-1]
    tiles = FAMILIES[plan.family].tiles
    lanes = AMX_COLUMNS // 2 if tiles else target.vector.bits // bits_of(op)
    inner = dict.fromkeys(shape.rows, plan.rows) | {shape.column: plan.vectors * lanes}
    if op == last:
        return Tile(sizes(shape, op, last, inner), (), plan.mark), plan
    links = [f"{end}_{number}" for number in range(len(ops) - 2)]
    for between, name in zip(ops[1:-1], links, strict=True):
        mark(between, name)
    fused = (*reversed(links), plan.mark)  # each is read by the one fused before it
    return Tile(sizes(shape, op, last, inner), fused, end), plan


def sizes(
    shape: Contraction, root: Op, last: Op, wanted: dict[int, int]
) -> tuple[int, ...]:
    """Tile sizes of the loops of a product, or of the elementwise end behind it."""
    if root == last:
        return tuple(wanted.get(d, 0) for d in range(len(shape.extents)))
    return tuple(wanted.get(d, 0) for d in shape.result)


def behind_scores(first: Op) -> list[Op]:
    """The elementwise operations behind the first product, up to the softmax."""
    found: list[Op] = []
    end = first
    while True:
        uses = list(end.operation.results[0].uses)
        if len(uses) != 1:
            return found
        user = uses[0].owner.opview
        place = list(user.operation.operands).index(end.operation.results[0])
        if not is_generic(user) or not may_follow(user, maps(user)[place]):
            return found
        found.append(user)
        end = user


def epilogue(root: Op, last: Op) -> list[Op]:
    """The second product and the elementwise operations behind it, in order."""
    inside = False
    found: list[Op] = []
    for op in root.operation.block.operations:
        inside = inside or op == root
        if inside and is_generic(op) and not is_fill(op):
            found.append(op)
        if op == last:
            return found
    raise AssertionError("the last operation stands behind the product")


__all__ = ["attention"]
