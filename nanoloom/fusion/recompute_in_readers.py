"""Numbers that are narrower before an operation than behind it are read before it.

y = f(x);  z = g(y, a)   ->   z = g'(x, a)      g'(b, a) = g(f(b), a)

where x is in memory anyway: others read it as well, or a product's kernel reads it
beside its own result.  y would be more bytes than x, and a kernel of its own.  So are
both ends of the residual blocks of networks in 8 bits or in bf16, and masks of bits.
"""

from __future__ import annotations

from nanoloom.fusion.fold_copies import at_top
from nanoloom.fusion.inline_operation import inline_operation, is_plain
from nanoloom.ir.contraction import comes_from_product
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    element_bytes,
    input_count,
    inputs,
    is_copy,
    is_generic,
    is_identity,
    is_pad,
    kind,
    maps,
)
from nanoloom.ir.mlir import ir, operations


def recompute_in_readers(module: ir.Module) -> None:
    """Rewrite a module in place."""
    for op in operations(module, is_widening):
        result = op.operation.results[0]
        if not at_top(op) or not all(map(may_widen, result.uses)):
            continue
        while list(result.uses):
            use = next(iter(result.uses))
            inline_operation(op, use.owner.opview, use.operand_number)
        op.operation.erase()


def is_widening(op: Op) -> bool:
    """Whether an operation makes more bytes of numbers alone that are in memory."""
    if not is_generic(op) or input_count(op) != 1 or len(op.operation.results) != 1:
        return False
    if kind(op) is not Kind.ELEMENTWISE or not all(map(is_identity, maps(op))):
        return False
    source, result = inputs(op)[0], op.operation.results[0]
    if not is_plain(op) or is_pad(op):
        return False
    if len(list(source.uses)) < 2 and not meets_product(result):
        return False
    return element_bytes(source.type) < element_bytes(result.type)


def meets_product(value: ir.Value) -> bool:
    """Whether something reads a value beside what another product is made into."""
    readers = [use.owner.opview for use in value.uses]
    return any(
        comes_from_product(other)
        for reader in filter(is_generic, readers)
        for other in inputs(reader)
        if other != value
    )


def may_widen(use: ir.OpOperand) -> bool:
    """Whether a reader can make the numbers itself: it reads each of them once."""
    reader = use.owner.opview
    if not is_generic(reader) or use.operand_number >= input_count(reader):
        return False
    if kind(reader) is not Kind.ELEMENTWISE or is_copy(reader) or is_pad(reader):
        return False
    every = is_identity(maps(reader)[use.operand_number])
    return every and is_plain(reader)
