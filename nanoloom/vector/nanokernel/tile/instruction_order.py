"""The order of a nanokernel's instructions, which LLVM must leave as it is.

Its schedulers read far ahead of the products, and spill what they have read once
registers run out: a register tile leaves them none.  Behind each row of a tile stands
an operation that takes the row's sums and gives them back, and that is no instruction:
inline assembly without text, which reads memory as far as LLVM knows.
"""

from __future__ import annotations

from nanoloom.ir.mlir import arith, ir, llvm, named, vector
from nanoloom.schedule.language import Nanokernel
from nanoloom.target.facts import Target
from nanoloom.vector.dialect import IN_ORDER, make

APART = "nanoloom.split_symbols"  # of what stands behind products that are added apart


def in_order(plan: Nanokernel, sums: list[ir.Value], *kept: ir.Value) -> list[ir.Value]:
    """The same sums, in front of all that is read later, where the script says so.

    kept: what must not be written over before.
    """
    if not plan.pin_order:
        return sums
    words = {APART: "products"} if plan.unfused_mul_add else {}
    return list(make(IN_ORDER, [s.type for s in sums], [*sums, *kept], **words))


def keep_order(module: ir.Module, target: Target) -> None:
    """Make the assembly that these stand for; behind all work on buffers."""
    add_unfused(module)
    for op in named(module, IN_ORDER):
        given = list(op.operation.operands)
        results = list(op.operation.results)
        with ir.InsertionPoint(op), op.operation.location:
            whole = [register_of(v, target) for v in given]
            made = pass_through(whole, len(results), target.isa.register)
            for old, new in zip(results, made, strict=True):
                old.replace_all_uses_with(vector_in(new, old.type))
        op.operation.erase()


def add_unfused(module: ir.Module) -> None:
    """An order behind each product, where products are added by themselves.

    That is for x86 without multiply-adds.  An instruction writes over one of its
    operands there.  A product that is kept until it is added is none of an addition's
    choice: sums that took the products' registers would go round through all of them
    from step to step, and LLVM spills one to put them back.
    """
    for op in [x for x in named(module, IN_ORDER) if APART in x.operation.attributes]:
        for sum_ in list(op.operation.operands)[: len(op.operation.results)]:
            pin_product(sum_)


def pin_product(sum_: ir.Value) -> None:
    """Make a multiply-add, or the addition of a product, in this order."""
    op = sum_.owner
    assert not isinstance(op, ir.Block), "a row's sums come from instructions"
    with ir.InsertionPoint(op), op.location:
        match op.name:
            case "vector.fma":
                left, right, before = op.operands
                product = arith.mulf(left, right)
                made = arith.addf(before, product)
            case "arith.addi":
                before, product = op.operands
                made = arith.addi(before, product)
            case _:
                return
        (kept,) = make(IN_ORDER, [made.type], [made, product])
    sum_.replace_all_uses_with(kept)
    op.erase()


def register_of(value: ir.Value, target: Target) -> ir.Value:
    """A vector as inline assembly takes it.

    On RISC-V that is a whole register, of unknown length: one of a known length has
    none there, LLVM 22 ends with an assertion.
    """
    if not target.isa.whole_registers:
        return value
    kind = ir.VectorType(value.type)
    whole = ir.VectorType.get(kind.shape, kind.element_type, scalable=[True])
    return vector.scalable_insert(value, llvm.mlir_poison(whole), 0)


def vector_in(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The vector that `register_of` made this of."""
    return value if value.type == kind else vector.scalable_extract(kind, value, 0)


def pass_through(values: list[ir.Value], count: int, register: str) -> list[ir.Value]:
    """The first `count` values, as if something had read all and changed these."""
    kinds = [str(v.type) for v in values[:count]]
    kind = kinds[0] if count == 1 else f"!llvm.struct<({', '.join(kinds)})>"
    outputs = [f"={register}"] * count
    ties = [str(n) for n in range(count)] + [register] * (len(values) - count)
    text = ",".join([*outputs, *ties, "~{memory}"])
    made = llvm.InlineAsmOp(
        ir.Type.parse(kind), values, "", text, has_side_effects=True
    ).res
    if count == 1:
        return [made]
    return [
        llvm.extractvalue(v.type, made, ir.DenseI64ArrayAttr.get([n]))
        for n, v in enumerate(values[:count])
    ]


__all__ = ["in_order", "keep_order"]
