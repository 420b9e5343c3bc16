"""A graph of torch's operators as ONNX nodes, one node after the other."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable
from functools import partial, reduce
from typing import Any

import onnx_ir as ir
import torch
from torch import fx
from torch._ops import HigherOrderOperator

from nanoloom.errors import Error, Unsupported
from nanoloom.frontend.torch import complex_numbers, control_flow
from nanoloom.frontend.torch.call import LEFT, Call, fake_of, is_assertion, name_of
from nanoloom.frontend.torch.decomposed import decomposed, is_random
from nanoloom.frontend.torch.element_types import element_type, numpy_view
from nanoloom.frontend.torch.movement import getitem
from nanoloom.frontend.torch.operators import operator_for
from nanoloom.frontend.torch.pair import Pair
from nanoloom.frontend.torch.sizes import Sizes
from nanoloom.frontend.torch.torchlib import from_torchlib
from nanoloom.frontend.torch.writer import INT64, Writer

BOOL, DOUBLE = ir.DataType.BOOL, ir.DataType.DOUBLE
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
ARITHMETIC = {
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul",
    torch.sym_max: "Max", torch.sym_min: "Min", operator.mod: "Mod",
    operator.neg: "Neg",
}  # fmt: skip
FLOATS = {  # as Python has them, of 64 bits
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.neg: "Neg",
    operator.truediv: "Div", operator.pow: "Pow",
}  # fmt: skip
# A cast leaves out what is behind the point, as Python's trunc does.
ROUNDED = {math.floor: "Floor", math.ceil: "Ceil", math.trunc: ""}
COMPARISONS = {
    operator.gt: "Greater", operator.ge: "GreaterOrEqual", operator.lt: "Less",
    operator.le: "LessOrEqual", operator.eq: "Equal", operator.ne: "Equal",
}  # fmt: skip
SELF = re.compile(r"^L\['\w+'\]\.?")  # in front of a path, in graphs of Dynamo


class GraphImporter:
    """Values of the nodes of a graph, in an ONNX graph that grows."""

    def __init__(self, writer: Writer, sizes: Sizes) -> None:
        self.writer, self.sizes = writer, sizes
        self.values: dict[fx.Node, Any] = {}
        self.changed: Collection[fx.Node] = ()  # inputs that the graph writes to
        self.inside: list[Any] = []  # operators that are being decomposed

    def constant(self, tensor: torch.Tensor) -> ir.Value | Pair:
        """A small tensor that a decomposition makes of numbers."""
        known = getattr(tensor, "constant", None)
        known = tensor if known is None else known
        if known.is_complex():
            parts = map(self.constant, (known.real, known.imag))
            return Pair(*parts)  # type: ignore[arg-type] - of real ones
        dtype = element_type(known.dtype, "")
        return self.writer.constant(numpy_view(known, "constant"), dtype)

    def run(self, nodes: Iterable[fx.Node], weights: Callable[[fx.Node], Any]) -> None:
        """Import all calls.  weights: of a get_attr node.

        Raises Unsupported for the first operator that no one knows.
        """
        for node in nodes:
            if node.op == "get_attr":
                if node.users and any(True for _ in node.users):
                    self.values[node] = weights(node)
            elif node.op == "call_function":
                self.call(node)

    def call(self, node: fx.Node) -> None:
        self.writer.place = place_of(node)
        try:
            self.values[node] = self.value(node)
        except Error as error:
            at = where(node)
            raise Unsupported(error.reason, where=at, hint=error.hint) from None

    def value(self, node: fx.Node) -> Any:
        """By the first that knows: a size, ours, torch's registry, a decomposition."""
        made = Call(node, self.writer, self.sizes, self.values, self.changed)
        target: Any = node.target
        if target is operator.getitem:
            return getitem(made)
        if complex_numbers.has_complex(made) and not isinstance(made.out, SYMBOLIC):
            return complex_numbers.value(made, self)
        for given in node.all_input_nodes:
            value = given.meta.get("val")
            if isinstance(value, torch.Tensor) and not isinstance(made.out, SYMBOLIC):
                element_type(value.dtype, "")
        if isinstance(target, type) and issubclass(target, tuple):  # of its results
            return tuple(self.values[x] if isinstance(x, fx.Node) else x
                         for x in node.args)  # fmt: skip
        if is_asserted(node) or tells_nobody(node):
            return None
        if isinstance(made.out, SYMBOLIC) or is_number(node):
            return self._number(made)
        if isinstance(target, HigherOrderOperator):
            if (inside := control_flow.OPERATORS.get(name_of(target))) is None:
                raise made.refuse(f"{target} is not known", LEFT)
            return inside(made, self)
        return self._by_operator(made)

    def _by_operator(self, call: Call) -> Any:
        """What is refused here is not asked of onnxscript, which would leave it out.

        Nor are random numbers: what it writes of them are the same at each call.
        """
        target: Any = call.node.target
        own, refusals = operator_for(target), list[Error]()
        if own is not None:
            try:
                return own(call)
            except Unsupported as error:
                refusals.append(error)
        alone = own is not None or is_random(target)
        for way in (decomposed,) if alone else (decomposed, from_torchlib):
            try:
                found = way(call, self)
            except Unsupported as error:
                refusals.append(error)
                continue
            if found is not None:
                return typed(call, found)
        if refusals:
            raise refusals[0]
        told = "draws numbers at random" if is_random(target) else "is not known"
        raise call.refuse(f"{target} {told}", LEFT)

    def _number(self, call: Call) -> Any:
        """A size of dimensions, or a number computed of data."""
        out = call.out
        if isinstance(out, int | float | bool):
            return out
        if isinstance(out, SYMBOLIC) and self.sizes.knows(out):
            return self.sizes.number(out)
        if name_of(call.node.target) in ("item", "_local_scalar_dense"):
            value = self.writer.scalar(call.value("self"))
        elif isinstance(out, torch.SymBool):
            value = self._condition(call)
        else:
            value = self._of_data(call)
        if isinstance(out, torch.SymInt):
            self.sizes.set(out, value)
        return value

    def _of_data(self, call: Call) -> ir.Value:
        out, target, w = call.out, call.node.target, self.writer
        if name_of(target) == "sym_size":
            source, axis = call.node.args
            x = self.values[source]
            x = x.re if isinstance(x, Pair) else x
            axis = int(axis) + fake_of(source).dim() if int(axis) < 0 else int(axis)
            return w.scalar(w.typed(INT64, "Shape", x, start=axis, end=axis + 1))
        if target is torch.sym_float:
            return call.of(call.node.args[0], DOUBLE)
        if isinstance(out, torch.SymFloat) and target in FLOATS:
            return w(FLOATS[target], *(call.of(x, DOUBLE) for x in call.node.args))
        if isinstance(out, torch.SymInt) and target in ARITHMETIC:
            return w(ARITHMETIC[target], *map(self._operand, call.node.args))
        if target is torch.sym_sum:
            first, *rest = map(self._operand, call.node.args[0])
            return reduce(partial(w, "Add"), rest, first)
        if target is torch.sym_ite:
            decides, *either = call.node.args
            return w("Where", self.values[decides], *map(self._operand, either))
        if isinstance(out, torch.SymInt) and target is operator.floordiv:
            size, by = map(self._operand, call.node.args)
            return self.sizes.divided(size, by, nonnegative=False)
        if isinstance(out, torch.SymInt) and target in ROUNDED:
            real = call.of(call.node.args[0], DOUBLE)
            way = ROUNDED[target]
            return w.cast(w(way, real) if way else real, INT64)
        raise call.refuse("computes a number that is not known")

    def _condition(self, call: Call) -> ir.Value:
        """How numbers that data decide compare; as Python does, with 64 bits."""
        target: Any = call.node.target
        given, w = call.node.args, self.writer
        if target is torch.sym_not:
            return w("Not", call.of(given[0], BOOL))
        if target not in COMPARISONS:
            raise call.refuse("computes a number that is not known")
        is_real = any(isinstance(fake_of(x), float | torch.SymFloat) for x in given)
        each = [call.of(x, DOUBLE if is_real else INT64) for x in given]
        found = w(COMPARISONS[target], *each)
        return w("Not", found) if target is operator.ne else found

    def _operand(self, argument: Any) -> ir.Value:
        value = self.values[argument] if isinstance(argument, fx.Node) else argument
        return self.sizes.operand(value)


