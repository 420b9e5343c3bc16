"""A right operand that is packed: panels that a tile's sums run through.

    [shared..., panel, reduced..., columns]

In the innermost loop of the sum stands "nanoloom.panel_round", which says what is read
there and what will be read next.  vector/prefetch.py makes prefetches of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from nanoloom.dynamic.dynamic_kernel import ARGUMENT
from nanoloom.errors import Error
from nanoloom.ir.access import (
    add,
    as_index,
    constant_of,
    divide,
    function_around,
    index,
    multiply,
)
from nanoloom.ir.linalg_query import inputs, map_dims, maps
from nanoloom.ir.mlir import arith, ir, scf
from nanoloom.schedule.families import FAMILIES
from nanoloom.vector.counted_loops import counted_loops, round_of, trip_count
from nanoloom.vector.dialect import LOOP
from nanoloom.vector.nanokernel.balanced_tiles import first_row
from nanoloom.vector.nanokernel.tile.operand_reuse import changes, tile_loops
from nanoloom.vector.nanokernel.tile.task import is_within
from nanoloom.vector.nanokernel.tile.tile import (
    Tile,
    origin,
    packed_argument,
    read_vector,
)
from nanoloom.vector.panel_iteration import Counted, PanelIteration
from nanoloom.weights.panels import WORD


@dataclass(frozen=True)
class PackedPanel:
    """The panel of a tile's columns.

    argument: the packed weight.  lead: the panel's place among the others, indices of
    the shared dimensions and its number.  begins: where the tile's part of each reduced
    dimension begins.  group: so many numbers of a column lie together (groups.py).
    most: groups in the innermost loop, of which more are two loops; 0 for any number.
    """

    tile: Tile
    argument: ir.Value
    lead: tuple[ir.Value, ...]
    begins: dict[int, ir.Value]
    group: int
    most: int = 0
    rounds: set[ir.Block] = field(default_factory=set[ir.Block])

    @staticmethod
    def of(tile: Tile, group: int = 1, most: int = 0) -> PackedPanel:
        shape = tile.shape
        logical, offsets = origin(inputs(tile.op)[shape.right])
        dims = map_dims(maps(tile.op)[shape.right])
        by_dim = dict(zip(dims, offsets, strict=True))
        argument = packed_argument(logical)
        width = ir.RankedTensorType(argument.type).shape[-1]
        columns = width // FAMILIES[tile.plan.family].group
        number = arith.divui(as_index(by_dim[shape.column]), index(columns))
        shared = [as_index(by_dim[d]) for d in shape.shared if d in by_dim]
        reduced = [d for d in shape.reduced if d in by_dim]
        begins = {d: as_index(by_dim[d]) for d in reduced}
        return PackedPanel(tile, argument, (*shared, number), begins, group, most)

    def read(self, ivs: list[ir.Value], v: int) -> ir.Value:
        """A vector at loop variables of the sum, the last one's in groups."""
        width = self.tile.lanes * self.group
        return self.numbers(ivs, v * width, width)

    def word(self, ivs: list[ir.Value], v: int, number: int) -> ir.Value:
        """The first or second words of a vector's columns (Panels.differences)."""
        width = self.tile.lanes * WORD
        return self.numbers(ivs, number * self.tile.columns * WORD + v * width, width)

    def numbers(self, ivs: list[ir.Value], place: int, count: int) -> ir.Value:
        """So many of a step's numbers, from a place on."""
        self.mark_round()
        inner = [add(ivs[d], begin) for d, begin in self.begins.items()]
        at = [*self.lead, *inner, index(place)]
        return read_vector(self.argument, at, count, None)

    def mark_round(self) -> None:
        """Let a loop that goes along the panel say so, once, where it begins."""
        block = ir.InsertionPoint.current.block
        if block in self.rounds:
            return
        self.rounds.add(block)
        around = len(counted_loops(self.tile.op.operation.block))
        sums = counted_loops(block)[around:]
        if len(sums) == self.deep:
            with ir.InsertionPoint.at_block_begin(block):
                self.leave_round(sums)

    @property
    def deep(self) -> int:
        """Loops of the sum; what is left of the last dimension stands behind them."""
        *outer, last = (self.tile.shape.extents[d] for d in self.begins)
        cut = 0 < self.most < -(-last // self.group)  # not of a length that is open
        return 1 + cut + sum(extent != 1 for extent in outer)

    def leave_round(self, sums: tuple[scf.ForOp, ...]) -> None:
        """Say which round of the loops that read the same panel this one is.

        Where the schedule says that something comes, and in which loops.
        """
        number = ir.BlockArgument(self.argument).arg_number
        word = self.tile.fetched.get(number)
        if word is None:
            return
        once = not word.loops
        loops = tile_loops(self.tile.op, open_ends=True)
        name, tiles = from_named(loops, word.loops)
        own = (*tiles, *sums)
        following, extent = self.following(loops, once)
        rounds = prod(trip_count(loop) for loop in own)
        counted = None if once else counted_rounds(self.tile, tiles, sums)
        alone = counted is not None and len(tiles) == 1
        here = round_of(sums if alone else own)
        round_ = PanelIteration(following, extent, here, rounds, once, counted)
        round_.leave(number, name)

    def following(
        self, loops: tuple[scf.ForOp, ...], once: bool
    ) -> tuple[tuple[ir.Value, ...], int]:
        """Where what is read next begins, and how far it goes.

        The next panel, or where it is read once the rest of this one.  A sum in parts
        goes through the task's panels, then through their next parts; behind the last
        ones is the next task.
        """
        *shared, panel = self.lead
        extent = ir.RankedTensorType(self.argument.type).shape[len(self.lead)]
        dim, begin = next(iter(self.begins.items()))
        carries = [x for x in loops if changes(panel, x) and not changes(begin, x)]
        if once or not carries or constant_of(begin) == 0:
            following = (*shared, add(panel, index(0 if once else 1)), index(0))
            return following, extent
        part = self.tile.shape.extents[dim]
        if len(self.begins) == 1:
            part = -(-part // self.group)
        return (*shared, *after_part(panel, carries[-1], begin, part, extent)), part


def counted_rounds(
    tile: Tile, tiles: Sequence[scf.ForOp], sums: Sequence[scf.ForOp]
) -> Counted | None:
    """The rounds of a kernel with sizes, counted in front of the loops.

    None where they are `rounds`, but for blocks at the edge.  0 where a single row
    reads a panel: it is soon over, and would wait.  Tiles of one loop ask by their
    rows, a single tile, too: of three to six rows BERT takes 0.5 to 0.8 of the time
    without (measured while others read memory).
    """
    bounds = [list(loop.operation.operands)[:3] for loop in tiles]
    ends = [x for row in bounds for x in row if constant_of(x) is None]
    if not ends or ARGUMENT not in function_around(tiles[0]).attributes:
        return None
    if any(is_within(x, tiles[0].operation) for x in ends):
        return None
    each = index(prod(trip_count(loop) for loop in sums))
    with ir.InsertionPoint(tiles[0]):
        visits: ir.Value = index(1)
        for lower, upper, step in bounds:
            visits = multiply(visits, arith.ceildivui(arith.subi(upper, lower), step))
        alone = len(tiles) == 1 and tile.row_count is not None
        reads = bounds[0][1] if alone else visits
        asks = arith.cmpi(arith.CmpIPredicate.ugt, reads, index(1))
        now = arith.select(asks, multiply(reads, each), index(0))
    if not alone:
        return Counted(now, index(0), index(1))
    assert tile.row_count is not None
    before = multiply(first_row(tiles[0]), each)
    return Counted(now, before, tile.row_count)


def from_named(
    loops: Sequence[scf.ForOp], names: tuple[str, ...]
) -> tuple[str, tuple[scf.ForOp, ...]]:
    """The loops around a tile from the one on that has one of these names, and which.

    None and "" where nothing is named.
    """
    for place, loop in enumerate(loops):
        attributes = loop.operation.attributes
        name = attributes[LOOP].value if LOOP in attributes else ""  # type: ignore[attr-defined]
        if name in names:
            return name, tuple(loops[place:])
    if names:
        raise Error(
            f"no loop {' or '.join(names)} is around a nanokernel that reads panels"
        )
    return "", ()


def after_part(
    panel: ir.Value, panels: scf.ForOp, begin: ir.Value, part: int, extent: int
) -> tuple[ir.Value, ir.Value]:
    """The panel that is read next, and where in it, behind a part of one.

    panels: the loop over a task's panels.  extent: of whole ones.
    """
    ahead = add(begin, index(part))
    more = arith.cmpi(arith.CmpIPredicate.ult, ahead, index(extent))
    number = divide(panels.induction_variable, panels.operation.operands[2])
    last_panel = is_last(panels)
    again = arith.andi(last_panel, more)
    beyond = arith.select(more, ahead, index(0))
    return (
        arith.select(again, arith.subi(panel, number), add(panel, index(1))),
        arith.select(last_panel, beyond, begin),
    )


def is_last(loop: scf.ForOp) -> ir.Value:
    """Whether this is a loop's last round."""
    _, upper, step = list(loop.operation.operands)[:3]
    following = add(loop.induction_variable, step)
    return arith.cmpi(arith.CmpIPredicate.uge, following, upper)
