"""Fusion: which operations become one kernel.

A group has one root and one result.  A contraction takes the elementwise operations
behind it (its epilogue).  Everything else is fused by rows: operations that read each
other's results only at the same leading indices share the loops over those.  Groups
become kernels, some of them joined: around two products (fuse_product_chain.py), or
where results are read both by the next group and elsewhere (multi_output_fusion.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nanoloom.fusion.insert_in_place import INSERT, is_insertion
from nanoloom.ir.linalg_query import (
    VIEWS,
    Kind,
    Op,
    body,
    inputs,
    is_fill,
    is_generic,
    is_pad,
    is_prefix,
    is_read_in_place,
    iterators,
    kind,
    maps,
    outputs,
)
from nanoloom.ir.loop_nest import alone, indices, names_of
from nanoloom.ir.mlir import ir, made_by

LIMIT = 24  # operations in a group: more gain nothing and crowd the registers
MOVABLE = ("tensor.empty", "arith.constant")
LOOPS = ("scf.for", "scf.while")


@dataclass(eq=False)
class Group:
    """Operations in program order; `root` decides about the schedule.

    rows: leading parallel dimensions that all operations share.  apart: of values that
    it reads, why what makes them is no part of it.  reads: these values, of a group
    that nothing joins any more (`settle`): kernels, places and buffers ask for them.
    """

    ops: list[Op]
    root: Kind
    rows: int
    apart: dict[ir.Value, str] = field(default_factory=dict[ir.Value, str])
    reads: tuple[ir.Value, ...] | None = None


def is_movable(op: Op) -> bool:
    """Costs nothing and is made again in every kernel that needs it."""
    free = op.operation.name in MOVABLE or is_fill(op) or is_scalar(op)
    return free or is_read_in_place(op) or is_pad(op)


def is_scalar(op: Op) -> bool:
    """Makes no tensor: a condition, a bound or an index, which no buffer can hold."""
    results = list(op.operation.results)
    tensors = [r for r in results if isinstance(r.type, ir.RankedTensorType)]
    return bool(results) and not tensors


def is_view(op: Op) -> bool:
    """The same bytes under another shape."""
    return op.operation.name in VIEWS


def users(value: ir.Value) -> list[Op]:
    return [use.owner.opview for use in value.uses]


def form_groups(block: ir.Block) -> list[Group]:
    """The groups of a function's block, in an order in which they can run."""
    owner: dict[ir.Operation, Group] = {}
    groups: list[Group] = []
    position: dict[ir.Operation, int] = {}
    for place, op in enumerate(block.operations):
        position[op.operation] = place
        if op.operation.name == "func.return" or is_view(op) or is_insertion(op):
            continue
        if is_movable(op) and not stands_alone(op):
            continue
        group = join(op, owner) or single(op)
        if group.ops == [op]:
            groups.append(group)
        owner[op.operation] = group
    whole = [part for g in groups if g.ops for part in split_open(g)]
    return sorted(whole, key=lambda g: position[g.ops[-1].operation])


def stands_alone(op: Op) -> bool:
    """A fill whose tensor is read, not only written over."""
    return is_fill(op) and is_read(op.operation.results[0])


def is_read(value: ir.Value, *, is_shown: bool = False) -> bool:
    """Whether a fill's numbers are needed; is_shown: through another shape."""
    for user in users(value):
        if is_view(user):
            if is_read(user.operation.results[0], is_shown=True):
                return True
        elif user.operation.name == INSERT and user.operation.operands[0] != value:
            if is_shown and not is_insertion(user):
                return True
        elif is_shown or not is_generic(user):
            if is_shown or user.operation.name not in LOOPS:  # a loop has its own
                return True
        elif value in inputs(user):
            return True
    return False


def single(op: Op) -> Group:
    root = kind(op)
    rows = iterators(op).count("parallel") if is_generic(op) else 0
    if root is Kind.REDUCTION:
        rows = leading_parallel(op)
    return Group([op], root, rows)


def leading_parallel(op: Op) -> int:
    """Parallel dimensions before the first reduction, 0 if the order is mixed."""
    kinds = iterators(op)
    rows = kinds.index("reduction")
    return rows if "parallel" not in kinds[rows:] else 0


def join(op: Op, owner: dict[ir.Operation, Group]) -> Group | None:
    """Put op into the group of one of its producers, if that is allowed."""
    if op.operation.name == "tensor.insert_slice":
        return join_slices(op, owner)
    if not is_generic(op) or kind(op) is Kind.CONTRACTION:
        return None
    chosen: Group | None = None
    for value, indexing in zip(inputs(op), maps(op), strict=False):
        group = group_of(value, owner)
        if group is None or group is chosen:
            continue
        if not may_join(op, value, indexing, group) or waits_for(op, group):
            continue
        if chosen is None:
            chosen = group
        elif may_merge(chosen, group):
            merge(chosen, group, owner)
    if chosen is None:
        return None
    extend(chosen, op)
    return chosen


