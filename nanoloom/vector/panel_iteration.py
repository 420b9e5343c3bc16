"""A round of a loop that reads a panel, as the nanokernel says that made the loop.

    "nanoloom.panel_round"(%following..., %number, %now, %before, %rows) {argument, ...}

stands where the round begins, on indices alone, from tensors to buffers.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.access import constant_of, index
from nanoloom.ir.mlir import ir
from nanoloom.vector.dialect import LOOP, PANEL_ROUND


@dataclass(frozen=True)
class Counted:
    """Rounds of tiles that are counted at run time, each of them for each row.

    now: of all tiles that read a part; 0 where none asks for anything.  before: of the
    tiles in front of this one.  rows: of this tile.
    """

    now: ir.Value
    before: ir.Value
    rows: ir.Value

    @property
    def values(self) -> tuple[ir.Value, ...]:
        return self.now, self.before, self.rows


@dataclass(frozen=True)
class PanelIteration:
    """What is read next, and how far this loop has come.

    following: where the next part of an argument begins, indices of the shared
    dimensions, the panel and its outermost reduced dimension; extent: of a part in that
    one.  number: of this round among `rounds` at most that read a part, or among those
    of its tile, where they are counted at run time.  once: no tile reads it again.
    """

    following: tuple[ir.Value, ...]
    extent: int
    number: ir.Value
    rounds: int
    once: bool
    counted: Counted | None = None

    def leave(self, argument: int, loop: str) -> None:
        """Write it down at the insertion point, for an argument of the kernel.

        loop: what the script calls the outermost of those that read a panel.
        """
        i64 = ir.IntegerType.get_signless(64)
        words = {
            "argument": argument,
            "extent": self.extent,
            "rounds": self.rounds,
            "once": self.once,
        }
        attributes = {k: ir.IntegerAttr.get(i64, int(v)) for k, v in words.items()}
        known = index(self.rounds), index(0), index(1)
        counted = known if self.counted is None else self.counted.values
        operands = [*self.following, self.number, *counted]
        made = ir.Operation.create(PANEL_ROUND, [], operands, attributes)  # type: ignore[arg-type]
        made.attributes[LOOP] = ir.StringAttr.get(loop)

    @classmethod
    def of(cls, op: ir.OpView) -> tuple[int, PanelIteration]:
        """The argument that an operation is about, and what it says of it."""
        *following, number, now, before, rows = op.operation.operands
        argument, extent, rounds, once = (
            op.operation.attributes[name].value  # type: ignore[attr-defined]
            for name in ("argument", "extent", "rounds", "once")
        )
        known = constant_of(now) is not None
        counted = None if known else Counted(now, before, rows)
        made = cls(tuple(following), extent, number, rounds, bool(once), counted)
        return argument, made
