"""An elementwise group that one other group alone reads, row by row, is its beginning.

f = g(x)                    a kernel of its own, and a tensor
y = f / sum(f)              reads it row by row
  ->  one kernel:  a row of f is made where a row of y is

So is what fell out of a product's group because that is read elsewhere as well.
"""

from __future__ import annotations

from nanoloom.fusion.group import (
    LIMIT,
    Group,
    merge,
    originate_from,
    row_shaped,
    users,
)
from nanoloom.ir.linalg_query import (
    Kind,
    inputs,
    is_generic,
    is_prefix,
    maps,
)
from nanoloom.ir.mlir import ir


def fuse_into_readers(groups: list[Group]) -> list[Group]:
    """Put such groups in front of their only readers; all that are left, in order."""
    owner = {op.operation: group for group in groups for op in group.ops}
    for group in groups:
        reader = only_reader(group, owner)
        if reader is not None and may_lead(group, reader):
            merge(reader, group, owner)
    return [group for group in groups if group.ops]


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
