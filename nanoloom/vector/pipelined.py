"""Loops whose next round is loaded while this one computes: "nanoloom.pipeline".

    for k in 0..n by c: sums = f(sums, x[k])
      ->  here = x[0]
          for k in 0..n-c by c: { next = x[k + c]; sums = f(sums, here); here = next }
          sums = f(sums, here)

What a round reads is in registers before it begins, and the last round loads nothing,
so that nothing is read behind the end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nanoloom.errors import Error
from nanoloom.mlir import arith, ir, scf
from nanoloom.vector.access import add, constant_of, index
from nanoloom.vector.lane_values import LaneValue, Uniform, Vector
from nanoloom.vector.once import Once
from nanoloom.vector.widths import as_index

if TYPE_CHECKING:
    from nanoloom.vector.loops import Loops
    from nanoloom.vector.strip import Point, Strip

# What a round reads, in order: what it is known by, and what loads it.
# LLVM would write several rounds behind each other, and load in front of each of them.
ROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"
Round = list[tuple[Hashable, Callable[[], LaneValue]]]
Reads = Callable[[ir.Value], Round]
Compute = Callable[[ir.Value, list[ir.Value], Once], list[ir.Value]]
Bounds = tuple[ir.Value, ir.Value]


def rounds(
    bounds: Bounds,
    by: int | ir.Value,
    values: list[ir.Value],
    reads: Reads,
    compute: Compute,
) -> list[ir.Value]:
    """The rounds of a loop, `by` points each, with `values` from one to the next."""
    begin, end = bounds
    known = constant_of(begin), constant_of(end)
    if None not in known:
        return at_least_one(bounds, by, values, reads, compute)
    some = arith.cmpi(arith.CmpIPredicate.slt, begin, end)
    branch = scf.IfOp(some, [x.type for x in values], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.yield_(at_least_one(bounds, by, values, reads, compute))
    with ir.InsertionPoint(branch.else_block):
        scf.yield_(values)
    return list(branch.results)


def at_least_one(
    bounds: Bounds,
    by: int | ir.Value,
    values: list[ir.Value],
    reads: Reads,
    compute: Compute,
) -> list[ir.Value]:
    """The same where there is one round at least."""
    begin, end = bounds
    last = before(end, by)
    slots = reads(begin)
    places = list(dict.fromkeys(key for key, _ in slots))
    place_of = {key: place for place, key in enumerate(places)}
    number = [place_of[key] for key, _ in slots]  # of a slot's value
    firsts = [number.index(n) for n in range(len(places))]
    here = [slots[slot][1]() for slot in firsts]
    kinds = [type(value) for value in here]

    def once_of(at: ir.Value, loaded: Sequence[ir.Value]) -> Once:
        found = Once()
        for slot, (key, _) in enumerate(reads(at)):
            value = loaded[number[slot]]
            uniform = kinds[number[slot]] is Uniform
            found.read[key] = Uniform(value) if uniform else Vector(value)
        return found

    start = [*values, *(value_of(x) for x in here)]
    loop = scf.ForOp(begin, last, as_index(by), start)
    loop.operation.attributes["loop_annotation"] = ir.Attribute.parse(ROLLED)
    with ir.InsertionPoint(loop.body):
        at, carried = loop.induction_variable, list(loop.inner_iter_args)
        following = reads(add(at, as_index(by)))
        ahead = [value_of(following[slot][1]()) for slot in firsts]
        once = once_of(at, carried[len(values) :])
        made = compute(at, carried[: len(values)], once)
        scf.yield_([*made, *ahead])
    left = list(loop.results)
    once = once_of(last, left[len(values) :])
    return compute(last, left[: len(values)], once)


def value_of(loaded: LaneValue) -> ir.Value:
    assert isinstance(loaded, (Uniform, Vector)), "loads give nothing else"
    return loaded.value


def before(end: ir.Value, by: int | ir.Value) -> ir.Value:
    """end - by"""
    known = constant_of(end)
    if isinstance(by, int) and known is not None:
        return index(known - by)
    return arith.subi(end, as_index(by))


def sums(
    strip: Strip,
    dims: list[int],
    bounds: Bounds,
    by: int,
    points: list[Point],
    values: list[ir.Value],
    steps: Callable[[ir.Value, int, list[ir.Value], Once], list[ir.Value]],
) -> list[ir.Value]:
    """Steps of a sum's first dimension, `by` of them a round.

    dims: it, and the others of the sum.  Raises Error if those are loops.
    """
    dim, *rest = dims

    def reads(begin: ir.Value) -> Round:
        numbers = range(by)
        here = [p.moved(dim, add(begin, index(n))) for n in numbers for p in points]
        return of_points(strip, dim, in_all_steps(strip, rest, here))

    def compute(at: ir.Value, values: list[ir.Value], once: Once) -> list[ir.Value]:
        return steps(at, by, values, once)

    if strip.kinds[strip.dim] == "reduction":
        refuse_inner(dim)
    return rounds(bounds, by, values, reads, compute)


def in_all_steps(strip: Strip, dims: list[int], points: list[Point]) -> list[Point]:
    """These points in all steps of dimensions; Error if some are loops."""
    for dim in dims:
        known, count = constant_of(strip.extent(dim)), strip.unrolled.get(dim, 1)
        if known is None or 0 < count < known:
            refuse_inner(dim)
        points = [p.moved(dim, index(n)) for n in range(known or 0) for p in points]
    return points


def of_points(strip: Strip, dim: int, points: Sequence[Point]) -> Round:
    """What some points read that changes with a dimension."""
    return [
        (strip.place(number, point), partial(strip.load, number, point))
        for point in points
        for number in strip.read_along(dim)
    ]


def stream(
    loops: Loops, dim: int, ivs: Sequence[ir.Value], bounds: Bounds, by: int | ir.Value
) -> None:
    """Tiles of a dimension, each loaded while the one before it is computed."""

    def there(at: ir.Value) -> list[ir.Value]:
        return [at if d == dim else iv for d, iv in enumerate(ivs)]

    def reads(at: ir.Value) -> Round:
        points = loops.points(there(at))
        return of_points(loops, dim, in_all_steps(loops, loops.reduced, points))

    def compute(at: ir.Value, values: list[ir.Value], once: Once) -> list[ir.Value]:
        loops.tile(there(at), once=once)
        return values

    rounds(bounds, by, [], reads, compute)


def refuse_inner(dim: int) -> None:
    """Error: what a round reads is not known where loops run inside of it."""
    raise Error(f"axis {dim} is to be loaded a round ahead, and loops run inside of it")
