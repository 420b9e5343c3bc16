"""Stores of a tile in part, behind branches: masks are slow where a run knows better.

    write %v, %to[1, 0], create_mask(select %there, %n, 0)
     ->  scf.if %there { write %v, %to[1, 0], create_mask(%n) }      (skip_absent_rows)
    masked store [count]
     ->  if count >= lanes: store, else: masked store [count]        (store_unmasked)

The last tile of a kernel with sizes has any number of rows, and a text of one word has
one of six.  Where a mask leaves nothing of a store it is slow: on Zen 4 those of five
rows took a third of a product's time.

To store a register in part takes ten to twenty cycles where memory has to be told lane
by lane (vmaskmovps on AMD's Zen): as long as all of a short sum.  The branch costs
nothing, it is nearly always the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.dynamic.dynamic_kernel import ARGUMENT
from nanoloom.ir.access import constant_of, index
from nanoloom.ir.mlir import arith, ir, made_by, named, scf, vector
from nanoloom.vector.emit_loops import emit_branch

WRITE, MASK = "vector.transfer_write", "vector.create_mask"
PURE = ("arith", "math", "affine")  # dialects; nothing in them reads a buffer
PURE_VECTORS = frozenset([MASK, "vector.broadcast", "vector.fma"])


def lanes_written(op: ir.OpView) -> ir.Value | None:
    """How many lanes a store under a mask writes, None for all of them."""
    if not isinstance(op, vector.TransferWriteOp) or op.mask is None:
        return None
    made = made_by(op.mask, MASK)
    return None if made is None else made.operands[0]


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
    lanes = lanes_written(op.opview)
    count = None if lanes is None else made_by(lanes, "arith.select")
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


def store_unmasked(module: ir.Module) -> None:
    """On buffers: a branch around every store whose mask is known as the tile runs."""
    for op in named(module, WRITE):
        count = lanes_written(op)
        if count is not None and constant_of(count) is None:
            with ir.InsertionPoint(op), op.operation.location:
                branch(op.operation, count)
            op.operation.erase()


def branch(store: ir.Operation, count: ir.Value) -> None:
    """Either a whole store, or the one in part."""
    op = store.opview
    assert isinstance(op, vector.TransferWriteOp)
    (lanes,) = ir.VectorType(op.valueToStore.type).shape
    whole = arith.cmpi(arith.CmpIPredicate.sge, count, index(lanes))
    words = op.base, op.indices, op.permutation_map, op.in_bounds

    def unmasked() -> None:
        vector.TransferWriteOp(None, op.valueToStore, *words)

    def masked() -> None:
        store.clone()

    emit_branch(whole, unmasked, masked)
