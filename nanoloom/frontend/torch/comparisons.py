"""What is true of elements: comparisons, logic, NaN and infinity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import torch

from nanoloom.frontend.torch.call import Call, fake_of
from nanoloom.frontend.torch.element_types import element_type
from nanoloom.frontend.torch.elementwise import FLOATS, comparable, sides

T = ir.DataType
COMPARISONS = {
    "eq": "Equal", "lt": "Less", "gt": "Greater", "le": "LessOrEqual",
    "ge": "GreaterOrEqual",
}  # fmt: skip
LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


def promoted(call: Call) -> ir.DataType:
    """The type in which torch compares: a number widens no tensor of its kind."""
    a, b = (fake_of(call[name]) for name in ("self", "other"))
    a, b = (float(0) if isinstance(x, torch.SymFloat) else x for x in (a, b))
    a, b = (1 if isinstance(x, torch.SymInt) else x for x in (a, b))
    return element_type(torch.result_type(a, b), call.node.name)


def compare(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        dtype = promoted(call)
        if op != "Equal":
            dtype = comparable(dtype)
        return call.w.typed(T.BOOL, op, *sides(call, dtype))

    return made


def unequal(call: Call) -> ir.Value:
    return call.w("Not", compare("Equal")(call))


def logic(op: str) -> Callable[[Call], ir.Value]:
    return lambda call: call.w(op, truth(call, "self"), truth(call, "other"))


def truth(call: Call, name: str) -> ir.Value:
    value = call.value(name)
    return value if value.dtype == T.BOOL else call.w.cast(value, T.BOOL)


def logical_not(call: Call) -> ir.Value:
    return call.w("Not", truth(call, "self"))


def is_nan(call: Call) -> ir.Value:
    x = call.value("self")
    if x.dtype not in FLOATS:
        return call.w.typed(T.BOOL, "Not", call.w.typed(T.BOOL, "Equal", x, x))
    return call.w.typed(T.BOOL, "IsNaN", x)


def is_inf(call: Call) -> ir.Value:
    x = call.value("self")
    if x.dtype not in FLOATS:
        return is_nan(call)
    return call.w.typed(T.BOOL, "Equal", call.w("Abs", x), call.of(np.inf, x.dtype))


def angle(call: Call) -> ir.Value:
    """Of real numbers: a half turn of negative ones, none of others."""
    w, kind = call.w, comparable(call.type_of("self"))
    x = call.value("self", kind)
    below = w.typed(T.BOOL, "Less", x, w.constant(0, kind))
    turned, plain = (w.constant(number, call.dtype) for number in (np.pi, 0))
    found = w.typed(call.dtype, "Where", below, turned, plain)
    if kind not in FLOATS:
        return found
    return w.typed(call.dtype, "Where", w.typed(T.BOOL, "IsNaN", x), x, found)


OPERATORS = {
    **{name: compare(op) for name, op in COMPARISONS.items()},
    **{name: logic(op) for name, op in LOGIC.items()},
    "ne": unequal, "logical_not": logical_not, "isnan": is_nan, "isinf": is_inf,
    "angle": angle,
}  # fmt: skip
