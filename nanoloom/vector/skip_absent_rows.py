"""Stores of rows that a tile may not have: behind a branch, in place of a mask of none.

The last tile of a kernel with sizes has any number of rows, and a text of one word has
one of six.  Where a mask leaves nothing of a store it is slow: on Zen 4 those of five
rows took a third of a product's time.

    write %v, %to[1, 0], create_mask(select %there, %n, 0)
 -> scf.if %there { write %v, %to[1, 0], create_mask(%n) }
"""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.dynamic.dynamic_kernel import ARGUMENT
from nanoloom.ir.access import constant_of
from nanoloom.ir.mlir import ir, made_by, named, scf, vector

WRITE = "vector.transfer_write"
PURE = ("arith", "math", "affine")  # dialects; nothing in them reads a buffer
PURE_VECTORS = frozenset(["vector.create_mask", "vector.broadcast", "vector.fma"])


def skip_absent_rows(module: ir.Module) -> None:
    """In functions with sizes (on buffers): ask once for each row of a tile."""
    for function in module.body.operations:
        if ARGUMENT in function.operation.attributes:
            for row in list(rows(function)):
                skip(row)


def rows(function: ir.OpView) -> Iterator[list[ir.Operation]]:
    """Stores of one row, which stand one behind the other but for arithmetic."""
    blocks: dict[ir.Block, list[ir.Operation]] = {}
    for op in named(function, WRITE):
        blocks.setdefault(op.operation.block, []).append(op.operation)
    for block in blocks:
        row: list[ir.Operation] = []
        for each in block.operations:
            op = each.operation
            here = there(op)
            if row and not (may_wait(op) if here is None else here == there(row[0])):
                yield row
                row = []
            if here is not None:
                row.append(op)
        if row:
            yield row


def may_wait(op: ir.Operation) -> bool:
    """Whether a store may as well stand behind it."""
    return op.name.split(".")[0] in PURE or op.name in PURE_VECTORS


def there(op: ir.Operation) -> ir.Value | None:
    """Whether the row of a store exists, as a value; None for other operations."""
    count = count_of(op)
    return None if count is None else count.operands[0]


def count_of(op: ir.Operation) -> ir.Operation | None:
    """The select of a store's mask that is 0 for a row that does not exist."""
    store = op.opview
    if not isinstance(store, vector.TransferWriteOp) or store.mask is None:
        return None
    made = made_by(store.mask, "vector.create_mask")
    count = None if made is None else made_by(made.operands[0], "arith.select")
    absent = count is not None and constant_of(count.operands[2]) == 0
    return count if absent else None


def skip(row: list[ir.Operation]) -> None:
    """Put stores of a row behind a branch, where the last of them stands."""
    condition = there(row[0])
    assert condition is not None
    with ir.InsertionPoint(row[-1]), row[-1].location:
        branch = scf.IfOp(condition)
        with ir.InsertionPoint(branch.then_block):
            end = scf.yield_([])
    for op in row:
        count = count_of(op)
        assert count is not None
        with ir.InsertionPoint(end), op.location:
            kind = op.operands[len(op.operands) - 1].type
            mask = vector.create_mask(kind, [count.operands[1]])
        op.operands[len(op.operands) - 1] = mask
        op.move_before(end)
