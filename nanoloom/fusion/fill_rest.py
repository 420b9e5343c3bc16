"""What parts leave of the tensor that they lie in: a small kernel fills it."""

from __future__ import annotations

from nanoloom.fusion.constants_to_arguments import Arguments
from nanoloom.fusion.insert_in_place import Insertion, chain_of, origin_of
from nanoloom.ir.linalg_query import filled_with, is_fill
from nanoloom.ir.mlir import arith, func, ir
from nanoloom.linalg.builder.pointwise import pointwise


def rest_of(
    whole: ir.Value,
) -> tuple[ir.RankedTensorType, list[Insertion], ir.Attribute] | None:
    """What parts leave of their tensor, as `filling` takes it; None if no number.

    whole: with all of its parts, as `home` gives it.
    """
    chain = chain_of(whole.owner.opview)  # type: ignore[union-attr]
    assert chain is not None, "it has parts"
    fill = origin_of(chain)
    if fill is None or not is_fill(fill.opview):
        return None
    kind = ir.RankedTensorType(whole.type)
    shape = tuple(kind.shape)
    whole_of_it = Insertion((0,) * len(shape), shape)
    blocks = [whole_of_it]
    for part in map(Insertion.of, chain):
        blocks = [rest for block in blocks for rest in block.without(part)]
    if len(blocks) > 2 * len(shape):  # scattered parts: all of it takes less code
        blocks = [whole_of_it]
    number = filled_with(fill.opview).attributes["value"]
    return (kind, blocks, number) if blocks else None


def filling(
    kind: ir.RankedTensorType,
    blocks: list[Insertion],
    number: ir.Attribute,
    numbers: Arguments,
) -> ir.Module:
    """@kernel(result) -> result with these blocks of it filled.

    numbers: none of it is an argument.
    """
    assert not numbers.types
    module = ir.Module.create(ir.Location.unknown())
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        kernel = func.FuncOp("kernel", ir.FunctionType.get([kind], [kind]))
        entry = kernel.add_entry_block()
    words = {"bufferization.writable": ir.BoolAttr.get(True)}
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(words)])
    with ir.InsertionPoint(entry), ir.Location.unknown():
        whole: ir.Value = entry.arguments[0]
        for block in blocks:
            made = ir.RankedTensorType.get(list(block.sizes), kind.element_type)
            target = block.read(whole, made)
            filled = pointwise(
                [], target, lambda: arith.constant(kind.element_type, number)
            )
            whole = block.write(filled, whole)
        func.ReturnOp([whole])
    return module
