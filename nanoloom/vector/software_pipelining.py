"""Loops whose next round is loaded while this one computes: "nanoloom.pipeline".

    for k in 0..n by c: sums = f(sums, x[k])
      ->  here = x[0]
          for k in 0..n-c by c: { next = x[k + c]; sums = f(sums, here); here = next }
          sums = f(sums, here)

What a round reads is in registers before it begins, and the last round loads nothing,
so that nothing is read behind the end.  Of several steps a round, a number is loaded
behind the last use of the one whose register it takes, while others are computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from nanoloom.errors import Error
from nanoloom.ir.access import add, as_index, constant_of, index
from nanoloom.ir.mlir import arith, ir
from nanoloom.vector.emit_loops import emit_branch, emit_loop
from nanoloom.vector.lane_values import LaneValue, Uniform, Vector
from nanoloom.vector.operand_loads import load_operand
from nanoloom.vector.value_cache import ValueCache

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point
    from nanoloom.vector.vectorize_loops import Loops

# What a round reads, in order: what it is known by, and what loads it.
Round = list[tuple[Hashable, Callable[[], LaneValue]]]
Reads = Callable[[ir.Value], Round]
Compute = Callable[[ir.Value, list[ir.Value], ValueCache], list[ir.Value]]
Passed = Callable[[Sequence[Hashable]], None]
Bounds = tuple[ir.Value, ir.Value]


def iterations(
    bounds: Bounds,
    by: int | ir.Value,
    values: list[ir.Value],
    reads: Reads,
    compute: Compute,
    *,
    late: bool = False,
) -> list[ir.Value]:
    """The rounds of a loop, `by` points each, with `values` from one to the next.

    late: numbers are loaded into the registers of those that have been used.
    """
    begin, end = bounds
    rounds = partial(at_least_one, bounds, by, values, reads, compute, late=late)
    if None not in (constant_of(begin), constant_of(end)):
        return rounds()
    some = arith.cmpi(arith.CmpIPredicate.slt, begin, end)
    return emit_branch(some, rounds, lambda: values, [x.type for x in values])


def at_least_one(
    bounds: Bounds,
    by: int | ir.Value,
    values: list[ir.Value],
    reads: Reads,
    compute: Compute,
    *,
    late: bool,
) -> list[ir.Value]:
    """The same where there is one round at least."""
    begin, end = bounds
    first = reads(begin)
    last, slots = before(end, by), Slots.of(first)
    here = [first[slot][1]() for slot in slots.firsts]
    kinds = [type(value) for value in here]
    if late:
        fence()  # LLVM would join these loads and the loop's, at its beginning
    start = [*values, *(value_of(x) for x in here)]

    def inside(at: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        now, following = reads(at), reads(add(at, as_index(by)))
        ahead = NextIteration(slots, now, following)
        if not late:
            ahead.all()
        once = slots.once(now, carried[len(values) :], kinds, ahead.passed)
        made = compute(at, carried[: len(values)], once)
        return [*made, *ahead.all()]

    left = emit_loop((begin, last), by, start, inside, rolled=True)
    held = left[len(values) :]
    return compute(last, left[: len(values)], slots.once(reads(last), held, kinds))


@dataclass(frozen=True)
class Slots:
    """Which of a round's reads are of one place: a number of the place for each.

    firsts: of each place, the first read.
    """

    numbers: list[int]
    firsts: list[int]

    @staticmethod
    def of(reads: Round) -> Slots:
        places = list(dict.fromkeys(key for key, _ in reads))
        number_of = {key: number for number, key in enumerate(places)}
        numbers = [number_of[key] for key, _ in reads]
        return Slots(numbers, [numbers.index(n) for n in range(len(places))])

    def once(
        self,
        reads: Round,
        values: Sequence[ir.Value],
        kinds: Sequence[type],
        passed: Passed | None = None,
    ) -> ValueCache:
        """What a round has at hand, a value for each place."""
        found = ValueCache(passed=passed)
        for number, (key, _) in zip(self.numbers, reads, strict=True):
            value = values[number]
            made = Uniform(value) if kinds[number] is Uniform else Vector(value)
            found.read[key] = made
        return found


class NextIteration:
    """The loads of the next round, each behind the last use of what it replaces.

    They take the same registers.  Fences keep them there: LLVM would put loads
    together, and processors that run in order wait for all of them.
    """

    def __init__(self, slots: Slots, now: Round, following: Round) -> None:
        self.slots, self.following = slots, following
        self.uses = Counter(slots.numbers)
        keys = (key for key, _ in now)
        self.numbers = dict(zip(keys, slots.numbers, strict=True))
        self.made: dict[int, ir.Value] = {}

    def passed(self, places: Sequence[Hashable]) -> None:
        """A point has been computed that reads these places."""
        for number in (self.numbers[x] for x in places if x in self.numbers):
            self.uses[number] -= 1
            if not self.uses[number] and number not in self.made:
                self.load(number)
                fence()

    def load(self, number: int) -> ir.Value:
        if number not in self.made:
            value = self.following[self.slots.firsts[number]][1]()
            self.made[number] = value_of(value)
        return self.made[number]

    def all(self) -> list[ir.Value]:
        """All places' values; those that are not loaded yet are here."""
        return [self.load(number) for number in range(len(self.slots.firsts))]


def fence() -> None:
    """No access to memory is moved past here by LLVM; no instruction."""
    words = {
        "ordering": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 7),
        "syncscope": ir.StringAttr.get("singlethread"),
    }
    ir.Operation.create("llvm.fence", [], [], words)


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
    strip: RegisterTile,
    dims: list[int],
    bounds: Bounds,
    by: int,
    points: list[Point],
    values: list[ir.Value],
    steps: Callable[[ir.Value, int, list[ir.Value], ValueCache], list[ir.Value]],
) -> list[ir.Value]:
    """Steps of a sum's first dimension, `by` of them a round.

    dims: it, and the others of the sum.  Raises Error if those are loops.
    """
    dim, *rest = dims

    def reads(begin: ir.Value) -> Round:
        numbers = range(by)
        here = [p.moved(dim, add(begin, index(n))) for n in numbers for p in points]
        return of_points(strip, dim, in_all_steps(strip, rest, here))

    def compute(
        at: ir.Value, values: list[ir.Value], once: ValueCache
    ) -> list[ir.Value]:
        return steps(at, by, values, once)

    if strip.kinds[strip.dim] == "reduction":
        refuse_inner(dim)
    return iterations(bounds, by, values, reads, compute, late=by > 1)


def in_all_steps(
    strip: RegisterTile, dims: list[int], points: list[Point]
) -> list[Point]:
    """These points in all steps of dimensions; Error if some are loops."""
    for dim in dims:
        known, count = constant_of(strip.extent(dim)), strip.unrolled.get(dim, 1)
        if known is None or 0 < count < known:
            refuse_inner(dim)
        points = [p.moved(dim, index(n)) for n in range(known or 0) for p in points]
    return points


def of_points(strip: RegisterTile, dim: int, points: Sequence[Point]) -> Round:
    """What some points read that changes with a dimension."""
    once = ValueCache()
    return [
        (strip.place(number, point, once), partial(load_operand, strip, number, point))
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

    def compute(
        at: ir.Value, values: list[ir.Value], once: ValueCache
    ) -> list[ir.Value]:
        loops.tile(there(at), once=once)
        return values

    iterations(bounds, by, [], reads, compute)


def refuse_inner(dim: int) -> None:
    """Error: what a round reads is not known where loops run inside of it."""
    raise Error(f"axis {dim} is to be loaded a round ahead, and loops run inside of it")
