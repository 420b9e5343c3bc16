"""What is made point by point for a product alone is a part of its kernel.

    t = max(x * scale + shift, 0)      normalized, of an image in front of 1x1 filters
    y = t w, with what follows it
      ->  one kernel: a task makes its rows of t in its cache, once for all panels of w

So are the normalizations of networks that have them in front of their layers, which no
producer can write: what is joined from several layers each reader normalizes anew; and
gates that were not made factors of the filters.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.kernels.fuse_product_chain import only_reader, product
from nanoloom.kernels.group import LIMIT, Group, group_of, is_closed
from nanoloom.kernels.linalg_query import (
    Kind,
    Op,
    base,
    inputs,
    is_generic,
    is_identity,
    is_pad,
    kind,
    map_dims,
    maps,
)
from nanoloom.kernels.nest import alone
from nanoloom.mlir import ir
from nanoloom.nest.contraction import elements, lhs_is_k_contiguous, roles
from nanoloom.nest.lhs_producer import is_profitable
from nanoloom.target.facts import Target

SMALL_CACHE = 256 * 1024  # the second-level one of any CPU


def fuse_lhs_producers(
    groups: list[Group], weights: Sequence[ir.Value], target: Target | None
) -> list[Group]:
    """Join products with what is made point by point for nobody else.

    weights: the arguments that are parameters, of which panels can be packed.
    """
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        front = lhs_producer_of(group, owner, weights, target)
        if front is not None and id(front) not in gone:
            group.ops = [*front.ops, *group.ops]
            gone.add(id(front))
    return [group for group in groups if id(group) not in gone]


def lhs_producer_of(
    group: Group,
    owner: dict[ir.Operation, Group],
    weights: Sequence[ir.Value],
    target: Target | None,
) -> Group | None:
    """What makes the left operand of a group's product for it alone, if that pays."""
    op = product(group)
    stage = None if op is None else alone(op)
    shape = None if stage is None else roles(stage)
    if op is None or stage is None or shape is None:
        return None
    if any(map(is_reduced, group.ops[1:])):
        return None
    left, right = (inputs(op)[place] for place in (shape.left, shape.right))
    front = group_of(left, owner)
    if front is None or base(right) not in weights or not only_reader(front, group):
        return None
    plain = None not in map_dims(maps(op)[shape.left])
    if not plain or not lhs_is_k_contiguous(stage, shape) or 0 in shape.extents:
        return None
    if {*elements(stage, shape)} != {"f32"} or shape.shared or len(shape.reduced) > 1:
        return None
    if len(front.ops) + len(group.ops) > LIMIT or not is_lhs_producer(front):
        return None
    if {x.element for made in front.ops for x in alone(made).writes} != {"f32"}:
        return None
    cache = SMALL_CACHE if target is None else target.caches.l2
    return front if is_profitable(shape, cache) else None


def is_reduced(op: Op) -> bool:
    """Whether an operation behind a product is none of its epilogue."""
    return kind(op) is not Kind.ELEMENTWISE


def is_lhs_producer(group: Group) -> bool:
    """Whether all of a group is arithmetic on the same points, along vectors.

    What reads a border, or other places, has tasks of its own; and it has one result.
    """
    if group.root is not Kind.ELEMENTWISE or not is_closed(group.ops):
        return False
    rank = len(alone(group.ops[-1]).axes)
    return rank > 1 and all(is_point(op, rank) for op in group.ops)


def is_point(op: Op, rank: int) -> bool:
    """Whether an operation makes numbers where its loops are, of what lies along
    them."""
    if not is_generic(op) or kind(op) is not Kind.ELEMENTWISE or is_pad(op):
        return False
    if len(op.operation.results) != 1 or not is_identity(maps(op)[-1]):
        return False
    stage = alone(op)
    if not stage.lanewise or len(stage.axes) != rank:
        return False
    if any(map(reads_pad, inputs(op))):
        return False
    along = all(read.lies_along(stage.names[-1]) for read in stage.reads)
    return along and all(None not in read.plain for read in stage.reads)


def reads_pad(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and is_pad(owner.opview)
