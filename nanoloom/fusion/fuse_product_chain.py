"""Products with sums along rows between them as one kernel (nest/product_chain.py).

    a = q k' (scaled, masked); p = softmax(a); y = p v

The three groups become one if nothing else reads what is between them, so that a block
of it lives in the cache only while its rows are computed.  Not if a right operand is a
large weight: all tasks read all of it, and it is not packed for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.fusion.fuse import (
    Front,
    Owners,
    Reason,
    fuse_groups,
    only_reader,
    product,
)
from nanoloom.fusion.group import Group, group_of
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    base,
    bytes_of,
    inputs,
    is_contraction,
    is_generic,
)
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir
from nanoloom.nest.product_chain import begins, ends, fits
from nanoloom.target.facts import Cache


def fuse_product_chains(
    groups: list[Group], weights: Sequence[ir.Value], caches: Cache
) -> list[Group]:
    """Join the groups of every chain, each where its last one stood.

    weights: the arguments that are parameters.  caches: of a core.
    """

    def rule(group: Group, owner: Owners) -> Front | Reason | None:
        parts = parts_of(group, owner, caches)
        if parts is None:
            return None
        if any(reads_large(x, weights, caches) for x in (parts[0], group)):
            (made,) = parts[1].ops[-1].operation.results
            return Reason(made, "each block of rows would read all of a large weight")
        return Front(parts)

    return fuse_groups(groups, rule)


def parts_of(group: Group, owner: Owners, caches: Cache) -> tuple[Group, Group] | None:
    """The first product's group and that of the sums, in front of a product."""
    last = only_product(group)
    given = [] if last is None else [group_of(v, owner) for v in inputs(last)]
    if last is None or not any(map(has_sums, given)):
        return None
    shape = ends(alone(last))
    between = given[shape.left] if shape is not None and fits(shape, caches) else None
    if between is None or not has_sums(between):
        return None
    first = source_of(between, owner, caches)
    if first is None or not only_reader(between, group):
        return None
    return (first, between) if only_reader(first, between) else None


def only_product(group: Group) -> Op | None:
    """The product that a group begins with, if it has no other: a chain is of two."""
    made = product(group)
    several = sum(is_generic(op) and is_contraction(op) for op in group.ops) > 1
    return None if several else made


def has_sums(group: Group | None) -> bool:
    """Whether a group has sums along rows."""
    return group is not None and group.root is Kind.REDUCTION


def reads_large(group: Group, weights: Sequence[ir.Value], caches: Cache) -> bool:
    """Whether the right operand of a group's product is a large weight."""
    op = product(group)
    shape = None if op is None else begins(alone(op))
    assert op is not None and shape is not None, "asked of the products of a chain"
    value = inputs(op)[shape.right]
    return base(value) in weights and bytes_of(value.type) > caches.resident


def source_of(between: Group, owner: Owners, caches: Cache) -> Group | None:
    """The product whose result some sums work on, each row of it by itself."""
    read = [group_of(value, owner) for op in between.ops for value in inputs(op)]
    products = {id(g): g for g in read if g is not None and product(g) is not None}
    rank = ir.RankedTensorType(between.ops[-1].operation.results[0].type).rank
    if len(products) != 1 or between.rows != rank - 1:
        return None
    (found,) = products.values()
    first = only_product(found)
    shape = None if first is None else begins(alone(first))
    return found if shape is not None and fits(shape, caches) else None
