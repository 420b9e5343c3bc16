"""What reduces windows of what another group reduces, joined with it where it pays.

    t = largest of windows of x;  y = largest of windows of t, with its border
      ->  one kernel: a task makes a block of y, and the part of t it reads

Legality is the footprint of a window, of any stages (nest/parts.py); cost is what the
edges of blocks compute again, against the bytes that stay in the cache.
"""

from __future__ import annotations

from nanoloom.cost.profit import pays
from nanoloom.fusion.candidate_nest import nest_of
from nanoloom.fusion.fuse import Front, Owners, fuse_groups
from nanoloom.fusion.fuse_consumer import insertion_in_front, is_padded
from nanoloom.fusion.group import LIMIT, Group, group_of, users
from nanoloom.fusion.insert_in_place import source_of
from nanoloom.fusion.read_through_views import is_reduction
from nanoloom.ir.linalg_query import Kind, Op, inputs, is_generic
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir
from nanoloom.nest.parts import blocks, has_windows
from nanoloom.nest.tasks import in_tasks
from nanoloom.target.facts import Target


def fuse_by_footprint(groups: list[Group], target: Target | None) -> list[Group]:
    """Join windows of windows, of known sizes; without a target none."""
    if target is None:
        return groups

    def rule(group: Group, owner: Owners) -> Front | None:
        first = group.ops[0]
        if group.root is not Kind.REDUCTION or not is_windows(first):
            return None
        insertion = insertion_in_front(first)
        value = inputs(first)[0] if insertion is None else source_of(insertion)
        source = group_of(value, owner)
        if source is None or not suits(source, value, group):
            return None
        ops = [*source.ops, *group.ops]
        nest = nest_of(ops, (), {inputs(first)[0]: value})
        last = nest.last
        sizes = {} if last is None else blocks(nest)
        if last is None or not sizes:
            return None
        if not pays(nest, in_tasks(nest, last, sizes), target):
            return None
        between = () if insertion is None else is_padded(first, insertion, value)
        return None if between is None else Front((source,), between)

    return fuse_groups(groups, rule)


def is_windows(op: Op) -> bool:
    return is_reduction(op) and bool(inputs(op)) and has_windows(alone(op))


def suits(source: Group, value: ir.Value, group: Group) -> bool:
    """Whether a group of windows makes a value for the first of another one alone."""
    ops = [*source.ops, *group.ops]
    if source.root is not Kind.REDUCTION or not all(map(is_generic, ops)):
        return False
    if len(ops) >= LIMIT or value != source.ops[-1].operation.results[0]:
        return False
    windows = [op for op in source.ops if is_windows(op)]
    read = inputs(group.ops[0])[0].type
    ranks = {ir.RankedTensorType(kind).rank for kind in (value.type, read)}
    return bool(windows) and len(ranks) == 1 and len(users(value)) == 1
