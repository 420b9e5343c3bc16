"""The vector axis and width of a stage: what "nanoloom.vectorize" does.

They stand in an attribute of the operation, which keeps it through tiling, fusion and
bufferization, until it becomes loops (loops.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.kernels.nest import STAGE
from nanoloom.kernels.structure import Op, is_generic, iterators
from nanoloom.mlir import ir

VECTOR = "nanoloom.vector"
MOST_LANES, MOST_CHAINS = 256, 16


@dataclass(frozen=True)
class VectorPlan:
    """axis: the loop that vectors run along.  chains: of a reduction's sums."""

    axis: int
    lanes: int
    chains: int


def vectorize_stage(op: Op, axis: int, lanes: int, scalable: int, chains: int) -> None:
    """Note how a stage is vectorized; Error if it cannot be."""
    if not is_generic(op):
        raise Error(f"only a stage can be vectorized, not this {op.operation.name}")
    count = len(iterators(op))
    if not 0 <= axis < count:
        raise Error(f"the stage has axes 0 to {count - 1}, not {axis}")
    if not 1 <= lanes <= MOST_LANES or lanes & (lanes - 1):
        raise Error(f"lanes = {lanes}: a power of two up to {MOST_LANES} is wanted")
    if not 1 <= chains <= MOST_CHAINS or chains & (chains - 1):
        raise Error(f"chains = {chains}: a power of two up to {MOST_CHAINS} is wanted")
    if scalable:
        raise Error("no loops on scalable vectors yet", hint="take scalable = 0")
    words = (axis, lanes, chains)
    op.operation.attributes[VECTOR] = ir.DenseI64ArrayAttr.get(list(words))


def plan_of(op: Op) -> VectorPlan | None:
    """The plan of a stage, None for plain loops."""
    attributes = op.operation.attributes
    if VECTOR not in attributes:
        return None
    return VectorPlan(*list(attributes[VECTOR]))  # type: ignore[call-overload]


def is_stage(op: Op) -> bool:
    """Whether an operation is of the kernel's, not made by a step of the way."""
    return STAGE in op.operation.attributes
