"""The shape that a Reshape gives, where its target is known.

A 0 in the target is the dimension of x in its place, and -1 what is left of the others.
ONNX's inference refuses -1 beside a 0, since any number would do.  What is meant is
what the same model gives a larger batch: the dimensions of 0 stand for each other.

    [0, 8, 768] to [0, -1, 12, 64]   ->   [0, 8, 12, 64]

A 0 is itself where only that leaves no elements (a sequence of 0 behind a batch of 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import onnx_ir as ir

from nanoloom.errors import ModelError
from nanoloom.graph.types import is_static, shape_of

Shape = tuple[int, ...]


def reshaped(node: ir.Node) -> Shape | None:
    """The result's shape; None where ONNX has the word: it is open, or does not fit."""
    if node.op_type != "Reshape" or node.domain not in ("", "ai.onnx"):
        return None
    if len(node.inputs) < 2:
        return None
    x, target = node.inputs[:2]
    if x is None or not is_static(x) or target is None or target.const_value is None:
        return None
    if target.dtype != ir.DataType.INT64 or len(shape_of(target)) != 1:
        return None
    given, wanted = shape_of(x), target.const_value.numpy().tolist()
    literal = node.attributes.get("allowzero")
    found: Shape | None = None
    if literal is None or literal.as_int() == 0:
        copied = [given[i] if d == 0 else d for i, d in enumerate(wanted[: len(given)])]
        found = shape_of_as_many(given, [*copied, *wanted[len(given) :]])
    found = found or shape_of_as_many(given, wanted)
    if found is None and prod(given) == 0:
        raise ModelError(
            f"a tensor {list(given)} without elements cannot take the shape {wanted}",
            where=f"node {node.name} ({node.op_type})",
            hint="give its dimensions sizes above 0",
        )
    return found


def shape_of_as_many(given: Shape, target: Sequence[int]) -> Shape | None:
    """The target with a number for -1; None if that has more elements, or fewer."""
    made = list(target)
    if min(made, default=0) < -1 or made.count(-1) > 1:
        return None
    if -1 in made:
        others = [d for d in made if d != -1]
        left, rest = prod(filter(None, given)), prod(filter(None, others))
        alike = (0 in given) == (0 in others)
        if alike and left % rest:
            return None
        made[made.index(-1)] = left // rest if alike else 0
    return tuple(made) if prod(made) == prod(given) else None
