"""Pools whose windows overlap, inside of the kernel of the product in front of them.

    t = product, relu;  q = t in the middle of another number;  p = max of windows of q
      ->  one kernel:  a task makes some rows of p, of the rows of t that they read

So is the pool behind the first layer of ResNet: the image between is as large as any
of the network's, and never whole in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.kernels.fuse_product_chain import product
from nanoloom.kernels.fuse_winograd_pool import is_pool
from nanoloom.kernels.group import Group, group_of, users
from nanoloom.kernels.guarded_reads import border_around, guard, readers_of
from nanoloom.kernels.insert_in_place import is_insertion, source_of
from nanoloom.kernels.linalg_query import Kind, Op, base, inputs
from nanoloom.kernels.nest import alone
from nanoloom.mlir import ir
from nanoloom.nest.overlapping_pool import is_overlapping_pool, makes_image, pays
from nanoloom.target.facts import Target


def fuse_overlapping_pools(
    groups: list[Group], weights: Sequence[ir.Value], target: Target | None
) -> list[Group]:
    """Join pools of windows with the products that make their images for nobody else.

    weights: the arguments that are parameters, of which panels can be packed.
    """
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        pool, *others = group.ops
        if others or target is None or not is_pool(pool):
            continue
        if not is_overlapping_pool(alone(pool)):
            continue
        insertion = insertion_in_front(pool)
        value = inputs(pool)[0] if insertion is None else source_of(insertion)
        source = group_of(value, owner)
        if source is None or not suits(source, value, pool, weights, target):
            continue
        between = [] if insertion is None else is_padded(pool, insertion, value)
        if between is not None:
            group.ops = [*source.ops, *between, pool]
            group.root, group.rows = Kind.CONTRACTION, 0
            gone.add(id(source))
    return [group for group in groups if id(group) not in gone]


def insertion_in_front(pool: Op) -> Op | None:
    """What puts a border around the image that a pool reads; None for no border."""
    owner = base(inputs(pool)[0]).owner
    if isinstance(owner, ir.Block) or not is_insertion(owner.opview):
        return None
    return owner.opview


def suits(
    source: Group,
    value: ir.Value,
    pool: Op,
    weights: Sequence[ir.Value],
    target: Target,
) -> bool:
    """Whether a group makes an image for a pool alone, and both are faster as one."""
    made = product(source)
    shape = None if made is None else makes_image(alone(made))
    if made is None or shape is None or len(users(value)) != 1:
        return False
    if value != source.ops[-1].operation.results[0]:
        return False
    if base(inputs(made)[shape.right]) not in weights:
        return False
    return pays(shape, alone(pool), target)


def is_padded(pool: Op, insertion: Op, image: ir.Value) -> list[Op] | None:
    """Let a pool read a border that is made around an image; None where it cannot."""
    if readers_of(insertion) != [(pool, 0)]:
        return None
    border = border_around(insertion, (pool, 0), image)
    rank = ir.RankedTensorType(image.type).rank
    if border is None or None in border.places or rank != len(border.shape):
        return None
    return [guard((pool, 0), border)]
