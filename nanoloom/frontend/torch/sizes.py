"""Symbolic sizes: an expression of dimensions becomes operators on shapes.

No number that torch has seen while tracing is used: a symbol is the size of an axis of
an input, read when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import onnx_ir as ir
import torch
from torch.utils._sympy import functions

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.writer import INT64, Writer

# sympy's types say little of what its functions give.
Expr = Symbol = Any
F, S = functions, import_module("sympy")


class Sizes:
    """The symbols of a graph, and what each is computed of."""

    def __init__(self, writer: Writer, names: dict[str, str]) -> None:
        """names: of symbols, where the user has given any."""
        self.writer, self.names = writer, names
        self._axes: dict[Symbol, tuple[ir.Value, int, Expr]] = {}
        self._made: dict[Expr, ir.Value] = {}

    # ---- inputs

    def dims(self, shape: Sequence[int | torch.SymInt]) -> list[int | str]:
        """A shape as an input declares it: numbers, names, expressions of names."""
        return [d if isinstance(d, int) else self.text(expression(d)) for d in shape]

    def text(self, expr: Expr) -> int | str:
        if expr.is_Integer:
            return int(expr)
        named = {
            s: S.Symbol(self.names.get(s.name, s.name), integer=True)
            for s in expr.free_symbols
        }
        return str(expr.xreplace(named))

    def declare(self, value: ir.Value, shape: Sequence[int | torch.SymInt]) -> None:
        """Note the symbols that are found in the shape of an input."""
        for axis, dim in enumerate(shape):
            if isinstance(dim, int):
                continue
            expr = expression(dim)
            if expr.is_Symbol:
                known = self._axes.get(expr)
                if known is None or not known[2].is_Symbol:
                    self._axes[expr] = (value, axis, expr)
            elif len(expr.free_symbols) == 1:
                self._axes.setdefault(
                    next(iter(expr.free_symbols)), (value, axis, expr)
                )

    def knows(self, size: torch.SymInt | torch.SymFloat | torch.SymBool) -> bool:
        """Whether all symbols of a size are found in shapes of inputs."""
        return all(s in self._axes for s in expression(size).free_symbols)

    def set(self, size: torch.SymInt, value: ir.Value) -> None:
        """A size that is a value of its own: an input, or computed of data."""
        self._made.setdefault(expression(size), value)

    def computed(self) -> dict[Expr, ir.Value]:
        """The sizes that are values by now."""
        return dict(self._made)

    def forget(self, but: dict[Expr, ir.Value]) -> None:
        """All that was computed since `computed` gave these."""
        self._made = but

    # ---- values

    def of(self, size: int | torch.SymInt, where: str = "") -> int | ir.Value:
        """A number, or a 0-d int64 value.  Raises KeyError for a symbol of data."""
        if isinstance(size, int):
            return int(size)
        return self._value(expression(size))

    def all(self, shape: Sequence[int | torch.SymInt]) -> list[int | ir.Value]:
        return [self.of(d) for d in shape]

    def _value(self, expr: Expr) -> int | ir.Value:
        if expr.is_Integer:
            return int(expr)
        if expr not in self._made:
            self._made[expr] = self._written(expr)
        return self._made[expr]

    def _written(self, expr: Expr) -> ir.Value:
        if expr.is_Symbol:
            return self._symbol(expr)
        if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
            return self._chain("Mul", [expr.base] * int(expr.exp))
        for kinds, op in CHAINS:
            if isinstance(expr, kinds):
                return self._chain(op, expr.args)
        if isinstance(expr, DIVISIONS):
            size, by = map(self._value, expr.args[:2])
            return self.divided(size, by, nonnegative(expr))
        if isinstance(expr, REMAINDERS):
            return self.writer("Mod", *map(self._operand, expr.args[:2]))
        if isinstance(expr, F.CeilToInt) and isinstance(expr.args[0], F.IntTrueDiv):
            size, by = expr.args[0].args
            return self._operand(F.FloorDiv(size + by - 1, by))
        if type(expr) in ROUNDED:
            made = self.writer(ROUNDED[type(expr)], self.real(expr.args[0]))
            return self.writer.cast(made, INT64)
        raise unknown(expr)

    def real(self, expr: Expr) -> ir.Value:
        """A number of sizes that is no whole one, as Python has it: 0-d, of float64."""
        w = self.writer
        if expr.is_number:
            return w.constant(float(expr), DOUBLE)
        if isinstance(expr, F.ToFloat) or expr.is_integer:
            whole = expr.args[0] if isinstance(expr, F.ToFloat) else expr
            return w.cast(self._operand(whole), DOUBLE)
        op = next((op for kinds, op in REAL if isinstance(expr, kinds)), None)
        if op is None:
            raise unknown(expr)
        made, *rest = map(self.real, expr.args)
        for term in rest:
            made = w(op, made, term)
        return made

    def number(
        self, asked: torch.SymInt | torch.SymFloat | torch.SymBool
    ) -> int | ir.Value:
        """What is computed of sizes, or how they compare: a number, or 0-d."""
        if isinstance(asked, torch.SymFloat):
            return self.real(expression(asked))
        if isinstance(asked, torch.SymBool):
            return self._condition(expression(asked))
        return self.of(asked)

    def _condition(self, expr: Expr) -> ir.Value:
        w = self.writer
        if expr in (S.true, S.false):
            return w.constant(bool(expr), BOOL)
        if isinstance(expr, S.Ne):
            return w("Not", self._condition(S.Eq(*expr.args, evaluate=False)))
        for kind, op in COMPARED:
            if isinstance(expr, kind):
                whole = all(side.is_integer for side in expr.args)
                return w(op, *map(self._operand if whole else self.real, expr.args))
        for kind, op in JOINED:
            if isinstance(expr, kind):
                made, *rest = map(self._condition, expr.args)
                for term in rest:
                    made = w(op, made, term)
                return w("Not", made) if kind is S.Not else made
        raise unknown(expr)

    def _operand(self, expr: Expr) -> ir.Value:
        return self.operand(self._value(expr))

    def operand(self, size: int | ir.Value) -> ir.Value:
        return self.writer.constant(size) if isinstance(size, int) else size

    def _chain(self, op: str, terms: Sequence[Expr]) -> ir.Value:
        # Numbers come first in sympy, which makes a sum as a reader would.
        made = self._operand(terms[0])
        for term in terms[1:]:
            made = self.writer(op, made, self._operand(term))
        return made

    def divided(
        self, size: int | ir.Value, by: int | ir.Value, nonnegative: bool
    ) -> ir.Value:
        """The quotient, rounded down; ONNX's own is rounded to zero."""
        w, a, b = self.writer, self.operand(size), self.operand(by)
        quotient = w("Div", a, b)
        if nonnegative:
            return quotient
        rest = w("Mod", a, b)  # has the sign of b
        return w("Div", w("Sub", a, rest), b)

    def _symbol(self, symbol: Symbol) -> ir.Value:
        value, axis, expr = self._axes[symbol]
        w = self.writer
        shape = w.typed(INT64, "Shape", value, start=axis, end=axis + 1)
        found = w.scalar(shape)
        if expr.is_Symbol:
            return found
        # The axis is a * symbol + b.
        a = expr.coeff(symbol)
        b = S.expand(expr - a * symbol)
        if not (a.is_Integer and b.is_Integer):
            raise Unsupported(
                f"has an input of {expr} elements along an axis, and none of {symbol}",
                where="module",
                hint="give it another input, or a fixed size there",
            )
        if b:
            found = w("Sub", found, w.constant(int(b)))
        return w("Div", found, w.constant(int(a))) if a != 1 else found


