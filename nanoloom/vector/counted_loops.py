"""Loops on buffers whose rounds have a limit: bounds, and the number of a round."""

from __future__ import annotations

from nanoloom.ir.access import add, constant_of, divide, index, multiply
from nanoloom.ir.mlir import ir, scf
from nanoloom.vector.nanokernel.tile.extents import most_number


def round_of(loops: tuple[scf.ForOp, ...]) -> ir.Value:
    """The number of this round, through all loops."""
    number: ir.Value = index(0)
    for loop in loops:
        lower, _, step = bounds(loop)
        assert lower == 0 and step is not None, "a tiled loop begins at 0"
        done = divide(loop.induction_variable, index(step))
        number = add(multiply(number, index(trip_count(loop))), done)
    return number


OPEN = 1 << 20  # rounds of a loop up to a size that is known at run time


def counted_loops(block: ir.Block, *, open_ends: bool = False) -> tuple[scf.ForOp, ...]:
    """The loops around a block with a limit to their rounds, outermost first.

    A branch in between is no loop.  open_ends: those up to a size among them.
    """
    loops: list[scf.ForOp] = []
    owner = block.owner
    while owner.operation.name in ("scf.for", "scf.if"):
        if owner.operation.name == "scf.if":
            owner = owner.operation.block.owner
            continue
        loop = owner.opview if isinstance(owner, ir.Operation) else owner
        assert isinstance(loop, scf.ForOp)
        lower, upper, step = bounds(loop)
        if lower is None or step is None or (upper is None and not open_ends):
            break
        loops.insert(0, loop)
        owner = loop.operation.block.owner
    return tuple(loops)


def bounds(loop: scf.ForOp) -> tuple[int | None, int | None, int | None]:
    """Lower bound, upper bound or what it is at most, and step, None if not known.

    A block of rows at the edge is smaller than the others: its last rounds are missing.
    """
    lower, upper, step = list(loop.operation.operands)[:3]
    most = constant_of(upper)
    return (
        constant_of(lower),
        most_number(upper) if most is None else most,
        constant_of(step),
    )


def trip_count(loop: scf.ForOp) -> int:
    """Rounds of a loop, at most; OPEN where nobody knows."""
    lower, upper, step = bounds(loop)
    assert lower is not None and step is not None
    if upper is None:
        return OPEN
    return -(-(upper - lower) // step)
