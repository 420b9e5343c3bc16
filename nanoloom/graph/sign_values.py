"""Values that are known to be a number or its negative, as binary networks have them.

    Sign(x)                            -1, 0 where x is 0, or 1
    Where(x >= 0, s, -s)               conditions, as ONNX compares
    Cast(x > 0) * 2 - 1                arithmetic with constants on either
    Sign(x) - Clip(x) + Clip(x)        what is left of a straight-through gradient

The last is Sign(x) but for the rounding of its two additions, which is left out.  Sign
has three values, of which arithmetic may make two: Sign(Sign(x) + 0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.patterns.pattern import Pattern, before
from nanoloom.graph.quantization import known_array
from nanoloom.graph.types import is_static

COMPARISONS = {
    "Greater": "Less",
    "GreaterOrEqual": "LessOrEqual",
    "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
}  # with what is said of the operands the other way round
MOVES = ("Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
SAME = frozenset({"Identity", "Dropout"})
BOUNDED = ("Sigmoid", "Tanh", "HardSigmoid")  # between -1 and 1
MOST_CLIPPED = 2.0  # of what is added and taken away again
NOTHING = np.float32(0)


@dataclass(frozen=True)
class Bits:
    """A condition: `value` compared with a number, or a bool itself without compare."""

    value: ir.Value
    compare: str = ""
    than: float = 0.0


@dataclass(frozen=True)
class Levels:
    """The values of a tensor: high where a condition holds, low elsewhere.

    middle: where a Greater than 0 does not hold and neither does Less; None if that is
    low.  moves: what has been done to the places of the numbers since, in order.
    """

    bits: Bits
    low: np.float32
    high: np.float32
    middle: np.float32 | None = None
    moves: tuple[ir.Node, ...] = ()

    def through(self, function: Callable[[np.float32], np.float32]) -> Levels:
        """What a function makes of each of the values."""
        with np.errstate(all="ignore"):
            low, high = (np.float32(function(x)) for x in (self.low, self.high))
            middle = None if self.middle is None else np.float32(function(self.middle))
        made = replace(self, low=low, high=high, middle=middle)
        if middle is None or middle not in (low, high):
            return made
        whole = replace(self.bits, compare="GreaterOrEqual")
        return replace(made, middle=None, bits=whole if middle == high else self.bits)


@dataclass(frozen=True)
class Signs:
    """scale or -scale, or 0 where neither of two conditions holds.

    positive, negative: where the sign is so; None: everywhere else.
    """

    scale: float
    positive: Bits
    negative: Bits | None
    moves: tuple[ir.Node, ...]


def signs_of(value: ir.Value | None) -> Signs | None:
    """What a value is the signs of, None if it takes other values."""
    found = levels_of(value)
    if found is None or found.low != -found.high:
        return None
    if not np.isfinite(found.high) or found.high == 0:
        return None
    negative = None
    if found.middle is not None:
        if found.middle != 0:
            return None
        negative = replace(found.bits, compare="Less")
    return Signs(float(found.high), found.bits, negative, found.moves)


def levels_of(value: ir.Value | None) -> Levels | None:
    """The values that a float32 tensor takes, if they are two or three."""
    node = None if value is None else value.producer()
    if value is None or node is None or node.domain not in ("", "ai.onnx"):
        return None
    if value.dtype != ir.DataType.FLOAT or not is_static(value):
        return None
    rule = RULES.get(node.op_type)
    return None if rule is None else rule(node)


def moved(node: ir.Node) -> Levels | None:
    """What only changes the places of the numbers."""
    found = levels_of(node.inputs[0])
    return found and replace(found, moves=(*found.moves, node))


def cast(node: ir.Node) -> Levels | None:
    """0 and 1 of conditions, or a few values as they are."""
    bits = condition(node.inputs[0])
    if bits is None:
        return levels_of(node.inputs[0])
    return Levels(bits, NOTHING, 1 + NOTHING)


def chosen(node: ir.Node) -> Levels | None:
    """Where with two numbers."""
    bits, yes, no = condition(node.inputs[0]), *map(number, node.inputs[1:])
    if bits is None or yes is None or no is None:
        return None
    return Levels(bits, no, yes)


def sign(node: ir.Node) -> Levels | None:
    """Sign of numbers, or of a few values."""
    x = node.inputs[0]
    if x is None or x.const_value is not None or x.dtype != ir.DataType.FLOAT:
        return None
    inner = levels_of(x)
    if inner is not None:
        return inner.through(np.sign)
    one = np.float32(1)
    return Levels(Bits(x, "Greater", 0.0), -one, one, NOTHING)


def condition(value: ir.Value | None) -> Bits | None:
    """A bool tensor as the comparison that it is, if it is one with a number."""
    if (
        value is None
        or value.dtype != ir.DataType.BOOL
        or value.const_value is not None
    ):
        return None
    node = value.producer()
    if not is_static(value):
        return None
    if node is not None and node.op_type in COMPARISONS and node.domain == "":
        x, y = node.inputs
        for one, other, name in (
            (x, y, node.op_type),
            (y, x, COMPARISONS[node.op_type]),
        ):
            than = number(other)
            if one is None or than is None or one.dtype != ir.DataType.FLOAT:
                continue
            if one.shape == value.shape:
                return Bits(one, name, float(than))
    return Bits(value)


def arithmetic(node: ir.Node) -> Levels | None:
    """Addition, subtraction, multiplication and division."""
    return passes_through(node) or with_number(node)


def with_number(node: ir.Node) -> Levels | None:
    """Arithmetic of a few values and a constant of one element."""
    x, y = node.inputs
    compute = getattr(np, WORDS[node.op_type])
    found, constant = levels_of(x), number(y)
    if found is not None and constant is not None and same_shape(x, node):
        return found.through(lambda value: compute(value, constant))
    found, constant = levels_of(y), number(x)
    if found is not None and constant is not None and same_shape(y, node):
        return found.through(lambda value: compute(constant, value))
    return None


WORDS = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide"}


def scaled(node: ir.Node, by: int) -> Levels | None:
    """A few values times a number."""
    found = levels_of(node.inputs[0])
    return found and found.through(lambda value: np.float32(value * by))


def same_shape(value: ir.Value | None, node: ir.Node) -> bool:
    return value is not None and value.shape == node.outputs[0].shape


def clipped(node: ir.Node) -> Levels | None:
    """Clip of a few values."""
    found, bounds = levels_of(node.inputs[0]), bounds_of(node)
    if found is None or bounds is None:
        return None
    low, high = bounds
    return found.through(lambda value: np.float32(min(max(value, low), high)))


def bounds_of(node: ir.Node) -> tuple[np.float32, np.float32] | None:
    """Of a Clip, if they are known."""
    found: list[np.float32] = []
    for place, name, missing in ((1, "min", -np.inf), (2, "max", np.inf)):
        value = node.inputs[place] if place < len(node.inputs) else None
        given = node.attributes.get(name)
        if given is not None:
            missing = given.as_float()
        known = np.float32(missing) if value is None else number(value)
        if known is None:
            return None
        found.append(known)
    return found[0], found[1]


def passes_through(node: ir.Node) -> Levels | None:
    """(s - t) + u, u + (s - t) or (s + t) - u: s, where t and u are alike and small."""
    for pattern in STRAIGHT_THROUGH:
        for found in pattern.match(node):
            if is_small(found["u"]) and is_alike(found["t"], found["u"]):
                return levels_of(found["s"])
    return None


def is_small(value: ir.Value | None) -> bool:
    """Whether numbers are so near to 0 that adding them changes a sign by rounding
    alone."""
    node = None if value is None else value.producer()
    if node is None or node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type in BOUNDED:
        return True
    bounds = bounds_of(node) if node.op_type == "Clip" else None
    return bounds is not None and float(max(map(abs, bounds))) <= MOST_CLIPPED


def is_alike(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether two values are the same, or made alike of the same."""
    if one is other:
        return one is not None
    first, second = (None if x is None else x.producer() for x in (one, other))
    if first is None or second is None or first.op_type != second.op_type:
        return False
    if first.op_type == "Clip":
        same = bounds_of(first) == bounds_of(second) is not None
    else:
        same = first.op_type in BOUNDED[:2]
    sources = {x and before(x, is_same) for x in (first.inputs[0], second.inputs[0])}
    return same and len(sources) == 1


def is_same(node: ir.Node) -> bool:
    return is_tensor_op(node, SAME)


def number(value: ir.Value | None) -> np.float32 | None:
    """A constant of one float32."""
    if value is None or value.dtype != ir.DataType.FLOAT or value.const_value is None:
        return None
    if value.const_value.size != 1:
        return None
    array = known_array(value)
    return None if array is None else np.float32(array.reshape(()))


STRAIGHT_THROUGH = (
    Pattern("Add(Sub(s, t), u)", shared=True, past=is_same),
    Pattern("Sub(Add(s, t), u)", shared=True, past=is_same),
)
RULES: dict[str, Callable[[ir.Node], Levels | None]] = {
    **dict.fromkeys(SAME, lambda node: levels_of(node.inputs[0])),
    **dict.fromkeys(MOVES, moved),
    **dict.fromkeys(WORDS, arithmetic),
    "Cast": cast,
    "Clip": clipped,
    "Neg": lambda node: scaled(node, -1),
    "Sign": sign,
    "Where": chosen,
}
