"""tensor.pad of MLIR text: the border is filled, the middle inserted.

%p = tensor.pad %x low[1, 0] high[2, 0] { yield %number }
  ->  %p = tensor.insert_slice %x into fill(%number)[1, 0]
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir, linalg, named, tensor
from nanoloom.linalg.builder.tensor_slices import inserted

DYNAMIC = ir.ShapedType.get_dynamic_size()


def write_out_pads(module: ir.Module) -> None:
    """Replace all pads of known sizes with one number; others stay, to be refused."""
    for op in named(module, "tensor.pad"):
        source, (result,) = op.operation.operands[0], op.operation.results
        kinds = [ir.RankedTensorType(v.type) for v in (source, result)]
        number = number_around(op)
        low, high = widths(op, "low"), widths(op, "high")
        known = all(kind.has_static_shape for kind in kinds)
        if number is None or not known or min((*low, *high), default=0) < 0:
            continue
        inner, outer = kinds
        with ir.InsertionPoint(op), op.operation.location:
            empty = tensor.empty(outer.shape, outer.element_type)
            filled = linalg.fill(number, outs=[empty])
            made = inserted(source, filled, low, inner.shape)
        result.replace_all_uses_with(made)
        op.operation.erase()


def widths(op: ir.OpView, side: str) -> list[int]:
    """Of the border on one side of each dimension; less than none if not known."""
    given = op.operation.attributes[f"static_{side}"]
    return [-1 if n == DYNAMIC else int(n) for n in given]  # type: ignore[union-attr]


def number_around(op: ir.OpView) -> ir.Value | None:
    """What a border is filled with, in front of the pad; None if places differ."""
    block = op.operation.regions[0].blocks[0]
    *before, last = block.operations
    number = last.operation.operands[0]
    if any(each.operation.name != "arith.constant" for each in before):
        return None
    if number in list(block.arguments):
        return None
    for each in before:
        each.operation.move_before(op.operation)
    return number
