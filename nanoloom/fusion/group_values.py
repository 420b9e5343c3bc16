"""What a group of operations reads of others, and what it makes for them."""

from __future__ import annotations

from nanoloom.fusion.group import Group, is_movable, users
from nanoloom.ir.linalg_query import Op
from nanoloom.ir.mlir import ir


def external_inputs(group: Group) -> list[ir.Value]:
    """Values from outside that the group reads, in order of first use."""
    if group.reads is not None:
        return list(group.reads)
    return list(dict.fromkeys(external_uses(group)))


def settle(groups: list[Group]) -> list[Group]:
    """The groups, which know what they read: nothing joins or changes them any more."""
    for group in groups:
        group.reads = tuple(external_inputs(group))
    return groups


def external_uses(group: Group) -> list[ir.Value]:
    """The same, as often as operations of the group read them."""
    inside = {op.operation for op in group.ops}
    found: list[ir.Value] = []

    def visit(op: ir.Operation) -> None:
        for value in op.operands:
            if defined_below(value, inside):
                continue
            owner = value.owner
            if not isinstance(owner, ir.Block) and is_movable(owner.opview):
                inside.add(owner.operation)  # its body's own values are none
                visit(owner)
                continue
            found.append(value)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    visit(inner.operation)

    for op in group.ops:
        visit(op.operation)
    return found


def defined_below(value: ir.Value, inside: set[ir.Operation]) -> bool:
    """Whether a value is made by one of these operations or within their regions."""
    owner = value.owner
    operation = owner.owner if isinstance(owner, ir.Block) else owner
    while operation is not None:
        if isinstance(operation, ir.OpView):
            operation = operation.operation
        if operation in inside:
            return True
        if operation.name == "func.func":
            return False
        operation = operation.parent
    return False


def group_results(group: Group) -> list[ir.Value]:
    """What a group computes for others, in the order of its operations."""
    *before, last = group.ops
    made = [r for r in last.operation.results if list(r.uses)]
    return [*results_of(before, last), *made]


def results_of(before: list[Op], last: Op) -> list[ir.Value]:
    """What operations make that others read than these and one behind them."""
    inside = {op.operation for op in (*before, last)}
    return [
        result
        for op in before
        for result in op.operation.results
        if any(outermost(user.operation) not in inside for user in users(result))
    ]


def outermost(op: ir.Operation) -> ir.Operation:
    """The operation of the function's body that holds op."""
    while True:
        parent = op.parent
        if isinstance(parent, ir.OpView):
            parent = parent.operation
        if parent is None or parent.name == "func.func":
            return op
        op = parent
