"""Masks of a length that the machine was asked for become the length itself.

    length = get.vector.length(rest);  mask = get.active.lane.mask(0, length)
    masked.load(p, mask)   ->  vp.load(p, length)
    masked.store(v, mask)  ->  vp.store(v, p, length)
    select(mask, a, b)     ->  vp.merge(a, b, length)

RISC-V's vsetvli then says which lanes count, and what computes between them works on no
more (LLVM's RISCVVLOptimizer): no mask is made.
"""

from __future__ import annotations

from nanoloom.llvm import masked
from nanoloom.mlir import ir, llvm, named
from nanoloom.vector.masked_rounds import LENGTH

MASK = "llvm.intr.get.active.lane.mask"


def use_lengths(module: ir.Module) -> None:
    """In LLVM's dialect: rewrite what is under the mask of a length."""
    for op in named(module, MASK):
        length = op.operation.operands[1]
        if is_length(length):
            for use in list(op.operation.results[0].uses):
                rewrite(use.owner.operation, op.operation.results[0], length)


def is_length(value: ir.Value) -> bool:
    """Whether the machine was asked for a number."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.call_intrinsic":
        return False
    return ir.StringAttr(owner.attributes["intrin"]).value == LENGTH


def rewrite(operation: ir.Operation, mask: ir.Value, length: ir.Value) -> None:
    """What takes a mask takes a length; anything else stays as it is."""
    with ir.InsertionPoint(operation), operation.location:
        match operation.name:
            case masked.LOAD:
                made = load(operation, all_of(mask), length)
            case masked.STORE:
                store(operation, all_of(mask), length)
                made = None
            case "llvm.select" if operation.operands[0] == mask:
                _, yes, no = operation.operands
                made = llvm.intr_vp_merge(yes.type, all_of(mask), yes, no, length)
            case _:
                return
    if made is not None:
        operation.results[0].replace_all_uses_with(made)
    operation.erase()


def all_of(mask: ir.Value) -> ir.Value:
    """A mask of all lanes."""
    kind = ir.VectorType(mask.type)
    true = ir.DenseElementsAttr.get_splat(kind, ir.BoolAttr.get(True))
    return llvm.mlir_constant(true)


def load(operation: ir.Operation, mask: ir.Value, length: ir.Value) -> ir.Value:
    """Lanes behind the length are anything: nothing reads them."""
    pointer = operation.operands[0]
    words = aligned(operation, 0, 3)
    kind = operation.results[0].type
    given = [pointer, mask, length]
    return llvm.call_intrinsic(kind, "llvm.vp.load", given, [], [], arg_attrs=words)


def store(operation: ir.Operation, mask: ir.Value, length: ir.Value) -> None:
    value, pointer = list(operation.operands)[:2]
    words = aligned(operation, 1, 4)
    given = [value, pointer, mask, length]
    llvm.call_intrinsic(None, "llvm.vp.store", given, [], [], arg_attrs=words)


def aligned(operation: ir.Operation, place: int, count: int) -> ir.ArrayAttr:
    """The pointer's alignment, which would be a whole vector's without a word."""
    i64 = ir.IntegerType.get_signless(64)
    bytes_ = ir.IntegerAttr(operation.attributes["alignment"]).value
    word = ir.DictAttr.get({"llvm.align": ir.IntegerAttr.get(i64, bytes_)})
    nothing = ir.DictAttr.get({})
    return ir.ArrayAttr.get([word if n == place else nothing for n in range(count)])
