"""nanoloom::Fails: a branch that cannot run (graph/unfit_branch.py), an error when it
is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.checks import UINT64, Check, Limits
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor

Kind = tuple[tuple[int, ...], np.dtype]


def fails(b: Builder, node: Node) -> list[Tensor]:
    """Zeros; the word of a check, which is out of range, says why, checked or not."""
    kinds = zip(node.output_shapes, node.output_dtypes, strict=True)
    return failed(b, node.string("reason"), [*kinds])


def failed(b: Builder, reason: str, kinds: Sequence[Kind]) -> list[Tensor]:
    """The same for outputs of these shapes and element types."""
    limits = Limits(0, 0, reason, "")
    b.checks.made.append(Check(b.full((1,), 1, UINT64), (limits,)))
    return [b.full(shape, 0, dtype) for shape, dtype in kinds]


OPERATORS = {"Fails": fails}
