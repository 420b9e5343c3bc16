"""An operand that all points share is what stays: the sums are outside of the points.

    for r: { v = w[r];  for x: y[x] += a[x + r] * v }

The first points are written out for each step of the sums, so that their results, or
what they read, stay in registers up to the last step.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.access import constant_of
from nanoloom.ir.mlir import ir
from nanoloom.nest.register_residency import Residency, residency
from nanoloom.nest.taps import Tap
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.extent_values import possible_values
from nanoloom.vector.stationary.held_operands import HeldOperands
from nanoloom.vector.tile_points import with_value


def run(held: HeldOperands, ivs: Sequence[ir.Value], sums: Sequence[int]) -> None:
    """All points for each step of the sums."""
    window, anchor = held.window, held.window.anchor
    least = [
        min(possible_values(held.loops.extent(d)), default=1) for d in window.points
    ]
    kept = {operand: count for operand, count in held.kept.items() if operand != anchor}
    where = residency(window, list(sums), least, kept)
    for tap in window.taps(sums):
        held.fixed = {(anchor, window.place(anchor, tap)): held.load(anchor, ivs, tap)}
        points(held, ivs, tap, where, 0)
    held.release(ivs)


def points(
    held: HeldOperands,
    ivs: Sequence[ir.Value],
    tap: Tap,
    where: Residency,
    level: int,
    known: bool = True,
) -> None:
    """The loops over points, from one level on.  known: of those in the corner."""
    window = held.window
    if level == len(window.points):
        keys = [(n, window.place(n, tap)) for n in range(held.result + 1)]
        keep = {key[0] for key in keys if known and key in where.keys}
        held.compute(ivs, tap, keep, known)
        return
    dim = window.points[level]
    extent, written = held.loops.extent(dim), where.extents[level] if known else 0
    for number in range(written):
        there = (*tap.points[:level], number, *tap.points[level + 1 :])
        points(held, ivs, Tap(tap.sums, there), where, level + 1)
    if constant_of(extent) == written:
        return

    def beyond(at: ir.Value, _: Sequence[ir.Value]) -> None:
        points(held, with_value(ivs, dim, at), tap, where, level + 1, known=False)

    emit_loop((written, extent), 1, [], beyond, rolled=True)
