"""Conditions on sizes as polynomials that are never below 0, which files look at.

x.shape[1] > 3              length - 4
x.shape[1] != 5             (length - 5) * (length - 5) - 1
x.shape[1] % 2 == 0         length - 2 * (length // 2), and that times -1
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from nanoloom.dynamic.floor_division import Floor
from nanoloom.dynamic.polynomial import FACTORS, Size, number
from nanoloom.interface.bounds import Bounds, Shaped
from nanoloom.interface.size_conditions import NotKnown, SizeConditions, value

Dim = int | str


@dataclass(frozen=True)
class Term:
    """A size in an expression of Python."""

    size: Size

    def __add__(self, other: Term | int) -> Term:
        sums = {names: c for c, names in self.size.terms}
        for c, names in size_of(other).terms:
            sums[names] = sums.get(names, 0) + c
        return Term(Size(tuple((c, names) for names, c in sums.items() if c)))

    def __mul__(self, other: Term | int) -> Term:
        return Term(self.size.by(size_of(other)))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Term:
        return Term(self.size.times(-1))

    def __sub__(self, other: Term | int) -> Term:
        return self + -Term(size_of(other))

    def __rsub__(self, other: int) -> Term:
        return -self + other

    def __floordiv__(self, over: object) -> Term:
        terms = {names: c for c, names in self.size.terms}
        more = terms.pop((), 0)
        named = [*terms.items()]
        plain = len(named) == 1 and len(named[0][0]) == 1
        if not isinstance(over, int) or over < 1 or not plain:
            raise NotKnown(f"{self.size} // {over}")
        ((dim,), times) = named[0]
        if Floor.named(dim) is not None:
            raise NotKnown(f"{self.size} // {over}")
        (whole, times), (add, more) = divmod(times, over), divmod(more, over)
        made = Term(Size(((whole, (dim,)),) if whole else ())) + add
        common = gcd(times, over)
        if common == over:
            return made
        floor = Floor(dim, more // common, over // common, times // common)
        return made + Term(Size(((1, (floor.name,)),)))

    def __mod__(self, over: object) -> Term:
        return self - (self // over) * over  # type: ignore[operator] - an int, or raised


def size_of(given: object) -> Size:
    """Raises NotKnown for what is neither a size nor a whole number."""
    if isinstance(given, Term):
        return given.size
    if isinstance(given, int):
        return number(given)
    raise NotKnown(str(given))


LIMITS: dict[type[ast.cmpop], Callable[[Term], list[Term]]] = {
    ast.Gt: lambda far: [far - 1],
    ast.GtE: lambda far: [far],
    ast.Lt: lambda far: [-far - 1],
    ast.LtE: lambda far: [-far],
    ast.Eq: lambda far: [far, -far],
    ast.NotEq: lambda far: [far * far - 1],
}


def limits(condition: ast.expr, given: Mapping[str, Term | int]) -> list[Size]:
    """Sizes that are 0 or more exactly if the condition holds; raises NotKnown."""
    if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And):
        return [size for x in condition.values for size in limits(x, given)]
    compared = isinstance(condition, ast.Compare) and len(condition.ops) == 1
    if not compared or type(condition.ops[0]) not in LIMITS:
        raise NotKnown(ast.unparse(condition)[:80])
    try:
        sides = [value(x, given) for x in (condition.left, condition.comparators[0])]
    except TypeError as error:  # a function of what is no number
        raise NotKnown(str(error)) from error
    far = Term(size_of(sides[0])) - sides[1]
    made = LIMITS[type(condition.ops[0])](far)
    if any(each.size.degree > FACTORS for each in made):  # more than a file's table has
        raise NotKnown(ast.unparse(condition)[:80])
    return [each.size for each in made]


def limits_of(
    conditions: SizeConditions, inputs: Sequence[Shaped], numbers: Mapping[str, int]
) -> tuple[tuple[Size, ...], tuple[str, ...]]:
    """Those of a model's conditions, and the conditions that are none, as a user reads
    them.  numbers: of dimensions that are no sizes."""
    shapes = {x.name: [numbers.get(str(d), d) for d in x.shape] for x in inputs}
    given = {name: variable(*axis, shapes) for name, axis in conditions.axes.items()}
    known = {name: x for name, x in given.items() if x is not None}
    found: dict[Size, None] = {}
    others: list[str] = []
    for condition, told in conditions.parsed:
        try:
            found |= dict.fromkeys(limits(condition, known))
        except NotKnown:
            others.append(told)
    return tuple(x for x in found if x.number is None or x.number < 0), tuple(others)


def variable(
    name: str, axis: int, times: int, more: int, shapes: Mapping[str, Sequence[Dim]]
) -> Term | int | None:
    """What a name of conditions is by the dimensions; None where none is it alone."""
    dim = shapes[name][axis]
    if isinstance(dim, int):
        return (dim - more) // times
    if times != 1 or not dim.isidentifier():
        return None
    return Term(Size(((1, (dim,)),))) - more


def narrowed(bounds: Bounds, dim: str, sizes: Sequence[Size]) -> Bounds | None:
    """Bounds of a dimension that say the same; None where sizes are of others."""
    least, most = bounds.least, bounds.most
    for size in sizes:
        terms = {names: c for c, names in size.terms}
        more, times = terms.pop((), 0), terms.pop((dim,), 0)
        if terms or abs(times) != 1:
            return None
        least, most = (
            (max(least, -more), most) if times > 0 else (least, min(most, more))
        )
    return Bounds(least, most, or_none=bounds.or_none and least <= 1)