def waits_for(op: Op, group: Group) -> bool:
    """Whether op needs something from outside a group that needs the group itself.

    exp(x - max(x)) behind a product x: the maximum is not known within its tiles.
    """
    members = {member.operation for member in group.ops}
    first = group.ops[0].operation
    values = [v for v in inputs(op) if made_by(v) not in members]
    return originate_from(values, members, first)


def originate_from(
    values: list[ir.Value], members: set[ir.Operation], first: ir.Operation
) -> bool:
    """Whether values are made of what operations make, the first one of them first."""
    open_values = list(values)
    seen: set[ir.Operation] = set()
    while open_values:
        owner = made_by(open_values.pop())
        if owner is None or owner in seen or owner.is_before_in_block(first):
            continue
        if owner in members:
            return True
        seen.add(owner)
        open_values += list(owner.operands)
    return False


def extend(group: Group, op: Op) -> None:
    """Put op at the end of a group."""
    group.ops.append(op)
    if kind(op) is Kind.REDUCTION:
        group.root = Kind.REDUCTION
        group.rows = min(group.rows, leading_parallel(op))
    else:
        group.rows = min(group.rows, len(iterators(op)))


def join_slices(op: Op, owner: dict[ir.Operation, Group]) -> Group | None:
    """A chain of insert_slice (a concatenation) is one kernel."""
    target = op.operation.operands[1]
    group = group_of(target, owner)
    if group is None or group.ops[-1].operation.name != "tensor.insert_slice":
        return None
    if len(users(target)) != 1:
        return None
    group.ops.append(op)
    return group


def group_of(value: ir.Value, owner: dict[ir.Operation, Group]) -> Group | None:
    made = made_by(value)
    return None if made is None else owner.get(made)


def may_join(op: Op, value: ir.Value, indexing: ir.AffineMap, group: Group) -> bool:
    """Whether op can run in the group's loops, behind the value it reads there."""
    if len(group.ops) >= LIMIT or len(op.operation.results) != 1:
        return False
    last = group.ops[-1]
    if not is_generic(last) or len(last.operation.results) != 1:
        return False
    if group.root is Kind.CONTRACTION:
        if looks_up(op):
            return False  # its bytes fill a register, those of a tile's row do not
        return alone(op).follows(indices(indexing, names_of(op)))
    if not row_shaped(op) or not all(row_shaped(member) for member in group.ops):
        return False
    reading = [m for v, m in zip(inputs(op), maps(op), strict=False) if v == value]
    return all(is_prefix(m) for m in reading)


def looks_up(op: Op) -> bool:
    """Whether an operation reads a tensor at places of its own choice."""
    return any(x.operation.name == "tensor.extract" for x in body(op).operations)


def row_shaped(op: Op) -> bool:
    """Writes at the leading indices of its loops, reductions innermost."""
    if not all(is_prefix(m) for m in maps(op)[len(inputs(op)) :]):
        return False
    return kind(op) is Kind.ELEMENTWISE or leading_parallel(op) > 0


def may_merge(one: Group, other: Group) -> bool:
    kinds = {one.root, other.root}
    if Kind.CONTRACTION in kinds or Kind.OPAQUE in kinds:
        return False
    few = len(one.ops) + len(other.ops) < LIMIT
    ends = [g.ops[-1].operation.results[0] for g in (one, other)]
    return few and all(len(users(end)) == 1 for end in ends)


def merge(one: Group, other: Group, owner: dict[ir.Operation, Group]) -> None:
    """All of `other` in front of what follows in `one`."""
    one.ops = other.ops + one.ops
    if Kind.REDUCTION in (one.root, other.root):
        one.root = Kind.REDUCTION
    one.rows = min(one.rows, other.rows)
    for op in other.ops:
        owner[op.operation] = one
    other.ops = []


def split_open(group: Group) -> list[Group]:
    """A group must have one result, made by its last operation.

    The longest beginning that has only one is kept; the rest forms groups again.
    """
    sizes = range(len(group.ops), 1, -1)
    size = next((n for n in sizes if is_closed(group.ops[:n])), 1)
    if size == len(group.ops):
        return [group]
    first = single(group.ops[0])
    for op in group.ops[1:size]:
        extend(first, op)
    return [first, *regroup(group.ops[size:])]


def is_closed(ops: list[Op]) -> bool:
    """Whether only the last operation's result is used outside."""
    inside = {op.operation for op in ops}
    return not any(
        user.operation not in inside
        for op in ops[:-1]
        for result in op.operation.results
        for user in users(result)
    )


def regroup(ops: list[Op]) -> list[Group]:
    """Groups of operations that fell out of one."""
    owner: dict[ir.Operation, Group] = {}
    groups: list[Group] = []
    for op in ops:
        group = join(op, owner) or single(op)
        if group.ops == [op]:
            groups.append(group)
        owner[op.operation] = group
    return [part for g in groups if g.ops for part in split_open(g)]


__all__ = ["Group", "form_groups", "is_movable", "is_view", "outputs", "users"]
