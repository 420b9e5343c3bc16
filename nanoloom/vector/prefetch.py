"""Software prefetch of what a nanokernel streams: packed panels of weights.

While the register tiles of one panel are computed, the next panel comes into the
second-level cache, a few lines each round of the reduction loop: a panel is read by
every tile of a task, but only the first of them would wait for memory.  A panel with a
single reader of several rows comes into the first level, a little ahead of it (as
measured; for one row it is faster without).  Of sums in chunks it is the chunk's part
of a panel; behind a task's last panel the next part of its first, or, where the sums
end, the next task's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from nanoloom.mlir import arith, ir, memref, named, scf
from nanoloom.schedule.words.memory import AHEAD, LINES, Prefetch
from nanoloom.vector.access import add, constant_of, divide, index, multiply
from nanoloom.vector.counted_loops import (
    bounds,
    counted_loops,
    round_of,
    trip_count,
    whole,
)
from nanoloom.vector.dialect import IN_ORDER

LINE = 64  # bytes
SECOND_LEVEL, FIRST_LEVEL = 2, 3  # memref.prefetch's locality


@dataclass(frozen=True)
class Stream:
    """A loop that reads panels.

    following: where the next part begins, indices of the shared dimensions, the panel
    and its outermost reduced dimension; extent: of a part in that one.  number: of this
    round among `rounds` that read a part.  once: no tile reads it again.
    most, ahead: as a schedule says (schedule/words/memory.py).
    """

    buffer: ir.Value
    following: tuple[ir.Value, ...]
    extent: int
    number: ir.Value
    rounds: int
    once: bool
    most: int = LINES
    ahead: int = AHEAD

    @property
    def width(self) -> int:
        """Elements in a line."""
        kind = ir.MemRefType(self.buffer.type).element_type
        return LINE * 8 // kind.width  # type: ignore[attr-defined]

    @property
    def lines(self) -> int:
        """Of the part of a panel that is read."""
        shape = ir.MemRefType(self.buffer.type).shape
        row = prod(list(shape)[len(self.following) :])
        return -(-self.extent * row // self.width)


def insert_prefetches(module: ir.Module, wanted: Sequence[Prefetch]) -> None:
    """In every loop that reads a panel (on buffers): some lines of the next panel.

    wanted: of which arguments.
    """
    if not wanted:
        return
    kernel = module.body.operations[0]
    arguments = list(kernel.operation.regions[0].blocks[0].arguments)
    words = {arguments[w.argument]: w for w in wanted if w.argument < len(arguments)}
    seen: set[ir.Block] = set()
    for op in named(module, "vector.transfer_read"):
        block = op.operation.block
        word = words.get(op.operation.operands[0])
        if word is None or block in seen:
            continue
        with ir.InsertionPoint.at_block_begin(block), op.operation.location:
            found = stream_of(op)
            if found is not None:
                seen.add(block)
                stream = replace(found, most=word.lines, ahead=word.ahead)
                prefetch(stream, row_ends(block))


def row_ends(block: ir.Block) -> list[ir.Operation]:
    """Behind which a nanokernel reads for its next row, in order."""
    return [op.operation for op in block.operations if op.operation.name == IN_ORDER]


def stream_of(op: ir.OpView) -> Stream | None:
    """The stream that a read belongs to, None if it reads no panel in a loop."""
    buffer = op.operation.operands[0]
    kind = ir.MemRefType(buffer.type)
    loops = counted_loops(op.operation.block)
    if kind.rank < 3 or not loops:
        return None
    at = list(op.operation.operands)[1 : 1 + kind.rank]
    variables = [loop.induction_variable for loop in loops]
    inner = [place for place, value in enumerate(at) if terms(value, variables)]
    if not inner or inner[-1] != kind.rank - 2:
        return None
    if inner[0] == 0:
        return None  # the whole argument is one sum: there are no panels
    first, steps = inner[0], [terms(at[place], variables)[-1] for place in inner]
    outside = [
        n for n in range(len(loops)) if n not in steps and depend(at, variables[n])
    ]
    own = loops[max(outside, default=-1) + 1 :]
    once = len(own) == kind.rank - 1 - first
    if once and single_row(own[-1], buffer):
        return None  # nothing but loads: the processor keeps enough of them under way
    if not once and kind.shape[first - 1] == 1:
        return None  # there is no next panel
    *shared, panel = at[:first]
    start = start_of(at[first], variables[steps[0]])
    following, part = (add(panel, index(0 if once else 1)), index(0)), kind.shape[first]
    chunks = terms(at[first], variables)
    panels = [loops[n] for n in outside if n not in chunks]
    if constant_of(start) != 0 and panels and not once:
        part = whole(loops[steps[0]])
        following = after_part(panel, panels[-1], start, part, kind.shape[first])
    return Stream(
        buffer,
        (*shared, *following),
        part,
        round_of(own),
        prod(trip_count(loop) for loop in own),
        once,
    )


def single_row(loop: scf.ForOp, buffer: ir.Value) -> bool:
    """Whether a vector of a panel is used once, for one row of results."""
    _, _, steps = bounds(loop)
    read = [
        op
        for op in named(loop, "vector.transfer_read")
        if op.operation.operands[0] == buffer
    ]
    return len(read) == len(list(loop.results)) * (steps or 1)


def after_part(
    panel: ir.Value, panels: scf.ForOp, start: ir.Value, part: int, extent: int
) -> tuple[ir.Value, ir.Value]:
    """The panel that is read next, and where in it, behind a part of one.

    Each part of the sum goes through the task's panels, then the next part; behind the
    last one is the next task.
    """
    ahead = add(start, index(part))
    more = arith.cmpi(arith.CmpIPredicate.ult, ahead, index(extent))
    number = divide(panels.induction_variable, panels.operation.operands[2])
    last_panel = is_last(panels)
    again = arith.andi(last_panel, more)
    beyond = arith.select(more, ahead, index(0))
    return (
        arith.select(again, arith.subi(panel, number), add(panel, index(1))),
        arith.select(last_panel, beyond, start),
    )


def is_last(loop: scf.ForOp) -> ir.Value:
    """Whether this is a loop's last round."""
    _, upper, step = list(loop.operation.operands)[:3]
    following = add(loop.induction_variable, step)
    return arith.cmpi(arith.CmpIPredicate.uge, following, upper)


