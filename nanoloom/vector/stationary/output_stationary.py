"""The result, or an operand that moves with the points, is what stays.

    for x: { s = y[x];  for r: s += a[x + r] * w[r];  y[x] = s }
    for i: { u = a[i];  for r: y[i - r] += u * w[r] }

In the second form the points of one step lie behind each other: the step at i has those
at i - r, as far as there are such.  A step of a stride has several places of the
operand, one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from nanoloom.errors import Error
from nanoloom.ir.access import add, index
from nanoloom.ir.mlir import arith, ir
from nanoloom.nest.taps import Tap
from nanoloom.vector.emit_loops import emit_branch, emit_loop
from nanoloom.vector.extent_values import possible_values
from nanoloom.vector.extents import is_next
from nanoloom.vector.stationary.held_operands import HeldOperands, Key
from nanoloom.vector.tile_points import with_value

MOST_EXTENTS = 3  # of the innermost loop: each has code of its own


def run(held: HeldOperands, ivs: Sequence[ir.Value], extents: Sequence[int]) -> None:
    """All points of a block of code.  extents: of the sums."""
    taps = held.window.taps(extents)
    if any(max(tap.points) > 0 for tap in taps):
        anchor = held.window.anchor
        raise Error(f"operand {anchor} is read backwards: another one can stay")
    for operand, count in held.kept.items():
        if operand != held.result and not held.window.moves(operand):
            run_output_stationary(held, ivs, taps, operand, count)
    rows(held, ivs, taps, 0)


def run_output_stationary(
    held: HeldOperands,
    ivs: Sequence[ir.Value],
    taps: list[Tap],
    operand: int,
    count: int,
) -> None:
    """Load what all points share, as much of it as is kept."""
    at = {held.window.place(operand, tap): tap for tap in reversed(taps)}
    for place in list(reversed(at))[:count]:
        held.fixed[operand, place] = held.load(operand, ivs, at[place])


def rows(
    held: HeldOperands, ivs: Sequence[ir.Value], taps: list[Tap], level: int
) -> None:
    """The loops around the innermost one, a place of the anchor after the other."""
    points = held.window.points
    if level == len(points) - 1:
        ordered = held.window.in_order(taps)
        each_extent(held, points[-1], partial(sweep, held, ivs, ordered))
        return
    dim, most = points[level], max(-tap.points[level] for tap in taps)
    end = add(held.loops.extent(dim), index(most))

    def step(at: ir.Value) -> None:
        for group in held.window.groups(taps, level):
            inside(held, with_value(ivs, dim, at), group, level, whole=not most)

    if is_next(index(0), end):
        step(index(0))
        return
    emit_loop((0, end), 1, [], lambda at, _: step(at), rolled=True)


def inside(
    held: HeldOperands,
    ivs: Sequence[ir.Value],
    taps: list[Tap],
    level: int,
    whole: bool,
) -> None:
    """A step of an outer loop: all taps; near the edges those that have a point."""
    if whole:
        rows(held, ivs, taps, level + 1)
        return
    dim, backs = held.window.points[level], sorted({-tap.points[level] for tap in taps})
    extent, at = held.loops.extent(dim), ivs[dim]
    all_are = within(at, backs[-1], backs[0], extent)

    def each() -> None:
        for back in backs:
            here = [tap for tap in taps if -tap.points[level] == back]
            some = within(at, back, back, extent)
            emit_branch(some, partial(rows, held, ivs, here, level + 1))

    every = partial(rows, held, ivs, taps, level + 1)
    emit_branch(all_are, every, each if len(backs) > 1 else None)


def within(at: ir.Value, most: int, least: int, extent: ir.Value) -> ir.Value:
    """most <= at < extent + least"""
    begun = arith.cmpi(arith.CmpIPredicate.sge, at, index(most))
    end = add(extent, index(least))
    return arith.andi(begun, arith.cmpi(arith.CmpIPredicate.slt, at, end))


def each_extent(held: HeldOperands, dim: int, emit: Callable[[int], None]) -> None:
    """The code for an extent, which is a number, or one of few."""
    extent = held.loops.extent(dim)
    numbers = sorted(possible_values(extent))
    if not 1 <= len(numbers) <= MOST_EXTENTS:
        raise Error(
            f"axis {dim} has no known extent, and what stays moves along it",
            hint="leave its loop whole",
        )
    if len(numbers) == 1:
        emit(numbers[0])
        return
    for number in numbers:
        here = arith.cmpi(arith.CmpIPredicate.eq, extent, index(number))
        emit_branch(here, partial(emit, number))


def sweep(
    held: HeldOperands, ivs: Sequence[ir.Value], taps: list[Tap], extent: int
) -> None:
    """The innermost loop: what one step leaves in registers, the next one finds.

    All taps have a point from the step `first` on; before it and behind the extent
    fewer do, and the steps are written out.
    """
    dim, turns = held.window.points[-1], held.turns
    keep, carried = plan(held, taps)
    first = max(-tap.points[-1] for tap in taps)
    rounds = max(0, extent - first) // turns
    last = extent + first

    def steps(begin: int, end: int) -> None:
        for at in range(begin, end):
            for number, tap in enumerate(taps):
                if 0 <= at + tap.points[-1] < extent:
                    held.compute(with_value(ivs, dim, index(at)), tap, keep[number])
            held.advance()

    if rounds < 2:
        steps(0, last)
        held.release(with_value(ivs, dim, index(last)))
        return
    steps(0, first)
    middle = first + rounds * turns
    complete(held, with_value(ivs, dim, index(first)), carried)
    values = [held.now[key][0] for key in carried]

    def together(begin: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
        enter(held, carried, now)
        for turn in range(turns):
            at = add(begin, index(turn))
            for number, tap in enumerate(taps):
                held.compute(with_value(ivs, dim, at), tap, keep[number])
            held.advance()
        assert set(held.now) == set(carried), "a step leaves what the next one finds"
        return [held.now[key][0] for key in carried]

    # LLVM leaves it as it is: `turns` says how many steps stand behind each other.
    left = emit_loop((first, middle), turns, values, together, rolled=True)
    enter(held, carried, left)
    steps(middle, last)
    held.release(with_value(ivs, dim, index(last)))


def plan(held: HeldOperands, taps: list[Tap]) -> tuple[list[set[int]], dict[Key, Tap]]:
    """Of each tap the operands that are used again, and what the next step finds."""
    keep: list[set[int]] = [set() for _ in taps]
    carried: dict[Key, Tap] = {}
    for operand, count in held.kept.items():
        if not held.window.moves(operand):
            continue
        for link in held.window.links(taps, operand, count):
            keep[link.begin].add(operand)
            if link.ahead:
                tap = taps[link.end]
                carried[operand, held.window.place(operand, tap)] = tap
    return keep, carried


def complete(
    held: HeldOperands, ivs: Sequence[ir.Value], carried: dict[Key, Tap]
) -> None:
    """Just what is carried is in registers in front of a loop."""
    held.release(ivs, carried)
    for (operand, place), tap in carried.items():
        if (operand, place) not in held.now:
            held.now[operand, place] = held.load(operand, ivs, tap), tap


def enter(
    held: HeldOperands, carried: dict[Key, Tap], values: Sequence[ir.Value]
) -> None:
    """The registers at the beginning of a round, or behind the last one."""
    pairs = zip(carried.items(), values, strict=True)
    held.now = {key: (value, tap) for (key, tap), value in pairs}
