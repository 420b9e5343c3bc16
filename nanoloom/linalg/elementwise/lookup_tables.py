"""nanoloom.integer.Table: a function of one 8-bit number, looked up.

Attribute table: its results for the bits 0 to 255 of the number.  The table is an
argument of the kernel, so that layers which differ in their functions share one.
"""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder, Map
from nanoloom.linalg.builder.indexing import map_generic
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor

UINT8 = np.dtype(np.uint8)


def table(b: Builder, node: Node) -> Tensor:
    """table[x] for every element."""
    x, dtype = node.input(0), node.output_dtypes[0]
    results = b.value(b.constant(np.array(node.ints("table"), dtype)))

    def body(s: Scalar) -> Scalar:
        return b.load(results, dtype, [Scalar(s.value, UINT8)])

    return map_generic(b, x.shape, dtype, [(x, Map.get_identity(x.rank))], body)


OPERATORS = {"nanoloom.integer.Table": table}
