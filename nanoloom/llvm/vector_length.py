"""Masks of a length that the machine was asked for become the length itself.

    length = get.vector.length(rest);  mask = get.active.lane.mask(0, length)
    masked.load(p, mask)   ->  vp.load(p, length)
    masked.store(v, mask)  ->  vp.store(v, p, length)
    select(mask, a, b)     ->  vp.merge(a, b, length)

RISC-V's vsetvli then says which lanes count, and what computes between them works on no
more (LLVM's RISCVVLOptimizer): no mask is made.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir, llvm, named
from nanoloom.llvm import masked_bf16
from nanoloom.vector.masked_iterations import LENGTH

MASK = "llvm.intr.get.active.lane.mask"


def use_vector_lengths(module: ir.Module) -> None:
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
            case masked_bf16.LOAD:
                made = load(operation, all_of(mask), length)
            case masked_bf16.STORE:
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
    pointer = in_two_steps(operation.operands[0], length)
    words = aligned(operation, 0, 3)
    kind = operation.results[0].type
    given = [pointer, mask, length]
    return llvm.call_intrinsic(kind, "llvm.vp.load", given, [], [], arg_attrs=words)


def store(operation: ir.Operation, mask: ir.Value, length: ir.Value) -> None:
    value, pointer = list(operation.operands)[:2]
    words = aligned(operation, 1, 4)
    given = [value, in_two_steps(pointer, length), mask, length]
    llvm.call_intrinsic(None, "llvm.vp.store", given, [], [], arg_attrs=words)


def in_two_steps(pointer: ir.Value, length: ir.Value) -> ir.Value:
    """p[row + at]  ->  (p[row])[at], where at is what the rounds have done.

    LLVM takes p[row] out of the loop.  A loop whose steps are numbers has its pointers
    go forward in it; this one's are computed in each round.
    """
    address, rest = pointer.owner, asked(length)
    if isinstance(address, ir.Block) or address.name != "llvm.getelementptr":
        return pointer
    if len(address.operands) != 2 or rest is None:
        return pointer
    base, place = address.operands
    total = place.owner
    if isinstance(total, ir.Block) or total.name != "llvm.add":
        return pointer
    at = rest.operands[1]
    others = [value for value in total.operands if value != at]
    if len(others) != 1:
        return pointer
    row, within = address.clone(), address.clone()
    row.operands[0], row.operands[1] = base, others[0]
    within.operands[0], within.operands[1] = row.results[0], at
    return within.results[0]


def asked(length: ir.Value) -> ir.Operation | None:
    """What is left, end - at, as the machine is asked for a length of it."""
    call = length.owner
    assert not isinstance(call, ir.Block), "a length is what a call gives"
    rest = call.operands[0].owner
    if isinstance(rest, ir.Block) or rest.name != "llvm.sub":
        return None
    return rest


def aligned(operation: ir.Operation, place: int, count: int) -> ir.ArrayAttr:
    """The pointer's alignment, which would be a whole vector's without a word."""
    i64 = ir.IntegerType.get_signless(64)
    bytes_ = ir.IntegerAttr(operation.attributes["alignment"]).value
    word = ir.DictAttr.get({"llvm.align": ir.IntegerAttr.get(i64, bytes_)})
    nothing = ir.DictAttr.get({})
    return ir.ArrayAttr.get([word if n == place else nothing for n in range(count)])
