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

VECTOR, UNROLL, JAM = "nanoloom.vector", "nanoloom.unroll", "nanoloom.jam"
MOST_LANES, MOST_CHAINS, MOST_POINTS = 256, 16, 64


@dataclass(frozen=True)
class VectorPlan:
    """axis: the loop that vectors run along.  chains: of a reduction's sums.

    unrolled: loops of a sum whose steps stand behind each other.  jam: a loop, and how
    many of its points are computed at once; -1 for none.
    """

    axis: int
    lanes: int
    chains: int
    unrolled: tuple[int, ...] = ()
    jam: tuple[int, int] = (-1, 1)


def vectorize_stage(op: Op, axis: int, lanes: int, scalable: int, chains: int) -> None:
    """Note how a stage is vectorized; Error if it cannot be."""
    require_axis(op, axis)
    if not 1 <= lanes <= MOST_LANES or lanes & (lanes - 1):
        raise Error(f"lanes = {lanes}: a power of two up to {MOST_LANES} is wanted")
    if not 1 <= chains <= MOST_CHAINS or chains & (chains - 1):
        raise Error(f"chains = {chains}: a power of two up to {MOST_CHAINS} is wanted")
    if scalable:
        raise Error("no loops on scalable vectors yet", hint="take scalable = 0")
    note(op, VECTOR, axis, lanes, chains)


def unroll_stage(op: Op, axis: int) -> None:
    """Note that the steps of a sum stand behind each other."""
    if require_axis(op, axis) != "reduction":
        raise Error(f"axis {axis} is not summed over: unroll_and_jam is for such")
    note(op, UNROLL, *noted(op, UNROLL), axis)


def jam_stage(op: Op, axis: int, count: int) -> None:
    """Note that some points of an axis are computed at once."""
    if require_axis(op, axis) != "parallel":
        raise Error(f"axis {axis} is summed over: its points wait for each other")
    if not 1 <= count <= MOST_POINTS:
        raise Error(f"count = {count}: a number from 1 to {MOST_POINTS} is wanted")
    note(op, JAM, axis, count)


def require_axis(op: Op, axis: int) -> str:
    """The kind of a stage's loop; Error if there is no such loop."""
    if not is_generic(op):
        raise Error(f"only a stage has axes, not this {op.operation.name}")
    kinds = iterators(op)
    if not 0 <= axis < len(kinds):
        raise Error(f"the stage has axes 0 to {len(kinds) - 1}, not {axis}")
    return kinds[axis]


def note(op: Op, name: str, *words: int) -> None:
    op.operation.attributes[name] = ir.DenseI64ArrayAttr.get(list(words))


def noted(op: Op, name: str) -> tuple[int, ...]:
    attributes = op.operation.attributes
    return tuple(attributes[name]) if name in attributes else ()  # type: ignore[call-overload]


def plan_of(op: Op) -> VectorPlan | None:
    """The plan of a stage, None for plain loops."""
    words = noted(op, VECTOR)
    if not words:
        return None
    axis, lanes, chains = words
    jam = noted(op, JAM)
    unrolled = noted(op, UNROLL)
    if not jam or jam[0] == axis:
        return VectorPlan(axis, lanes, chains, unrolled)
    return VectorPlan(axis, lanes, chains, unrolled, (jam[0], jam[1]))


def is_stage(op: Op) -> bool:
    """Whether an operation is of the kernel's, not made by a step of the way."""
    return STAGE in op.operation.attributes
