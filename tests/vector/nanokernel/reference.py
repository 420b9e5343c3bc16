"""What instructions do, as loops over lanes: for those that this machine lacks.

    target = machine("sierraforest", monkeypatch)

compiles for the registers and the nanokernels of a target, but for this machine's code
generator; an instruction that is not here is replaced by its definition.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.mlir import arith, ir, llvm, named, vector
from nanoloom.target import Target, by_name
from nanoloom.target.dot_instructions import DOTS, GROUP, PAIR_PRODUCTS
from nanoloom.target.host import host
from nanoloom.vector import stage
from nanoloom.vector.dialect import IN_ORDER
from nanoloom.vector.nanokernel import instructions
from nanoloom.vector.nanokernel.instructions import EVEN, LOADS, ODD
from nanoloom.vector.table_lookups import PIECE, SHUFFLES

RELEVANT = {dot.needs for dot in DOTS} | {"avxneconvert"}


def machine(name: str, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A known target whose code runs here, by definitions where it would not."""
    target, here = by_name(name), host()
    wider = target.vector.bits > here.vector.bits
    parts = wider or not (target.extensions & RELEVANT) <= here.extensions
    if parts:
        monkeypatch.setattr(instructions, "emit", in_parts)
        target = replace(target, isa=replace(target.isa, rounds_bf16=frozenset()))
    if wider:  # no register here has a name for it
        monkeypatch.setattr(stage, "keep_order", in_any_order)
    return replace(
        target,
        name=f"{name}-{'in-parts' if parts else 'here'}",
        isa=replace(target.isa, register=here.isa.register),
        triple=here.triple,
        cpu=here.cpu,
        features=here.features,
        abi=here.abi,
        code_model=here.code_model,
        matrix=None,
    )


def in_any_order(module: ir.Module, _: Target) -> None:
    """In place of keep_order: what is to keep an order gives back what it takes."""
    for op in named(module, IN_ORDER):
        given = list(op.operation.operands)
        for result, value in zip(op.operation.results, given, strict=False):
            result.replace_all_uses_with(value)
        op.operation.erase()


def in_parts(name: str, result: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """In place of instructions.emit: the definition of an instruction."""
    kind = ir.VectorType(result)
    if name in LOADS:
        return converted(name, kind, operands[0])
    for dot in DOTS:
        if dot.function == name:
            return products(operands[0], operands[1:], (dot.left, dot.right))
    if name in [function for _, function in SHUFFLES.values()]:
        return shuffled(kind, *operands)
    assert name in [function for _, function in PAIR_PRODUCTS.values()], name
    zero = vector.broadcast(kind, arith.constant(kind.element_type, 0))
    return products(zero, operands, ("s16", "s16"))


def shuffled(kind: ir.VectorType, pieces: ir.Value, places: ir.Value) -> ir.Value:
    """Of each 16 bytes those at the places, by the shuffle of 16."""
    part = ir.VectorType.get([PIECE], kind.element_type)
    name = SHUFFLES[PIECE][1]
    made = vector.broadcast(kind, arith.constant(kind.element_type, 0))
    for first in range(0, kind.shape[0], PIECE):
        lanes = list(range(first, first + PIECE))
        given = [vector.shuffle(x, x, lanes) for x in (pieces, places)]
        found = llvm.call_intrinsic(part, name, given, [], [])  # type: ignore[arg-type] - MLIR's stubs want results
        made = vector.insert_strided_slice(found, made, [first], [1])
    return made


def products(
    sums: ir.Value, operands: list[ir.Value], types: tuple[str, str]
) -> ir.Value:
    """sums + the products of all numbers of a lane."""
    kind = ir.VectorType(sums.type)
    group = GROUP.get(types[0], 2)
    for g in range(group):
        one, other = (
            extended(kind, every(x, g, group), name)
            for x, name in zip(operands, types, strict=True)
        )
        if types[0] == "bf16":
            sums = arith.addf(sums, arith.mulf(one, other))
        else:
            sums = arith.addi(sums, arith.muli(one, other))
    return sums


def converted(name: str, kind: ir.VectorType, memory: ir.Value) -> ir.Value:
    """bf16 numbers from memory as f32: those with an even place, odd, or one of all."""
    buffer = ir.MemRefType(memory.type)
    zeros = [arith.constant(ir.IndexType.get(), 0)] * buffer.rank
    count = buffer.shape[-1]
    whole = ir.VectorType.get([count], buffer.element_type)
    numbers = vector.load(whole, memory, zeros)
    if name in (EVEN, ODD):
        assert count == 2 * kind.shape[0]
        return arith.extf(kind, every(numbers, int(name == ODD), 2))
    assert count == 1
    wide = ir.VectorType.get(kind.shape, buffer.element_type)
    return arith.extf(kind, vector.broadcast(wide, vector.extract(numbers, [], [0])))


def every(value: ir.Value, first: int, step: int) -> ir.Value:
    """Numbers first, first + step, first + 2 * step ... of a vector."""
    kind = ir.VectorType(value.type)
    places = list(range(first, kind.shape[0], step))
    made = ir.VectorType.get([len(places)], kind.element_type)
    return vector.ShuffleOp(value, value, places, results=[made]).result


def extended(kind: ir.VectorType, value: ir.Value, name: str) -> ir.Value:
    if name == "bf16":
        return arith.extf(kind, value)
    return (arith.extsi if name[0] == "s" else arith.extui)(kind, value)
