"""What torch.export took for granted of open sizes, asked again at a call.

A branch of the module on a size, a number made of one: the exported graph is right only
where the same is true as was of the example.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from sympy import Eq, Integer, Ne, Symbol, false, solve
from torch.export import ExportedProgram
from torch.utils._sympy.functions import Max

from nanoloom.errors import InputError

# Asked of strides, or whether an axis is repeated: results are the same either way.
LAYOUT = re.compile(
    r"_prims_common/\S* in (?!infer_size)|in _reshape_view_helper_core_alg"
)
OPERATOR = re.compile(r"_ops\.py:\d+ in __call__|in _broadcast_shapes")
SMALL_CDIST = 25  # rows up to which torch does not take a product of matrices


class SizeGuards:
    """Conditions on the sizes of arguments under which an exported graph is right."""

    def __init__(self, exported: ExportedProgram) -> None:
        nodes = {n.name: n for n in exported.graph.nodes}
        self.axes: dict[Any, tuple[int, int, Any]] = {}
        self.env: Any = None
        self.has_cdist = any("cdist" in str(n.target) for n in nodes.values())
        for place, name in enumerate(exported.graph_signature.user_inputs):
            fake = nodes[name].meta.get("val") if name in nodes else None
            if isinstance(fake, torch.Tensor):
                self.declare(place, fake)
        self.names = {
            s: Symbol(f"{exported.graph_signature.user_inputs[place]}.shape[{axis}]")
            for s, (place, axis, _) in self.axes.items()
        }
        self.ranges = {s: exported.range_constraints.get(s) for s in self.axes}
        self.read = loaded_guards(exported, self.env)
        self.known: set[tuple[int, ...]] = set()

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
            if expr.is_Symbol or symbol not in self.axes:
                self.axes[symbol] = place, axis, expr

    def conditions(self) -> list[Any]:
        """Those by now: rules of torch that an import traces add some."""
        guards = self.env.guards if self.env is not None else []
        known = self.axes.keys()
        asked = [g for g in guards if g.expr.free_symbols <= known]
        alone = [g.expr.free_symbols for g in asked if len(g.expr.free_symbols) == 1]
        refined = set[Any]().union(*alone)  # its range says that, too
        wanted = [g.expr for g in asked if not self.is_of_layout(g)]
        for symbol, range_ in self.ranges.items():
            if range_ is not None and symbol not in refined:
                if range_.lower > 2:  # torch takes 0 and 1 for others from 2 on, too
                    wanted.append(symbol >= range_.lower)
                if range_.upper.is_Integer:
                    wanted.append(symbol <= range_.upper)
        return wanted

    def is_of_layout(self, guard: Any) -> bool:
        asked, expr = str(guard.sloc), guard.expr
        if LAYOUT.search(asked):
            return True
        if not OPERATOR.search(asked):
            return False
        if self.has_cdist and SMALL_CDIST in expr.args:
            return True
        if isinstance(expr, Eq):
            return False
        one_or_none = isinstance(expr, Ne) and expr.args[1] in (0, 1)
        return one_or_none or bool(expr.has(Max)) or {1, 2} & set(expr.args) != set()

    def require(self, leaves: list[Any]) -> None:
        """Raise InputError where a condition does not hold for these arguments."""
        if self.env is None:
            return
        found: list[tuple[Any, int, Any]] = []
        for symbol, (place, axis, expr) in self.axes.items():
            given = leaves[place]
            if not isinstance(given, torch.Tensor) or axis >= given.dim():
                return  # what else is asked of arguments says so
            found.append((symbol, given.shape[axis], expr))
        sizes = tuple([size for _, size, _ in found])
        if sizes in self.known:
            return
        if self.read is not None:
            self.require_read(leaves)
        values = {s: number_of(s, size, expr) for s, size, expr in found}
        for condition in self.conditions():
            if condition.xreplace(values) is false:
                raise other_sizes(str(condition.xreplace(self.names)))
        self.known.add(sizes)

    def require_read(self, leaves: list[Any]) -> None:
        try:
            self.read(*leaves)
        except AssertionError as error:
            raise other_sizes(str(error).removeprefix("Guard failed: ")) from None


def loaded_guards(exported: ExportedProgram, env: Any) -> Any:
    """What asks the conditions of a program that comes from a file; or None."""
    code = getattr(exported, "_guards_code", None)
    if env is None or env.guards or not code:
        return None
    return getattr(exported.module(), "_guards_fn", None)


def other_sizes(condition: str) -> InputError:
    return InputError(
        f"have sizes for which {condition} is not so: torch.export took it for"
        " granted, as it was of the example",
        where="arguments of the module",
        hint="write the module without it, or export it for these sizes",
    )


def number_of(symbol: Any, size: int, expr: Any) -> Any:
    if expr.is_Symbol:
        return Integer(size)
    found = solve(expr - size, symbol)
    return found[0] if found else symbol
