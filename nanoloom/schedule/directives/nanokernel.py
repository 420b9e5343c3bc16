"""The innermost tile of a contraction as one nanokernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.extent import Lanes
from nanoloom.nest.loop import How, Placement, TileCode
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.directive import (
    Directive,
    refuse,
    require_number,
    require_width,
    stage_of,
)
from nanoloom.schedule.inner_loops import outer_loops

COPIED = NOT, BETWEEN, FRONT = "", "between", "front"


@dataclass(frozen=True)
class Nanokernel(Directive):
    """for tile: for k: sums[tile] += left[rows, k] * right[k, columns]
      ->  for tile: the family's instructions, the sums in registers

    family: of the instructions (see vector/nanokernel/).
    rows x vectors of so many `lanes`: the register tile; copies of operands that it
    makes have vectors of the same size.  packed: the right operand comes as panels
    (Packing), made while compiling.
    depth: of a matrix unit, so much of the last reduced axis is summed for all of
    a task's rows before the next part of it; 0 for all at once.
    copy_rhs: a right operand that is not packed is copied to a panel by every task, in
    "front" of the products or "between" those of the first tile; "" for no copy.  A
    matrix unit's tiles weave it between products, each anew or the first for all.
    hold_lhs: all rows' numbers are held and the columns loaded one by one, not the
    other way around (see register_tile.py).  unroll: steps of the sum's last axis, or
    groups of them, in a round of its loop.  convert_lhs: so many numbers of each row of
    the left operand are converted at once, into a copy in the type that is multiplied;
    0: each where it is read.  pin_order:  LLVM leaves the products in their order, row
    after row, or column after column for `hold_lhs`, instead of an order of its own.
    keep_broadcast_live: a row's number is, up to the end of its products;
    unfused_mul_add: so is each product, until it is added by an instruction of its own.
    unmasked_fast_path: stores over the result's edge ask whether all of a vector is
    inside, and have masks where it is not; else all have masks.  Of one nanokernel it
    is said for all in the kernel.
    """

    rows: int
    vectors: int
    lanes: Lanes
    packed: bool
    family: str = "fma"
    stage: str = "product"
    depth: int = 0
    copy_rhs: str = ""
    hold_lhs: bool = False
    unroll: int = 1
    convert_lhs: int = 0
    pin_order: bool = True
    keep_broadcast_live: bool = False
    unfused_mul_add: bool = False
    unmasked_fast_path: bool = False

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        require_number(self, "rows", self.rows)
        require_number(self, "vectors", self.vectors)
        require_width(self, self.lanes)
        if self.lanes.scalable:
            refuse(self, f"lanes = {self.lanes}: nanokernels know how wide vectors are")
        require_number(self, "unroll", self.unroll)
        require_number(self, "convert_lhs", self.convert_lhs, least=0)
        if self.copy_rhs not in COPIED:
            refuse(self, f"copy_rhs is {self.copy_rhs!r}: one of {COPIED} is wanted")
        if self.unfused_mul_add and not self.pin_order:
            refuse(self, "products are apart in an order: pin_order=True is missing")
        if not stage.is_contraction:
            refuse(self, f"{self.stage} is no sum of products")
        placement = nest.placement(self.stage)
        self.require_own(nest, placement)
        by = TileCode(
            self.family, self.rows, self.vectors, self.lanes, self.packed,
            bool(self.copy_rhs), bool(self.convert_lhs),
        )  # fmt: skip
        return nest.moved(replace(placement, by=by))

    def require_own(self, nest: LoopNest, placement: Placement) -> None:
        """That no word has been said of what a nanokernel makes itself."""
        if placement.copied:
            number, _ = placement.copied[0]
            reason = f"{self.stage} reads a copy of its operand {number}"
            refuse(self, f"{reason}: a nanokernel makes its own", "copied says when")
        inner = placement.loops[len(outer_loops(nest, placement)) :]
        for loop in inner:
            if loop.how is not How.SERIAL or loop.padded or loop.ahead:
                reason = f'the loop "{loop}" is said already'
                refuse(self, f"{reason}: a nanokernel has a register tile of its own")
        places = [nest.stage(self.stage).place(loop.axis) for loop in inner]
        if places != sorted(places):
            reason = "the loops of its tile have been reordered"
            refuse(self, f"{reason}: a nanokernel has an order of its own")
