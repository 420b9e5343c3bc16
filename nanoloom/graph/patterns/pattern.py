"""Trees of operators, written as equations write them.

    Pattern("Mul(x, c)", c=is_constant)
    Pattern("(AveragePool | GlobalAveragePool)(made := Conv(x, w, ...))")

Small letters are values, `...` any further inputs, and `:=` names what a node makes.
What stands inside of others is read by nobody else.  Guards ask a value something.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir as ir

from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import is_static

COMMUTATIVE = frozenset({"Add", "And", "Max", "Min", "Mul", "Or"})
Found = dict[str, ir.Value]


def is_constant(value: ir.Value) -> bool:
    return value.const_value is not None


def is_read_once(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


class Pattern:
    """A tree of operators, and what its values must be."""

    def __init__(self, text: str, **guards: Callable[[ir.Value], bool]) -> None:
        self.tree = ast.parse(text, mode="eval").body
        self.guards: Mapping[str, Callable[[ir.Value], bool]] = guards

    def match(self, node: ir.Node) -> Iterator[Found]:
        """The values of the tree whose root a node is, in every way."""
        return self.of_node(self.tree, node, {})

    def made(self, value: ir.Value | None) -> Iterator[Found]:
        """The same of the node that makes a value, for one reader."""
        return iter(()) if value is None else self.inner(self.tree, value, {})

    def of_node(self, tree: ast.expr, node: ir.Node, found: Found) -> Iterator[Found]:
        assert isinstance(tree, ast.Call), "the root of a pattern is an operator"
        if not is_tensor_op(node, names_of(tree.func)) or len(node.outputs) != 1:
            return
        if all(x is None or is_static(x) for x in (*node.inputs, *node.outputs)):
            two = len(tree.args) == 2 and not isinstance(tree.args[1], ast.Constant)
            swaps = two and node.op_type in COMMUTATIVE
            for args in (tree.args, tree.args[::-1])[: 1 + swaps]:
                yield from self.of_inputs(args, list(node.inputs), found)

    def of_inputs(
        self, trees: Sequence[ast.expr], values: Sequence[ir.Value | None], found: Found
    ) -> Iterator[Found]:
        if not trees:
            if not values:
                yield found
            return
        first, *rest = trees
        if isinstance(first, ast.Constant):  # ...
            yield found
        elif values and values[0] is not None:
            for each in self.of_value(first, values[0], found):
                yield from self.of_inputs(rest, values[1:], each)

    def of_value(
        self, tree: ast.expr, value: ir.Value, found: Found
    ) -> Iterator[Found]:
        if isinstance(tree, ast.Name):
            if found.get(tree.id, value) is value and self.holds(tree.id, value):
                yield {**found, tree.id: value}
        else:
            yield from self.inner(tree, value, found)

    def inner(self, tree: ast.expr, value: ir.Value, found: Found) -> Iterator[Found]:
        """What a node makes of the rest of the tree, for one reader."""
        if isinstance(tree, ast.NamedExpr):
            if self.holds(tree.target.id, value):
                yield from self.inner(
                    tree.value, value, {**found, tree.target.id: value}
                )
            return
        node = value.producer()
        if node is not None and is_read_once(value):
            yield from self.of_node(tree, node, found)

    def holds(self, name: str, value: ir.Value) -> bool:
        return name not in self.guards or self.guards[name](value)


def names_of(operators: ast.expr) -> set[str]:
    """Those of one operator, or of several with `|` between."""
    return {x.id for x in ast.walk(operators) if isinstance(x, ast.Name)}
