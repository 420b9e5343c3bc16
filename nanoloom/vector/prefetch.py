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

from collections.abc import Mapping, Sequence
from math import prod

from nanoloom.errors import Error
from nanoloom.ir.access import add, divide, index, multiply
from nanoloom.ir.mlir import arith, ir, memref, named
from nanoloom.schedule.directives.prefetch import LEVELS, Prefetch
from nanoloom.schedule.packing import Pack
from nanoloom.vector.dialect import IN_ORDER, LOOP, PANEL_ROUND
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel.amx.panels import ARGUMENT
from nanoloom.vector.nanokernel.tile.task import locality
from nanoloom.vector.nanokernel.tile.tile import origin
from nanoloom.vector.panel_iteration import Counted, PanelIteration

LINE = 64  # bytes
MORE = 2  # times the lines of a round, where one tile may ask for most of a panel


def require_numbers(word: Prefetch, packings: Sequence[Pack]) -> None:
    """Error unless a prefetch says how panels come, or how far ahead what is flat."""
    if not 1 <= word.level <= LEVELS:
        raise Error(f"level = {word.level}: caches 1 to {LEVELS} are known")
    panels = any(packing.argument == word.argument for packing in packings)
    if panels and (word.lines if word.loops else word.ahead) < 1:
        raise Error(
            "a prefetch of panels says so many lines of loops that read one panel, or "
            "how many lines ahead what is read once comes"
        )
    if not panels and (word.lines or word.loops or word.ahead < 1):
        raise Error(
            f"argument {word.argument} comes in no panels: it is fetched some steps "
            "ahead of its use, and no lines",
            hint='"nanoloom.pack" stands in front of its "nanoloom.prefetch"',
        )


def require_fetched(
    module: ir.Module, wanted: Mapping[int, Prefetch], packings: Sequence[Pack]
) -> None:
    """Error for an operand that is to come and does not (on tensors)."""
    panels = {packing.argument for packing in packings}
    made = (op.operation.operands[0].owner for op in named(module, "memref.prefetch"))
    sources = [origin(owner.operands[0])[0] for owner in made]
    arguments = [ir.BlockArgument(x) for x in sources if isinstance(x.owner, ir.Block)]
    there = {argument.arg_number for argument in arguments}
    require_loops(module, wanted, panels)
    for number in wanted:
        if number not in panels and number not in there:
            raise Error(
                f"nothing fetches argument {number}, which comes in no panels",
                hint='its "nanoloom.prefetch" stands in front of a nanokernel that '
                'copies it, or widens its rows: copied = "between"',
            )


def require_loops(
    module: ir.Module, wanted: Mapping[int, Prefetch], panels: set[int]
) -> None:
    """Error for panels that come in loops which do not read them (on tensors)."""
    reading = loops_with_panels(module)
    for number in panels & wanted.keys():
        if number not in reading:
            raise Error(
                f"no loop reads panels of argument {number}: nothing fetches them",
                hint="a sum of as few steps as stand in a round has no loop",
            )
        for name in wanted[number].loops:
            if name not in reading[number]:
                known = ", ".join(sorted(reading[number]))
                raise Error(
                    f"no loop {name} reads panels of argument {number}: {known} does"
                )


def loops_with_panels(module: ir.Module) -> dict[int, set[str]]:
    """What a script calls the loops that read an argument's panels, "" for no name.

    A matrix unit goes through its rows by itself, in the only loop that reads one.
    """
    found: dict[int, set[str]] = {}
    for op in (*named(module, PANEL_ROUND), *named(module, "linalg.generic")):
        words = op.operation.attributes
        if LOOP in words:
            argument = words[ARGUMENT if ARGUMENT in words else "argument"]
            names = found.setdefault(argument.value, set())  # type: ignore[attr-defined]
            names.add(words[LOOP].value)  # type: ignore[attr-defined]
    return found


def fetch_panels(module: ir.Module, wanted: Mapping[int, Prefetch]) -> None:
    """In every loop that reads a panel (on buffers): some lines of the next panel.

    wanted: of which arguments.
    """
    kernel = module.body.operations[0]
    arguments = list(kernel.operation.regions[0].blocks[0].arguments)
    for op in named(module, PANEL_ROUND):
        argument, round_ = PanelIteration.of(op)
        with ir.InsertionPoint(op), op.operation.location:
            places = row_ends(op.operation.block)
            prefetch(arguments[argument], round_, wanted[argument], places)
        op.operation.erase()


def row_ends(block: ir.Block) -> list[ir.Operation]:
    """Behind which a nanokernel reads for its next row, in order."""
    return [op.operation for op in block.operations if op.operation.name == IN_ORDER]


def prefetch(
    buffer: ir.Value,
    round_: PanelIteration,
    word: Prefetch,
    places: Sequence[ir.Operation] = (),
) -> None:
    """Ask for this round's share of what is read next.

    places: in front of them, a line each or some; all here if there are none.

    Behind the last line it is asked for again.
    A panel that is read once is not kept: the lines a little further on are enough.
    """
    if round_.counted is not None:
        prefetch_now(buffer, round_, round_.counted, word)
        return
    most = lines(buffer, round_)
    share = -(-most // round_.rounds)
    if not round_.once:
        share = min(share, word.lines)
    for ahead in range(share):
        here = ir.InsertionPoint.current
        if places:
            here = ir.InsertionPoint(places[ahead * len(places) // share])
        with here:
            line = add(multiply(round_.number, index(share)), index(ahead))
            if round_.once:
                line = add(line, index(word.ahead))
            elif round_.rounds * share > most:
                line = arith.minui(line, index(most - 1))
            prefetch_line(buffer, round_, word, line)


def prefetch_now(
    buffer: ir.Value, round_: PanelIteration, counted: Counted, word: Prefetch
) -> None:
    """The same where the rounds are counted at run time: a loop over the lines."""
    most = index(lines(buffer, round_))
    rounds = arith.maxui(counted.now, index(1))
    share = arith.ceildivui(multiply(most, counted.rows), rounds)
    none = arith.cmpi(arith.CmpIPredicate.eq, counted.now, index(0))
    at_most = index(MORE * word.lines)
    share = arith.select(none, index(0), arith.minui(share, at_most))
    first = divide(multiply(most, counted.before), rounds)
    first = add(first, multiply(round_.number, share))

    def one(number: ir.Value, _: object) -> None:
        line = arith.minui(add(first, number), arith.subi(most, index(1)))
        prefetch_line(buffer, round_, word, line)

    emit_loop((0, share), 1, [], one)


def prefetch_line(
    buffer: ir.Value, round_: PanelIteration, word: Prefetch, line: ir.Value
) -> None:
    """Ask for a line of what is read next."""
    # Past the end of its row on purpose: a panel is contiguous.
    inside = ir.MemRefType(buffer.type).rank - 1 - len(round_.following)
    zeros = [index(0)] * inside
    at = [*round_.following, *zeros, multiply(line, index(width(buffer)))]
    memref.PrefetchOp(buffer, at, False, locality(word), True)


def lines(buffer: ir.Value, round_: PanelIteration) -> int:
    """Of the part of a panel that is read."""
    shape = list(ir.MemRefType(buffer.type).shape)[len(round_.following) :]
    return -(-round_.extent * prod(shape) // width(buffer))


def width(buffer: ir.Value) -> int:
    """Elements in a line."""
    kind = ir.MemRefType(buffer.type).element_type
    return LINE * 8 // kind.width  # type: ignore[attr-defined]
