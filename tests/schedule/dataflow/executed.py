"""How often vector code reads and writes memory: it is walked, loops and branches."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir

READS = ("vector.load", "vector.maskedload", "memref.load")
WRITES = ("vector.store", "vector.maskedstore", "memref.store")
COMPARED = {0: "eq", 2: "lt", 5: "ge"}  # arith's numbers


def executed(text: str) -> Counter[tuple[str, int]]:
    """(read or write, the kernel's argument) -> how often, in all tasks of a kernel."""
    found: Counter[tuple[str, int]] = Counter()
    with mlir.context():
        module = ir.Module.parse(text)
        for function in module.body.operations:
            block = function.operation.regions[0].blocks[0]
            values: dict[Any, int] = {}
            *_, begin, end = block.arguments
            values[begin], values[end] = 0, 1
            walk(block, values, found, roots_of(block))
    return found


def roots_of(block: ir.Block) -> dict[Any, int]:
    return {argument: number for number, argument in enumerate(block.arguments)}


def walk(block: Any, values: dict[Any, int], found: Any, roots: dict[Any, int]) -> None:
    for each in block.operations:
        op = each.operation
        given = list(op.operands)
        if op.name == "scf.for":
            inner = op.regions[0].blocks[0]
            for at in range(*(values[x] for x in given[:3])):
                values[inner.arguments[0]] = at
                walk(inner, values, found, roots)
        elif op.name == "scf.if":
            branches = list(op.regions)
            taken = branches[0 if values[given[0]] else 1]
            for inner in taken.blocks:
                walk(inner, values, found, roots)
        elif op.name in READS:
            found["read", roots[given[0]]] += 1
        elif op.name in WRITES:
            place = 0 if op.name == "vector.maskedstore" else 1
            found["write", roots[given[place]]] += 1
        elif op.name in ("memref.subview", "memref.cast"):
            roots[op.results[0]] = roots[given[0]]
        else:
            compute(op, values)


def compute(op: Any, values: dict[Any, int]) -> None:
    """Numbers of indices and of choices."""
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr)):
            values[op.results[0]] = int(attribute.value)
        return
    given = [values[x] for x in op.operands if x in values]
    if len(given) < len(op.operands):
        return
    one, other = (*given, 0, 0)[:2]
    made = {
        "arith.addi": lambda: one + other,
        "arith.subi": lambda: one - other,
        "arith.muli": lambda: one * other,
        "arith.andi": lambda: one & other,
        "arith.minsi": lambda: min(one, other),
        "arith.cmpi": lambda: compared(op, one, other),
    }
    if op.name in made:
        values[op.results[0]] = int(made[op.name]())


def compared(op: Any, one: Any, other: Any) -> bool:
    match COMPARED[int(op.attributes["predicate"].value)]:
        case "eq":
            return one == other
        case "lt":
            return one < other
        case _:
            return one >= other