def typed(call: Call, found: Any) -> Any:
    """The values of one who does not say their types, with the types torch found."""
    single = isinstance(found, ir.Value)
    if call.out is None:
        raise call.refuse("gives what is no tensor")
    if single and not isinstance(call.out, torch.Tensor):
        raise call.refuse("gives several values, of which onnxscript writes one")
    outs: list[Any] = [call.out] if single else list(call.out)
    made: list[Any] = [found] if single else list(found)
    for value, out in zip(made, outs, strict=False):
        if isinstance(value, ir.Value) and isinstance(out, torch.Tensor):
            value.dtype = element_type(out.dtype, call.node.name)
    return made[0] if single else tuple(made)


def is_asserted(node: fx.Node) -> bool:
    """Whether a node says that a condition holds, or computes one for such alone."""
    if is_assertion(node.target):
        return True
    is_condition = isinstance(node.meta.get("val"), torch.SymBool)
    return is_condition and all(map(is_asserted, node.users))


def tells_nobody(node: fx.Node) -> bool:
    """Whether a result that is no tensor, as an element type, is used by nothing."""
    schema = getattr(node.target, "_schema", None)
    gives = schema is not None and len(schema.returns) > 0
    return gives and not node.users and node.meta.get("val") is None


def is_number(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), int | float | bool)


def place_of(node: fx.Node) -> str:
    """Where a node is: encoder.layer.0.attention/linear_3."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next((p for p, _ in reversed(stack.values()) if p), "") if stack else ""
    inside = SELF.sub("", path) if isinstance(path, str) else ""
    if inside.startswith("_"):  # torch's word for a node of no module
        inside = ""
    return f"{inside}/{node.name}" if inside else node.name


def source_line(node: fx.Node) -> str:
    """The line of the user's program that a node comes from; "" if torch kept none."""
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    files = [line.strip() for line in lines if line.strip().startswith("File ")]
    if not files:
        return ""
    words = files[-1].replace('"', "").split(", ")
    return f"{words[0].removeprefix('File ')}:{words[1].removeprefix('line ')}"


def where(node: fx.Node) -> str:
    line = source_line(node)
    at = f" at {line}" if line else ""
    return f"node {place_of(node)} ({node.target}){at}"
