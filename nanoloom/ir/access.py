"""How an operand of a buffer generic is read or written along the vector dimension."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from nanoloom.ir.linalg_query import dims_of
from nanoloom.ir.mlir import arith, ir

CONSTANT = "arith.constant"
SECOND = 2  # elements from lane to lane: two loads, of which half is taken


class Access(Enum):
    """One step along the vector dimension in an operand."""

    UNIFORM = "uniform"  # the same element: load once, broadcast
    CONTIGUOUS = "contiguous"  # the next element in memory: one vector load
    STRIDED = "strided"  # anything else: one load a lane


@dataclass(frozen=True)
class Operand:
    """A buffer with its indexing map."""

    buffer: ir.Value
    indexing: ir.AffineMap

    @property
    def is_within(self) -> bool:
        """Whether loops go along other extents than the buffer's, which tell none."""
        return False

    @property
    def is_scalar(self) -> bool:
        """A value that a generic takes as it is."""
        return not isinstance(self.buffer.type, ir.MemRefType)

    @property
    def element(self) -> ir.Type:
        if self.is_scalar:
            return self.buffer.type
        return ir.MemRefType(self.buffer.type).element_type

    @cached_property
    def _results(self) -> list[ir.AffineExpr]:
        """Of the indexing: a body written out for a thousand points asks each time."""
        return list(self.indexing.results)

    @cached_property
    def terms(self) -> list[tuple[ir.AffineExpr, tuple[int, ...]]]:
        """An expression for each index, with the loop dimensions that it is of."""
        return [(expr, tuple(sorted(dims_of(expr)))) for expr in self._results]

    @cached_property
    def _accesses(self) -> dict[int, Access]:
        return {}

    def access(self, dim: int) -> Access:
        if dim not in self._accesses:
            self._accesses[dim] = self._access(dim)
        return self._accesses[dim]

    def _access(self, dim: int) -> Access:
        results = self._results
        using = [i for i, e in enumerate(results) if dim in dims_of(e)]
        if not using or self.is_scalar:
            return Access.UNIFORM
        strides, _ = ir.MemRefType(self.buffer.type).get_strides_and_offset()
        last = using == [len(results) - 1] and coefficient(results[-1], dim) == 1
        return Access.CONTIGUOUS if last and strides[-1] == 1 else Access.STRIDED

    def step(self, dim: int) -> int:
        """How many elements in memory are from lane to lane, of those that follow each
        other; 1 for other operands."""
        if self.access(dim) is not Access.STRIDED or not self.is_spread(dim):
            return 1
        return coefficient(self.indexing.results[-1], dim) or 1

    def is_spread(self, dim: int) -> bool:
        """Whether lanes are every second element of a row."""
        *outer, last = self.indexing.results
        strides, _ = ir.MemRefType(self.buffer.type).get_strides_and_offset()
        apart = any(dim in dims_of(e) for e in outer)
        return not apart and strides[-1] == 1 and coefficient(last, dim) == SECOND

    def indices(self, ivs: Sequence[ir.Value]) -> list[ir.Value]:
        """The element's index for these values of the loop dimensions."""
        return [apply(e, ivs) for e in self._results]


def coefficient(expr: ir.AffineExpr, dim: int) -> int | None:
    """The factor of `dim` in a linear expression, None if it is not linear in it."""
    if isinstance(expr, ir.AffineDimExpr):
        return int(expr.position == dim)
    if isinstance(expr, ir.AffineConstantExpr):
        return 0
    if isinstance(expr, ir.AffineAddExpr):
        left, right = coefficient(expr.lhs, dim), coefficient(expr.rhs, dim)
        return None if left is None or right is None else left + right
    if isinstance(expr, ir.AffineMulExpr):
        left, right = coefficient(expr.lhs, dim), expr.rhs
        if left is None or not isinstance(right, ir.AffineConstantExpr):
            return None
        return left * right.value
    return None if dim in dims_of(expr) else 0


def offset_of(expr: ir.AffineExpr) -> int:
    """The number that is added in a linear expression."""
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineAddExpr):
        return offset_of(expr.lhs) + offset_of(expr.rhs)
    return 0


def index(value: int) -> ir.Value:
    """A constant; `arith.constant` would take twice as long to make the same."""
    kind = ir.IndexType.get()
    words: dict[str, ir.Attribute] = {"value": ir.IntegerAttr.get(kind, value)}
    return ir.Operation.create("arith.constant", [kind], attributes=words).results[0]


