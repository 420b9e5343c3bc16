"""Numbers of a product's first operand that are known while compiling.

    t[a, c] = sum over i of B[a, i] x[i, c]      B = [[4, 0, -5, ...], ...]

They stand at the operation, beside the operand that holds them in memory: what reads
them writes the sum's steps out (vector/factors.py).  A zero says that there is no
such product: what it would multiply is not in the sum, be it infinite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.ir.linalg_query import Op, inputs, is_generic
from nanoloom.ir.mlir import ir
from nanoloom.ir.statement_names import FACTORS


def write_factors(block: ir.Block, factors: Sequence[np.ndarray | None]) -> None:
    """Write the numbers of a kernel's arguments into the generics that they are the
    first operand of; None for those that are not known."""
    known = zip(block.arguments, factors, strict=False)
    found = {argument: numbers for argument, numbers in known if numbers is not None}
    for op in block.operations if found else ():
        first = inputs(op)[:1] if is_generic(op) else []
        if not first or first[0] not in found:
            continue
        numbers = found[first[0]]
        if tuple(ir.RankedTensorType(first[0].type).shape) == numbers.shape:
            op.operation.attributes[FACTORS] = ir.DenseElementsAttr.get(numbers)


def factors_of(op: Op) -> np.ndarray | None:
    """The numbers of an operation's first operand, None if they are not known."""
    attributes = op.operation.attributes
    if FACTORS not in attributes:
        return None
    return np.array(ir.DenseElementsAttr(attributes[FACTORS]))
