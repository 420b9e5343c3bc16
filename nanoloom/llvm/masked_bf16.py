"""Masked loads and stores of bf16 as ones of 16-bit integers.

    masked.load <8 x bfloat>  ->  bitcast (masked.load <8 x i16>)

Where a CPU has none of either, LLVM makes branches of them, and carries bf16 numbers
through those as f32: calls of a function of the compiler's library.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir, llvm, named

LOAD, STORE = "llvm.intr.masked.load", "llvm.intr.masked.store"


def mask_integers(module: ir.Module) -> None:
    """In LLVM's dialect: rewrite every masked load and store of bf16."""
    for op in named(module, LOAD, STORE):
        operation = op.operation
        data = operation.results[0] if operation.name == LOAD else operation.operands[0]
        kind = ir.VectorType(data.type)
        if not isinstance(kind.element_type, ir.BF16Type):
            continue
        i16 = ir.IntegerType.get_signless(16)
        whole = ir.VectorType.get(kind.shape, i16, scalable=kind.scalable_dims)
        with ir.InsertionPoint(op), operation.location:
            (load if operation.name == LOAD else store)(operation, whole)
        operation.erase()


def load(operation: ir.Operation, whole: ir.Type) -> None:
    pointer, mask, *rest = operation.operands
    operands = [pointer, mask, *(llvm.bitcast(whole, value) for value in rest)]
    made = ir.Operation.create(LOAD, [whole], operands, attributes_of(operation))
    result = operation.results[0]
    result.replace_all_uses_with(llvm.bitcast(result.type, made.results[0]))


def store(operation: ir.Operation, whole: ir.Type) -> None:
    value, *rest = operation.operands
    operands = [llvm.bitcast(whole, value), *rest]
    ir.Operation.create(STORE, [], operands, attributes_of(operation))


def attributes_of(operation: ir.Operation) -> dict[str, ir.Attribute]:
    return {str(key): operation.attributes[str(key)] for key in operation.attributes}
