"""Single instructions: operations of MLIR's x86 dialect, or LLVM intrinsics.

A call counts as touching memory, which bufferization refuses, and what converts as it
loads has an address only where there are buffers.  So an operation of nanoloom's own
stands for an instruction, on values alone, until all is on buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.ir.mlir import arith, ir, llvm, made_by, math, named, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.instructions import x86
from nanoloom.target.instructions.choose import DotUse
from nanoloom.target.instructions.composed import DIFFERING
from nanoloom.target.instructions.instruction import Instruction
from nanoloom.vector.dialect import INSTRUCTION, make
from nanoloom.vector.subview import subview
from nanoloom.vector.widths import vector_type

READ = "vector.transfer_read"
SIGN_BITS = 0x80808080 - (1 << 32)
Emit = Callable[[str, ir.Type, list[ir.Value]], ir.Value]
# These take an address instead of the vector that lies there.
LOADS = tuple(load.function for load in x86.CONVERTING_LOADS)


def instruction(name: str, result: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """What an operation of the x86 dialect or an intrinsic (llvm. ...) gives.

    The operand of one of LOADS is what a read gives, and that read becomes part of it.
    """
    return make(INSTRUCTION, [result], operands, function=name)[0]


def make_instructions(module: ir.Module) -> None:
    """Make what these operations stand for; behind all work on buffers."""
    for op in named(module, INSTRUCTION):
        name = op.operation.attributes["function"].value  # type: ignore[attr-defined]
        result, operands = op.operation.results[0], list(op.operation.operands)
        with ir.InsertionPoint(op), op.operation.location:
            # A nanokernel stores nothing between a read and what it reads for.
            given = [memory_of(operands[0])] if name in LOADS else operands
            result.replace_all_uses_with(emit(name, result.type, given))
        op.operation.erase()


def emit(name: str, result: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """The operation itself."""
    if name.startswith("llvm."):
        return llvm.call_intrinsic(result, name, operands, [], [])  # type: ignore[arg-type]
    return ir.Operation.create(name, [result], operands).results[0]


def emit_alone(name: str, operands: Sequence[ir.Value]) -> None:
    """An intrinsic that gives nothing."""
    words = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    ir.Operation.create("llvm.call_intrinsic", [], operands, words)


def emit_with(
    named: Instruction, kind: ir.Type, values: Sequence[ir.Value], words: Sequence[int]
) -> ir.Value:
    """The same of values, and of words that are immediate."""
    return emit(named.function, kind, operands_of(named, values, words))


def operands_of(
    named: Instruction, values: Sequence[ir.Value], words: Sequence[int]
) -> list[ir.Value]:
    """Both as the operands of an instruction, in its order."""
    given, immediate = iter(values), iter(words)
    return [
        arith.constant(ir.Type.parse(type_), next(immediate))
        if type_.startswith("i") and "*" not in type_
        else next(given)
        for type_ in named.operands
    ]


# ---- a step of a product, of registers of a known width or of any


def add_products(
    use: DotUse,
    sums: ir.Value,
    left: ir.Value,
    right: ir.Value,
    words: Sequence[int] = (),
    make: Emit | None = None,
) -> ir.Value:
    """A register of sums with the products of two others.

    make: what makes the instruction, in front of buffers `instruction`.
    """
    make = make or emit
    if use.dot.function == DIFFERING:
        one, other = (vector.bitcast(sums.type, x) for x in (left, right))
        return arith.addi(sums, math.ctpop(arith.xori(one, other)))
    pair = [right, left] if use.swapped else [left, right]
    if not use.dot.accumulates:
        return arith.addi(sums, make(use.dot.function, sums.type, pair))
    given = operands_of(use.dot, [sums, *pair], words)
    return make(use.dot.function, sums.type, given)


def word_of(group: ir.Value) -> ir.Value:
    """A short vector as one number of as many bits."""
    kind = ir.VectorType(group.type)
    bits = kind.shape[0] * kind.element_type.width  # type: ignore[attr-defined] - of numbers
    word = ir.IntegerType.get_signless(bits)
    return vector.extract(vector.bitcast(ir.VectorType.get([1], word), group), [], [0])


def in_lanes(word: ir.Value, kind: ir.VectorType, *, flipped: bool = False) -> ir.Value:
    """The bits of a group in every lane of a register; flipped: its sign bits
    inverted."""
    bits = kind.shape[0] * kind.element_type.width  # type: ignore[attr-defined] - of numbers
    lanes = Lanes(bits // word.type.width, scalable=any(kind.scalable_dims))  # type: ignore[attr-defined] - of numbers
    wide = vector.broadcast(vector_type(lanes, word.type), word)
    if flipped:
        signs = arith.constant(word.type, SIGN_BITS)
        wide = arith.xori(wide, vector.broadcast(wide.type, signs))
    return vector.bitcast(kind, wide)


def memory_of(value: ir.Value) -> ir.Value:
    """The elements that a vector was read from, as a part of their buffer."""
    read = made_by(value, READ)
    assert read is not None, value.owner
    buffer = read.operands[0]
    kind = ir.MemRefType(buffer.type)
    count = ir.VectorType(value.type).shape[0]
    at = list(read.operands)[1 : 1 + kind.rank]
    return subview(buffer, at, [1] * (kind.rank - 1) + [count])