def prefetch_panel(
    panel: ir.Value, reduced: int, number: ir.Value, rounds: int, once: bool
) -> None:
    """The same for tile registers, in a round of their loop over a panel's buffer.

    panel: [1..., reduced..., columns], one panel of an argument.  reduced: how many
    loops the sum has.
    """
    kind = ir.MemRefType(panel.type)
    zeros = [index(0)] * (kind.rank - reduced - 1)
    following = (*zeros[1:], index(int(not once)), index(0))
    extent = kind.shape[len(zeros)]
    prefetch(Stream(panel, following, extent, number, rounds, once))


def addends(value: ir.Value) -> list[ir.Value]:
    """What an index is the sum of."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.addi":
        return [value]
    return [part for operand in owner.operands for part in addends(operand)]


def terms(value: ir.Value, variables: list[ir.Value]) -> list[int]:
    """The loops whose variables an index is the sum of, outermost first."""
    return sorted(variables.index(x) for x in addends(value) if x in variables)


def start_of(value: ir.Value, variable: ir.Value) -> ir.Value:
    """An index without one of its addends, where those are not in sight yet."""
    start: ir.Value = index(0)
    for part in addends(value):
        number = constant_of(part)
        if part != variable:
            start = add(start, part if number is None else index(number))
    return start


def depend(values: list[ir.Value], variable: ir.Value) -> bool:
    """Whether any of these values is computed from another one."""
    return any(
        value == variable
        or (
            not isinstance(value.owner, ir.Block)
            and depend(list(value.owner.operands), variable)
        )
        for value in values
    )


def prefetch(stream: Stream, places: list[ir.Operation] | None = None) -> None:
    """Ask for this round's share of the next panel.

    places: in front of them, a line each or some; all here if there are none.

    Behind the last line it is asked for again.
    A panel that is read once is not kept: the lines a little further on are enough.
    """
    share = -(-stream.lines // stream.rounds)
    if not stream.once:
        share = min(share, stream.most)
    kind = ir.MemRefType(stream.buffer.type)
    begin = [*stream.following, *[index(0)] * (kind.rank - 1 - len(stream.following))]
    for ahead in range(share):
        here = ir.InsertionPoint.current
        if places:
            here = ir.InsertionPoint(places[ahead * len(places) // share])
        with here:
            prefetch_line(stream, begin, ahead, share)


def prefetch_line(
    stream: Stream, begin: list[ir.Value], ahead: int, share: int
) -> None:
    """Ask for one of this round's lines."""
    line = add(multiply(stream.number, index(share)), index(ahead))
    if stream.once:
        line = add(line, index(stream.ahead))
    elif stream.rounds * share > stream.lines:
        line = arith.minui(line, index(stream.lines - 1))
    # Past the end of its row on purpose: a panel is contiguous.
    at = [*begin, multiply(line, index(stream.width))]
    level = FIRST_LEVEL if stream.once else SECOND_LEVEL
    memref.PrefetchOp(stream.buffer, at, False, level, True)