def constant_of(value: ir.Value) -> int | None:
    """The number an index constant holds."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != CONSTANT:
        return None
    return number_of(owner)


def number_of(constant: ir.Operation) -> int:
    return int(constant.attributes["value"].value)  # type: ignore[attr-defined]


Parts: TypeAlias = tuple[ir.Value | None, int]


def parts(value: ir.Value) -> Parts:
    """What an index is beside the number added to it, and that number."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return value, 0
    name = owner.name
    if name == CONSTANT:
        return None, number_of(owner)
    if name != "arith.addi":
        return value, 0
    left, right = owner.operands
    number = constant_of(right)
    return (value, 0) if number is None else (left, number)


def whole(found: Parts) -> ir.Value:
    """What has these parts; the number stands last."""
    base, number = found
    if base is None:
        return index(number)
    return arith.addi(base, index(number)) if number else base


def add(left: ir.Value, right: ir.Value) -> ir.Value:
    """left + right; what is added to both as a number stands last, and once."""
    return whole(added(parts(left), parts(right)))


def added(left: Parts, right: Parts) -> Parts:
    (one, near), (other, far) = left, right
    if one is None or other is None:
        return other if one is None else one, near + far
    return arith.addi(one, other), near + far


def difference(left: ir.Value, right: ir.Value) -> ir.Value:
    """left - right, without the useless ones."""
    base, number = parts(right)
    moved = add(left, index(-number))
    return moved if base is None else arith.subi(moved, base)


def multiply(left: ir.Value, right: ir.Value) -> ir.Value:
    """left * right; of a sum with a number the number stands last again."""
    (one, near), (other, far) = parts(left), parts(right)
    if one is not None and other is not None:
        return arith.muli(left, right)
    return whole(
        times((one, near), far) if other is None else times((other, far), near)
    )


def times(of: Parts, number: int) -> Parts:
    """The parts of a product with a number."""
    base, near = of
    if base is not None and number != 1:
        base = arith.muli(base, index(number))
    return base, near * number


def written(value: ir.Value) -> Hashable:
    """An index as it is made of others: equal for those that are made alike."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return value
    name = owner.name
    if name == CONSTANT:
        return number_of(owner)
    if name == "vector.vscale":  # the same wherever it is asked for
        return name
    if name not in ("arith.addi", "arith.muli"):
        return value
    return (name, *(written(part) for part in owner.operands))


def divide(left: ir.Value, right: ir.Value) -> ir.Value:
    """left / right of numbers that are not negative, without the useless ones."""
    one, other = constant_of(left), constant_of(right)
    if other == 1:
        return left
    if one is not None and other:
        return index(one // other)
    return arith.divui(left, right)


def apply(
    expr: ir.AffineExpr, ivs: Sequence[ir.Value], symbols: Sequence[ir.Value] = ()
) -> ir.Value:
    """An affine expression as index arithmetic on the loop variables."""
    if isinstance(expr, ir.AffineDimExpr):
        return ivs[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    return whole(applied(expr, ivs, symbols))


def applied(
    expr: ir.AffineExpr, ivs: Sequence[ir.Value], symbols: Sequence[ir.Value]
) -> Parts:
    """Its parts: numbers on the way become no operations."""
    if isinstance(expr, ir.AffineDimExpr):
        return parts(ivs[expr.position])
    if isinstance(expr, ir.AffineSymbolExpr):
        return parts(symbols[expr.position])
    if isinstance(expr, ir.AffineConstantExpr):
        return None, expr.value
    assert isinstance(expr, ir.AffineBinaryExpr), expr
    if isinstance(expr, ir.AffineAddExpr):
        return added(applied(expr.lhs, ivs, symbols), applied(expr.rhs, ivs, symbols))
    if isinstance(expr, ir.AffineMulExpr) and isinstance(
        expr.rhs, ir.AffineConstantExpr
    ):
        return times(applied(expr.lhs, ivs, symbols), expr.rhs.value)
    left, right = (apply(e, ivs, symbols) for e in (expr.lhs, expr.rhs))
    if isinstance(expr, ir.AffineMulExpr):
        return parts(multiply(left, right))
    if isinstance(expr, ir.AffineFloorDivExpr):
        return arith.floordivsi(left, right), 0
    if isinstance(expr, ir.AffineCeilDivExpr):
        return arith.ceildivsi(left, right), 0
    assert isinstance(expr, ir.AffineModExpr), expr
    return arith.remsi(left, right), 0


def as_index(number: int | ir.Value) -> ir.Value:
    """A number as a value."""
    return index(number) if isinstance(number, int) else number


def function_around(op: ir.OpView) -> ir.Operation:
    """The function that an operation is in."""
    function = op.operation
    while function.name != "func.func":
        assert function.parent is not None
        function = function.parent.operation
    return function
