"""A row's numbers of several steps of the sum, loaded at once (lane_factors.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nanoloom.ir.access import add, coefficient, constant_of, index, parts
from nanoloom.ir.linalg_query import dims_of, maps
from nanoloom.ir.mlir import ir, scf, vector
from nanoloom.schedule.lane_factors import is_room, lane_factors
from nanoloom.target.facts import Target
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of, read_vector

# A number of the left operand at loop variables of a row of the tile, and the row's
# number, in every lane.
Number = Callable[[list[ir.Value], int], ir.Value]


def load_together(tile: Tile, kind: ir.VectorType, target: Target) -> bool:
    """Whether a tile's rows have their numbers side by side, and registers for them."""
    plan, lanes = tile.plan, tile.lanes
    element = ir.RankedTensorType(tile.left.type).element_type
    # all types of numbers have a width, their base class in the bindings has none
    width = kind.element_type.width  # type: ignore[attr-defined]
    if element != kind.element_type or lane_factors(target, width) != lanes:
        return False
    *outer, last = maps(tile.op)[tile.shape.left].results
    dim = tile.shape.reduced[-1]
    along = coefficient(last, dim) == 1 and all(dim not in dims_of(e) for e in outer)
    sizes = plan.rows, plan.vectors, target.vector.registers
    room = is_room(*sizes, swapped=plan.hold_lhs)
    return along and room and not plan.keep_broadcast_live and plan.unroll % lanes == 0


@dataclass
class VectorLoadedRows:
    """The rows of a tile in a round of its innermost loop.

    alone: reads one number, behind the rounds.  loaded: of each row the last ones, and
    the block and the step that they belong to.
    """

    tile: Tile
    kind: ir.VectorType
    alone: Number
    loaded: dict[int, tuple[ir.Block, int, ir.Value]] = field(
        default_factory=dict[int, tuple[ir.Block, int, ir.Value]]
    )

    def number(self, ivs: list[ir.Value], row: int) -> ir.Value:
        """A row's number at loop variables, in every lane."""
        dim = self.tile.shape.reduced[-1]
        base, step = parts(ivs[dim])
        if base is None or not self.in_round(base):
            return self.alone(ivs, row)
        block, lane = ir.InsertionPoint.current.block, step % self.tile.lanes
        if not lane:
            here = [*ivs[:dim], add(base, index(step)), *ivs[dim + 1 :]]
            at = place_of(maps(self.tile.op)[self.tile.shape.left], here)
            read = read_vector(self.tile.left, at, self.tile.lanes, None)
            self.loaded[row] = block, step, read
        where, first, numbers = self.loaded[row]
        assert where == block, "the steps of a round are in one block"
        assert first == step - lane, "the steps of a round are in order"
        return vector.broadcast(self.kind, vector.extract(numbers, [], [lane]))

    def in_round(self, base: ir.Value) -> bool:
        """Whether this is the variable of a loop by all steps of a round."""
        loop = ir.InsertionPoint.current.block.owner
        if not isinstance(loop, scf.ForOp):
            return False
        by = constant_of(loop.operation.operands[2])
        return base == loop.induction_variable and by == self.tile.plan.unroll
