"""Attention as one kernel: two products with a softmax between them.

    scores = q k' (scaled, masked); p = softmax(scores); out = p v

The three groups become one if nothing else reads the scores, so that a block of them
lives in the cache only while its rows are computed.
"""

from __future__ import annotations

from nanoloom.kernels.contraction import analyse
from nanoloom.kernels.group import Group, group_of, users
from nanoloom.kernels.structure import (
    Kind,
    Op,
    inputs,
    is_contraction,
    is_generic,
    map_dims,
    maps,
)
from nanoloom.mlir import ir
from nanoloom.nest.contraction import Contraction

MOST_KEYS = 16384  # a row of scores: so many f32 numbers still leave room in the cache


def join_attention(groups: list[Group]) -> list[Group]:
    """Join the groups of every attention, each where its last one stood."""
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        parts = attention_parts(group, owner)
        if parts is None or any(id(part) in gone for part in parts):
            continue
        scores, softmax = parts
        group.ops = [*scores.ops, *softmax.ops, *group.ops]
        group.root = Kind.ATTENTION
        gone |= {id(scores), id(softmax)}
    return [group for group in groups if id(group) not in gone]


def attention_parts(
    group: Group, owner: dict[ir.Operation, Group]
) -> tuple[Group, Group] | None:
    """The groups of the scores and of the softmax in front of a product with values."""
    root = product(group)
    if root is None:
        return None
    shape = analyse(root)
    if shape is None or not is_tileable(shape) or shape.rows[:-1]:
        return None
    weights = inputs(root)[shape.left]
    softmax = group_of(weights, owner)
    if softmax is None or softmax.root is not Kind.REDUCTION or not reads_rows(root):
        return None
    if not only_reader(softmax, group):
        return None
    scores = source_of(softmax, owner)
    if scores is None or not only_reader(scores, softmax):
        return None
    first = product(scores)
    inner = None if first is None else analyse(first)
    return (scores, softmax) if inner is not None and is_tileable(inner) else None


def product(group: Group) -> Op | None:
    """The contraction that a group begins with."""
    op = group.ops[0]
    found = group.root is Kind.CONTRACTION and is_generic(op) and is_contraction(op)
    return op if found else None


def is_tileable(shape: Contraction) -> bool:
    """Whether register tiles can run over rows and columns of both operands.

    A single row, as of the next word of a text, is no dimension of its own.
    """
    few = len(shape.rows) < 2 and len(shape.reduced) == 1 and not shape.other_columns
    return few and shape.contiguous and 0 < shape.extents[shape.column] <= MOST_KEYS


def reads_rows(root: Op) -> bool:
    """Whether the left operand is [shared..., row, reduced], as softmax wrote it."""
    shape = analyse(root)
    assert shape is not None
    wanted = [*shape.shared, *shape.rows, *shape.reduced]
    return map_dims(maps(root)[shape.left]) == wanted


def only_reader(producer: Group, reader: Group) -> bool:
    """Whether a group's result is read within one other group, and nowhere else."""
    inside = {op.operation for op in reader.ops}
    result = producer.ops[-1].operation.results[0]
    return all(user.operation in inside for user in users(result))


def source_of(softmax: Group, owner: dict[ir.Operation, Group]) -> Group | None:
    """The product whose result a softmax works on, each row of it by itself."""
    read = [group_of(value, owner) for op in softmax.ops for value in inputs(op)]
    products = {id(g): g for g in read if g is not None and product(g) is not None}
    rank = ir.RankedTensorType(softmax.ops[-1].operation.results[0].type).rank
    by_rows = softmax.rows == rank - 1
    return next(iter(products.values())) if len(products) == 1 and by_rows else None
