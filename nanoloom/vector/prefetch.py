"""Software prefetch of what a nanokernel streams: packed panels of weights.

While the register tiles of one panel are computed, the next panel comes into the
second-level cache, a few lines each round of the reduction loop: a panel is read by
every tile of a task, but only the first of them would wait for memory.  A panel with a
single reader comes into the first level, a little ahead of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.mlir import arith, ir, memref, named, scf
from nanoloom.vector.access import add, constant_of, divide, index, multiply
from nanoloom.vector.nanokernel.extents import most_number

LINE = 64  # bytes
DISTANCE = 16  # lines: further ahead of one reader they only push out others
MOST_LINES = 8  # of a round: more of them keep its own loads waiting
SECOND_LEVEL, FIRST_LEVEL = 2, 3  # memref.prefetch's locality


@dataclass(frozen=True)
class Stream:
    """A loop that reads panels.

    lead: indices of the panel (shared dimensions, panel).  number: of this round among
    `rounds` that read the panel.  once: no tile reads it again.
    """

    buffer: ir.Value
    lead: tuple[ir.Value, ...]
    number: ir.Value
    rounds: int
    once: bool

    @property
    def width(self) -> int:
        """Elements in a line."""
        kind = ir.MemRefType(self.buffer.type).element_type
        return LINE * 8 // kind.width  # type: ignore[attr-defined]

    @property
    def lines(self) -> int:
        """Of a panel."""
        shape = ir.MemRefType(self.buffer.type).shape
        return -(-prod(list(shape)[len(self.lead) :]) // self.width)


def insert_prefetches(module: ir.Module) -> None:
    """In every loop that reads a panel (on buffers): some lines of the next panel."""
    kernel = module.body.operations[0]
    arguments = list(kernel.operation.regions[0].blocks[0].arguments)
    seen: set[ir.Block] = set()
    for op in named(module, "vector.transfer_read"):
        block = op.operation.block
        if op.operation.operands[0] not in arguments or block in seen:
            continue
        with ir.InsertionPoint.at_block_begin(block), op.operation.location:
            found = stream_of(op)
            if found is not None:
                seen.add(block)
                prefetch(found)


def stream_of(op: ir.OpView) -> Stream | None:
    """The stream that a read belongs to, None if it reads no panel in a loop."""
    buffer = op.operation.operands[0]
    kind = ir.MemRefType(buffer.type)
    loops = counted_loops(op.operation.block)
    if kind.rank < 3 or not loops:
        return None
    at = list(op.operation.operands)[1 : 1 + kind.rank]
    variables = [loop.induction_variable for loop in loops]
    inner = [place for place, value in enumerate(at) if follows(value, variables)]
    if not inner or inner[-1] != kind.rank - 2:
        return None
    first = inner[0]
    once = len(loops) == kind.rank - 1 - first
    if not once and kind.shape[first - 1] == 1:
        return None  # there is no next panel
    rounds = prod(trip_count(loop) for loop in loops)
    return Stream(buffer, tuple(at[:first]), round_of(loops), rounds, once)


def prefetch_panel(
    panel: ir.Value, reduced: int, number: ir.Value, rounds: int, once: bool
) -> None:
    """The same for tile registers, in a round of their loop over a panel's buffer.

    panel: [1..., reduced..., columns], one panel of an argument.  reduced: how many
    loops the sum has.
    """
    lead = (index(0),) * (ir.MemRefType(panel.type).rank - reduced - 1)
    prefetch(Stream(panel, lead, number, rounds, once))


def round_of(loops: tuple[scf.ForOp, ...]) -> ir.Value:
    """The number of this round, through all loops."""
    number: ir.Value = index(0)
    for loop in loops:
        lower, _, step = bounds(loop)
        assert lower == 0 and step is not None, "a tiled loop begins at 0"
        done = divide(loop.induction_variable, index(step))
        number = add(multiply(number, index(trip_count(loop))), done)
    return number


def counted_loops(block: ir.Block) -> tuple[scf.ForOp, ...]:
    """The loops around a block with a limit to their rounds, outermost first."""
    loops: list[scf.ForOp] = []
    owner = block.owner
    while owner.operation.name == "scf.for":
        loop = owner.opview if isinstance(owner, ir.Operation) else owner
        assert isinstance(loop, scf.ForOp)
        if None in bounds(loop):
            break
        loops.insert(0, loop)
        owner = loop.operation.block.owner
    return tuple(loops)


def follows(value: ir.Value, variables: list[ir.Value]) -> bool:
    """Whether an index is a loop's variable, or that plus a number."""
    if value in variables:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.addi":
        return False
    return any(operand in variables for operand in owner.operands)


def prefetch(stream: Stream) -> None:
    """Ask for this round's share of the next panel.

    Behind the last line it is asked for again.
    A panel that is read once is not kept: the lines a little further on are enough.
    """
    share = -(-stream.lines // stream.rounds)
    if not stream.once:
        share = min(share, MOST_LINES)
    *shared, panel = stream.lead
    kind = ir.MemRefType(stream.buffer.type)
    zeros = [index(0)] * (kind.rank - 1 - len(stream.lead))
    for ahead in range(share):
        line = add(multiply(stream.number, index(share)), index(ahead))
        if stream.once:
            line = add(line, index(DISTANCE))
        elif stream.rounds * share > stream.lines:
            line = arith.minui(line, index(stream.lines - 1))
        # Past the end of its row on purpose: a panel is contiguous.
        place = [*zeros, multiply(line, index(stream.width))]
        following = panel if stream.once else add(panel, index(1))
        at = [*shared, following, *place]
        level = FIRST_LEVEL if stream.once else SECOND_LEVEL
        memref.PrefetchOp(stream.buffer, at, False, level, True)


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
    """Rounds of a loop, at most."""
    lower, upper, step = bounds(loop)
    assert lower is not None and upper is not None and step is not None
    return -(-(upper - lower) // step)
