"""remf: x - n y, n the quotient towards zero, exact as C's fmod.

The rounded quotient of |x| < 2^24 |y| is n or n + 1, and both remainders are numbers of
f32, so one fused multiply-add and one addition give the result.  Where a lane has a
larger quotient, a loop takes 26 bits of it at a time from f64 first.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from nanoloom.ir.mlir import ir, llvm, math, scf, vector
from nanoloom.vector.math.lanes import Lanes, copysign, fma, select

SMALL = 2.0**24  # quotients below have all their bits in f32
LOW_BITS = (1 << 27) - 1  # of an f64: 26 others are left
INFINITY = float("inf")


def remf(x: ir.Value, y: ir.Value) -> ir.Value:
    """For f32 or a vector of f32; the sign of x, NaN for y = 0 and infinite x."""
    kind = x.type
    if isinstance(kind, ir.VectorType) and kind.rank > 1:
        row = ir.VectorType.get([prod(kind.shape)], kind.element_type)
        made = remf(vector.shape_cast(row, x), vector.shape_cast(row, y))
        return vector.shape_cast(kind, made)
    # Lanes behind a row's end are poison, on which no branch may depend.
    dividend, divisor = frozen(x), frozen(y)
    a, b = abs(dividend), abs(divisor)
    is_large = (a >= b * SMALL) & (b > 0.0) & (a < INFINITY)
    a = when(any_lane(is_large), a, lambda: select(is_large, below(a, b, is_large), a))
    return copysign(select(a < b, a, last_step(a, b)), dividend).value


def last_step(a: Lanes, b: Lanes) -> Lanes:
    """a - b trunc(a / b) where the quotient is exact or one too many."""
    rest = fma(-truncated(a / b), b, a)
    return select(rest < 0.0, rest + b, rest)


def below(a: Lanes, b: Lanes, chosen: Lanes) -> Lanes:
    """The remainders of chosen lanes, numbers of f32 from quotients of any size."""
    divisor = b.widen()
    start = a.widen()
    start = select(chosen, start, start.splat(0.0))

    def is_large(rest: Lanes) -> Lanes:
        return rest >= divisor * SMALL

    def step(rest: Lanes) -> Lanes:
        """Less by a multiple of 26 bits that is no more: product and rest are exact."""
        bits = (rest / divisor).bits() + (-1)
        return rest - truncated((bits & ~LOW_BITS).as_float()) * divisor

    rest = repeat_while(start, lambda x: any_lane(is_large(x) & chosen), step)
    return last_step(rest, divisor).narrow()


def frozen(x: ir.Value) -> Lanes:
    return Lanes(llvm.freeze(x))


def truncated(x: Lanes) -> Lanes:
    return Lanes(math.trunc(x.value))


def any_lane(mask: Lanes) -> ir.Value:
    """Whether a mask is set anywhere."""
    if not isinstance(mask.kind, ir.VectorType):
        return mask.value
    flag = ir.IntegerType.get_signless(1)
    return vector.reduction(flag, vector.CombiningKind.OR, mask.value)


def when(condition: ir.Value, otherwise: Lanes, make: Callable[[], Lanes]) -> Lanes:
    """make() where a condition holds, one value for all lanes."""
    branch = scf.IfOp(condition, [otherwise.kind], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([make().value])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([otherwise.value])
    return Lanes(branch.results[0])


def repeat_while(
    start: Lanes, goes_on: Callable[[Lanes], ir.Value], step: Callable[[Lanes], Lanes]
) -> Lanes:
    """start = step(start) as long as goes_on(start)."""
    loop = scf.WhileOp([start.kind], [start.value])
    before = loop.before.blocks.append(start.kind)
    with ir.InsertionPoint(before):
        scf.ConditionOp(goes_on(Lanes(before.arguments[0])), list(before.arguments))
    after = loop.after.blocks.append(start.kind)
    with ir.InsertionPoint(after):
        scf.YieldOp([step(Lanes(after.arguments[0])).value])
    return Lanes(loop.results[0])
