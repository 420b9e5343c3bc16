"""Whether a float is never NaN, as far as what makes it shows."""

from __future__ import annotations

import math

from nanoloom.ir.mlir import arith, ir, made_by

WORDS = {
    int(arith.CmpFPredicate.OGT): "max",
    int(arith.CmpFPredicate.OLT): "min",
}


def is_number(value: ir.Value, assumed: frozenset[ir.Value] = frozenset()) -> bool:
    """Whether a value is never NaN, as none of these is."""
    if value in assumed:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block):
        loop = owner.owner
        if loop.operation.name != "scf.for" or owner.arguments[0] == value:
            return False
        place = list(owner.arguments).index(value) - 1
        return carries_numbers(loop.operation, place, assumed | {value})
    match owner.name:
        case "arith.constant":
            return not is_nan(owner.attributes["value"])
        case "vector.broadcast":
            return is_number(owner.operands[0], assumed)
        case "arith.maxnumf" | "arith.minnumf":
            return any(is_number(x, assumed) for x in owner.operands)
        case "arith.select":  # what is above or below another number is none
            others = list(owner.operands)[2 if chosen_by(owner) else 1 :]
            return all(is_number(x, assumed) for x in others)
        case "scf.for":
            place = list(owner.results).index(value)
            inside = owner.regions[0].blocks[0].arguments[place + 1]
            return carries_numbers(owner, place, assumed | {inside})
        case _:
            return False


def carries_numbers(
    loop: ir.Operation, place: int, assumed: frozenset[ir.Value]
) -> bool:
    """Whether what a loop carries begins as a number and stays one."""
    bounds = 3
    last = list(loop.regions[0].blocks[0].operations)[-1].operation
    carried = loop.operands[bounds + place], last.operands[place]
    return all(is_number(x, assumed) for x in carried)


def is_nan(number: ir.Attribute) -> bool:
    """Whether a constant is NaN in all its lanes, or not known to be none."""
    one = number_in(number)
    return one is None or math.isnan(one)


def number_in(constant: ir.Attribute) -> float | None:
    """The float of a constant, in all its lanes; None if there are several."""
    if isinstance(constant, ir.DenseElementsAttr) and constant.is_splat:
        constant = constant.get_splat_value()
    return constant.value if isinstance(constant, ir.FloatAttr) else None


def chosen_by(choice: ir.Operation) -> str:
    """What a choice is of what it compares: "max", "min", or "" for neither."""
    compared = made_by(choice.operands[0], "arith.cmpf")
    if compared is None:
        return ""
    pairs = zip(list(compared.operands), list(choice.operands)[1:], strict=True)
    if not all(is_same(one, other) for one, other in pairs):
        return ""
    predicate = compared.attributes["predicate"].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    return WORDS.get(predicate, "")


def is_same(one: ir.Value, other: ir.Value) -> bool:
    """Whether two values are one, or equal constants."""
    if one == other:
        return True
    if not is_constant(one) or not is_constant(other):
        return False
    return one.owner.attributes["value"] == other.owner.attributes["value"]  # type: ignore[union-attr] - constants have owners


def is_constant(value: ir.Value) -> bool:
    return made_by(value, "arith.constant") is not None
