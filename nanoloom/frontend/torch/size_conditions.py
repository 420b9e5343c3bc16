"""What torch.export took for granted of open sizes, as conditions of the model.

A branch of the module on a size, a number made of one: the exported graph is right only
where the same is true as was of the example.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from sympy import Eq, Ne, Symbol, solve, true
from torch.export import ExportedProgram
from torch.utils._sympy.functions import Max
from torch.utils._sympy.printers import PythonPrinter

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.imported import Imported
from nanoloom.interface.size_conditions import (
    KEY,
    Axis,
    NotKnown,
    SizeConditions,
    parse,
    value,
)

# Asked of strides, or whether an axis is repeated: results are the same either way.
LAYOUT = re.compile(
    r"_prims_common/\S* in (?!infer_size)|in _reshape_view_helper_core_alg"
)
COMPOSITE = re.compile(r"_ops\.py:\d+ in decompose")
OPERATOR = re.compile(r"_ops\.py:\d+ in (__call__|decompose)|in _broadcast_shapes")
SMALL_CDIST = 25  # rows up to which torch does not take a product of matrices


def note_conditions(exported: ExportedProgram, imported: Imported) -> None:
    """Those of an exported program, in the metadata of the model made of it.

    By now: rules of torch that an import traces add some.
    """
    found = Granted(exported)
    conditions = found.conditions()
    asked = " ".join(text for text, _ in conditions)
    axes = {
        name: found.axis(symbol, imported)
        for symbol, name in found.names.items()
        if name in asked or not found.axes[symbol][-1].is_Symbol
    }
    if axes:
        text = SizeConditions(axes, conditions).written()
        imported.model.metadata_props[KEY] = text


class Granted:
    """Conditions on the sizes of arguments under which an exported graph is right."""

    def __init__(self, exported: ExportedProgram) -> None:
        nodes = {n.name: n for n in exported.graph.nodes}
        self.axes: dict[Any, tuple[int, int, Any]] = {}
        self.env: Any = None
        self.has_cdist = any("cdist" in str(n.target) for n in nodes.values())
        self.arguments = exported.graph_signature.user_inputs
        fakes = [
            nodes[n].meta.get("val") if n in nodes else None for n in self.arguments
        ]
        for place, fake in enumerate(fakes):
            if isinstance(fake, torch.Tensor):
                self.declare(place, fake)
        self.names = {s: f"size{i}" for i, s in enumerate(self.axes)}
        self.ranges = {s: exported.range_constraints.get(s) for s in self.axes}
        code = getattr(exported, "_guards_code", None)
        self.is_read = bool(code) and self.env is not None and not self.env.guards
        if self.is_read:
            ask_again(exported, fakes)

    def declare(self, place: int, fake: torch.Tensor) -> None:
        for axis, size in enumerate(fake.shape):
            if isinstance(size, torch.SymInt):
                self.env = size.node.shape_env
                for expr in (size.node._expr, size.node.expr):  # as it was, as it is
                    self.note(place, axis, expr)

    def note(self, place: int, axis: int, expr: Any) -> None:
        """A symbol whose number the size of an axis says."""
        if len(expr.free_symbols) == 1:
            (symbol,) = expr.free_symbols
            linear = expr.is_Symbol or expr.diff(symbol).is_Integer
            if linear and (expr.is_Symbol or symbol not in self.axes):
                self.axes[symbol] = place, axis, expr

    def axis(self, symbol: Any, imported: Imported) -> Axis:
        """The axis of the model's input that says a symbol's number."""
        place, axis, expr = self.axes[symbol]
        (name,) = [n for n, given in imported.inputs.items() if given == place]
        order = imported.orders.get(name)
        lies = order.index(axis) if order else axis
        return name, lies, int(expr.diff(symbol)), int(expr.subs(symbol, 0))

    def conditions(self) -> list[tuple[str, str]]:
        """Each in Python, of `names`, and as a user reads it."""
        names = {s: Symbol(name, integer=True) for s, name in self.names.items()}
        axes = {
            s: (Symbol(f"{self.arguments[place]}.shape[{axis}]"), expr)
            for s, (place, axis, expr) in self.axes.items()
        }
        told = {
            s: axis if expr.is_Symbol else solve(expr - axis, s)[0]
            for s, (axis, expr) in axes.items()
        }
        made = {
            PythonPrinter().doprint(x.xreplace(names)): str(said)
            for x in self.expressions()
            if (said := x.xreplace(told)) is not true  # an axis of 2 * n is even
        }
        for text in made:
            require_known(text, dict.fromkeys(self.names.values(), 1))
        return [*made.items()]

    def expressions(self) -> list[Any]:
        guards = self.env.guards if self.env is not None else []
        known = self.axes.keys()
        asked = [g for g in guards if g.expr.free_symbols <= known]
        wanted = [g.expr for g in asked if not self.is_of_layout(g.sloc, g.expr)]
        for symbol, range_ in self.ranges.items():
            if range_ is None:
                continue
            assert self.env is not None  # a symbol is of one
            asked_by = self.env.var_to_range_sloc.get(symbol)
            least, most = symbol >= range_.lower, symbol <= range_.upper
            place = str(asked_by.lower) if asked_by else ""
            refined = LAYOUT.search(place) or OPERATOR.search(place)
            if range_.lower > 2 and not refined:  # torch takes 0 and 1 for others, too
                wanted.append(least)
            if range_.upper.is_Integer:
                wanted.append(most)
        return list(dict.fromkeys(wanted))

    def is_of_layout(self, place: Any, expr: Any) -> bool:
        """place: where torch asks."""
        asked = str(place)
        if LAYOUT.search(asked):
            return True
        if self.is_read and isinstance(expr, Ne):  # it has lost where torch asked
            return bool(expr.has(Max))
        if not OPERATOR.search(asked):
            return False
        if self.has_cdist and SMALL_CDIST in expr.args:
            return True
        if isinstance(expr, Eq):
            return False
        if isinstance(expr, Ne) and COMPOSITE.search(asked):
            return True  # what has to fit is equal
        one_or_none = isinstance(expr, Ne) and expr.args[1] in (0, 1)
        return one_or_none or bool(expr.has(Max)) or {1, 2} & set(expr.args) != set()


def ask_again(exported: ExportedProgram, fakes: list[Any]) -> None:
    """Let a program that comes from a file have the guards that it had."""
    guards = getattr(exported.module(), "_guards_fn", None)
    if guards is not None:
        guards(*fakes)


def require_known(text: str, names: dict[str, int]) -> None:
    try:
        value(parse(text), names)
    except ZeroDivisionError:
        return
    except NotKnown as error:
        raise Unsupported(
            f"is right only where {text}, which no call can ask", where="module"
        ) from error
