"""Reshapes of tensors without elements, as a batch of 0 makes them.

ONNX's inference refuses -1 beside a 0, since any number would do.  What is meant is
what the same model gives a larger batch: the dimensions of 0 stand for each other, and
-1 takes what is left of the others.

    [0, 8, 768] to [0, -1, 12, 64]   ->   [0, 8, 12, 64]

A 0 in the target is the dimension of x in its place; or itself, where only that leaves
no elements (a sequence of 0 behind a batch of 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import onnx_ir as ir

from nanoloom.errors import ModelError
from nanoloom.graph.types import is_static, shape_of

Shape = tuple[int, ...]


def reshaped(node: ir.Node) -> Shape | None:
    """The result's shape, if the node is a Reshape of no elements to a known shape."""
    if node.op_type != "Reshape" or node.domain not in ("", "ai.onnx"):
        return None
    x, target = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
    if x is None or not is_static(x) or prod(shape_of(x)) != 0:
        return None
    if target is None or target.const_value is None:
        return None
    given, wanted = shape_of(x), target.const_value.numpy().reshape(-1).tolist()
    literal = node.attributes.get("allowzero")
    found = shape_without_elements(given, wanted)
    if literal is None or literal.as_int() == 0:
        copied = [given[i] if d == 0 else d for i, d in enumerate(wanted[: len(given)])]
        copied += wanted[len(given) :]
        found = shape_without_elements(given, copied) or found
    if found is None:
        raise ModelError(
            f"a tensor {list(shape_of(x))} without elements cannot take the shape "
            f"{wanted}",
            where=f"node {node.name} ({node.op_type})",
            hint="give its dimensions sizes above 0",
        )
    return found


def shape_without_elements(given: Shape, target: Sequence[int]) -> Shape | None:
    """The target with a number for -1; None if that has elements."""
    made = list(target)
    if min(made, default=0) < -1 or made.count(-1) > 1:
        return None
    if -1 in made:
        others = [d for d in made if d != -1]
        left, rest = prod(filter(None, given)), prod(filter(None, others))
        if 0 in others and left % rest:
            return None
        made[made.index(-1)] = left // rest if 0 in others else 0
    return tuple(made) if 0 in made else None
