"""Elementwise groups that fell out of a product's go to the group that reads them.

h = x w + residual          read elsewhere as well, and the end of its kernel
s = h * h                   joined the product at first: no kernel of its own, but
y = h / sqrt(mean(s))       the beginning of the one that reads it, row by row
"""

from __future__ import annotations

from nanoloom.kernels.group import (
    LIMIT,
    Group,
    merge,
    originate_from,
    owner_of,
    row_shaped,
    users,
)
from nanoloom.kernels.linalg_query import (
    Kind,
    base,
    inputs,
    is_generic,
    is_prefix,
    maps,
)
from nanoloom.mlir import ir


def regroup_elementwise(groups: list[Group]) -> list[Group]:
    """Put such groups in front of their only readers; all that are left, in order."""
    owner = {op.operation: group for group in groups for op in group.ops}
    for group in groups:
        reader = only_reader(group, owner)
        if (
            reader is not None
            and may_lead(group, reader)
            and is_left_over(group, owner)
        ):
            merge(reader, group, owner)
    return [group for group in groups if group.ops]


def is_left_over(group: Group, owner: dict[ir.Operation, Group]) -> bool:
    """Whether a group reads what a product's kernel ends with."""
    read = (owner_of(base(value)) for op in group.ops for value in inputs(op))
    parts = (owner.get(op) for op in read if op is not None)
    return any(part is not None and part.root is Kind.CONTRACTION for part in parts)


def only_reader(group: Group, owner: dict[ir.Operation, Group]) -> Group | None:
    """The group whose operations alone read what a group makes."""
    if not group.ops or len(group.ops[-1].operation.results) != 1:
        return None
    readers = users(group.ops[-1].operation.results[0])
    found = {id(owner.get(op.operation)): owner.get(op.operation) for op in readers}
    return next(iter(found.values())) if len(found) == 1 else None


def may_lead(group: Group, reader: Group) -> bool:
    """Whether a reader's rows may begin with what another group makes of each."""
    if group.root is not Kind.ELEMENTWISE or reader is group:
        return False
    if reader.root not in (Kind.ELEMENTWISE, Kind.REDUCTION):
        return False
    ops = [*group.ops, *reader.ops]
    if len(ops) >= LIMIT or not all(is_generic(op) and row_shaped(op) for op in ops):
        return False
    value = group.ops[-1].operation.results[0]
    reading = [
        m
        for op in reader.ops
        for v, m in zip(inputs(op), maps(op), strict=False)
        if v == value
    ]
    return all(is_prefix(m) for m in reading) and not waits(group, reader)


def waits(group: Group, reader: Group) -> bool:
    """Whether a group needs something that the reader's operations make."""
    made = {op.operation for op in reader.ops}
    values = [v for op in group.ops for v in inputs(op)]
    return originate_from(values, made, reader.ops[0].operation)
