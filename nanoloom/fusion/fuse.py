"""One loop that joins groups: what makes a tensor with what alone reads it.

A rule says what stands in front of a group in its kernel: whether the footprint of a
task's block is known, and whether that pays; or why a tensor stays in memory.  The loop
keeps the groups, the plan and the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.fusion.fusion_plan import mark
from nanoloom.fusion.group import Group, users
from nanoloom.ir.linalg_query import Kind, Op, is_contraction, is_generic
from nanoloom.ir.mlir import ir

Owners = dict[ir.Operation, Group]


@dataclass(frozen=True)
class Front:
    """What stands in front of a group.

    parts: groups, in order, the last of which is computed inside of what reads it.
    between: operations that were made for it: a border around its result.
    """

    parts: tuple[Group, ...]
    between: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Reason:
    """Why a value that a group reads has a kernel of its own."""

    value: ir.Value
    text: str


Rule = Callable[[Group, Owners], Front | Reason | None]


def fuse_groups(groups: list[Group], rule: Rule) -> list[Group]:
    """Join groups where a rule says so, each where the last one stood.

    A rule gives None where there is nothing that it is about.
    """
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        front = rule(group, owner)
        if isinstance(front, Reason):
            group.apart[front.value] = front.text
        elif front is not None:
            mark(front.parts[-1].ops[-1])
            made = [op for part in front.parts for op in part.ops]
            group.ops = [*made, *front.between, *group.ops]
            group.apart |= {v: x for p in front.parts for v, x in p.apart.items()}
            roots = {group.root, *(part.root for part in front.parts)}
            product = Kind.CONTRACTION in roots
            group.root = Kind.CONTRACTION if product else Kind.REDUCTION
            group.rows = 0
            gone |= {id(part) for part in front.parts}
    return [group for group in groups if id(group) not in gone]


def product(group: Group) -> Op | None:
    """The contraction that a group begins with, None if it is none."""
    op = group.ops[0]
    found = group.root is Kind.CONTRACTION and is_generic(op) and is_contraction(op)
    return op if found else None


def only_reader(producer: Group, reader: Group) -> bool:
    """Whether a group's result is read within one other group, and nowhere else."""
    inside = {op.operation for op in reader.ops}
    result = producer.ops[-1].operation.results[0]
    return all(user.operation in inside for user in users(result))