def expression(size: torch.SymInt | torch.SymFloat | torch.SymBool) -> Expr:
    """What torch knows of a size; equal sizes have equal ones."""
    return S.expand(size.node.expr)


def unknown(expr: Expr) -> Unsupported:
    return Unsupported(
        f"has a size that is no sum, product or quotient: {expr}",
        where="module",
        hint='compile it with dynamic=False, or via="onnx"',
    )


def nonnegative(expr: Expr) -> bool:
    return bool(expr.args[0].is_nonnegative) and bool(expr.args[1].is_positive)


CHAINS = (
    (S.Add, "Add"),
    (S.Mul, "Mul"),
    ((S.Max, F.Max), "Max"),
    ((S.Min, F.Min), "Min"),
)
DIVISIONS = (F.FloorDiv, F.CleanDiv)
REMAINDERS = (F.Mod, F.PythonMod)
BOOL, DOUBLE = ir.DataType.BOOL, ir.DataType.DOUBLE
COMPARED = (
    (S.Eq, "Equal"), (S.StrictLessThan, "Less"), (S.LessThan, "LessOrEqual"),
    (S.StrictGreaterThan, "Greater"), (S.GreaterThan, "GreaterOrEqual"),
)  # fmt: skip
JOINED = ((S.And, "And"), (S.Or, "Or"), (S.Not, "Not"))
REAL = (
    (S.Add, "Add"), (S.Mul, "Mul"), ((F.FloatTrueDiv, F.IntTrueDiv), "Div"),
    ((F.FloatPow, S.Pow), "Pow"),
)  # fmt: skip
ROUNDED = {F.FloorToInt: "Floor", F.CeilToInt: "Ceil", F.TruncToInt: "Floor"}
