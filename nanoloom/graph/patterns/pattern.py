"""Trees of operators, written as equations write them.

    Pattern("Mul(x, c)", c=is_constant)
    Pattern("(AveragePool | GlobalAveragePool)(made := Conv(x, w, ...))")
    Pattern("MatMul(x, Reshape(y, ...) | y)")
    Pattern("_(..., made := Reshape(x, ...), ...)")

Small letters are values: the same letter is the same value.  `...` are any inputs, `_`
is any operator, `|` is one or the other, and `:=` names what a node makes.  What stands
inside of others is read by nobody else, unless it is `shared`.  Guards ask a value
something.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import is_static

COMMUTATIVE = frozenset({"Add", "And", "Max", "Min", "Mul", "Or"})
ANY = "_"  # operator
Found = dict[str, ir.Value]


def is_constant(value: ir.Value) -> bool:
    return value.const_value is not None


def is_read_once(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


@dataclass(frozen=True)
class Operator:
    """A node.  needed: operators of which one makes an input, for each that must be."""

    names: frozenset[str]
    inputs: tuple[Tree, ...]
    needed: tuple[frozenset[str], ...]

    def may_be(self, node: ir.Node) -> bool:
        """The cheap questions, which most nodes do not pass."""
        if ANY not in self.names and node.op_type not in self.names:
            return False
        if self.needed:
            makers = [x and x.producer() for x in node.inputs]
            made = {x.op_type for x in makers if x is not None}
            if any(made.isdisjoint(names) for names in self.needed):
                return False
        return is_tensor_op(node, {node.op_type})


@dataclass(frozen=True)
class Letter:
    """A value, and what makes it if that is said."""

    name: str
    made: Tree | None = None


@dataclass(frozen=True)
class Either:
    """One or the other."""

    ways: tuple[Tree, ...]


Tree = Operator | Letter | Either | None  # None: `...`


def tree_of(text: ast.expr, past: bool) -> Tree:
    match text:
        case ast.Name(name):
            return Letter(name)
        case ast.NamedExpr(ast.Name(name), value):
            return Letter(name, tree_of(value, past))
        case ast.BinOp(left, ast.BitOr(), right):
            return Either((tree_of(left, past), tree_of(right, past)))
        case ast.Call(operators, inputs):
            trees = tuple(tree_of(x, past) for x in inputs)
            needed = () if past else filter(None, map(makers_of, trees))
            return Operator(names_of(operators), trees, tuple(needed))
        case ast.Constant(value) if value is ...:
            return None
        case _:
            raise ValueError(f"{ast.unparse(text)} is no part of a pattern")


def makers_of(tree: Tree) -> frozenset[str]:
    """The operators of which one makes a value; none if any may."""
    match tree:
        case Letter(_, made):
            return makers_of(made)
        case Operator(names):
            return frozenset() if ANY in names else names
        case Either(ways):
            each = list(map(makers_of, ways))
            return frozenset().union(*each) if all(each) else frozenset()
        case None:
            return frozenset()


class Pattern:
    """A tree of operators, and what its values must be.

    shared: what stands inside may have other readers.  past: nodes that may stand
    between any two of the tree; a letter is the value in front of them.
    """

    def __init__(
        self,
        text: str,
        *,
        shared: bool = False,
        past: Callable[[ir.Node], bool] | None = None,
        **guards: Callable[[ir.Value], bool],
    ) -> None:
        tree = tree_of(ast.parse(text, mode="eval").body, past is not None)
        assert isinstance(tree, Operator), "the root of a pattern is an operator"
        self.tree, self.shared, self.past = tree, shared, past
        self.guards: Mapping[str, Callable[[ir.Value], bool]] = guards

    @property
    def roots(self) -> frozenset[str]:
        """The operators that a node may have which is the root."""
        return self.tree.names

    def match(self, node: ir.Node) -> Iterator[Found]:
        """The values of the tree whose root a node is, in every way."""
        return self.of_node(self.tree, node, {})

    def of_node(self, tree: Operator, node: ir.Node, found: Found) -> Iterator[Found]:
        if not tree.may_be(node):
            return
        if all(x is None or is_static(x) for x in (*node.inputs, *node.outputs)):
            two = len(tree.inputs) == 2 and tree.inputs[1] is not None
            swaps = two and node.op_type in COMMUTATIVE
            for inputs in (tree.inputs, tree.inputs[::-1])[: 1 + swaps]:
                yield from self.of_inputs(inputs, node.inputs, found)

    def of_inputs(
        self, trees: Sequence[Tree], values: Sequence[ir.Value | None], found: Found
    ) -> Iterator[Found]:
        if not trees:
            if not values:
                yield found
            return
        first, rest = trees[0], trees[1:]
        if first is None and not rest:
            yield found
        elif first is None:
            for skipped in range(len(values) + 1):
                yield from self.of_inputs(rest, values[skipped:], found)
        elif values and values[0] is not None:
            for each in self.of_value(first, values[0], found):
                yield from self.of_inputs(rest, values[1:], each)

    def of_value(self, tree: Tree, value: ir.Value, found: Found) -> Iterator[Found]:
        value = before(value, self.past) if self.past else value
        match tree:
            case Letter(name, made):
                guard = self.guards.get(name)
                if found.get(name, value) is not value or (guard and not guard(value)):
                    return
                named = {**found, name: value}
                yield from (
                    [named] if made is None else self.of_value(made, value, named)
                )
            case Either(ways):
                for way in ways:
                    yield from self.of_value(way, value, found)
            case Operator():
                node = value.producer()
                if node is None or len(node.outputs) != 1:
                    return
                if self.shared or is_read_once(value):
                    yield from self.of_node(tree, node, found)
            case None:
                raise AssertionError("`...` is no value")


def names_of(operators: ast.expr) -> frozenset[str]:
    """Those of one operator, or of several with `|` between."""
    return frozenset(x.id for x in ast.walk(operators) if isinstance(x, ast.Name))


def before(value: ir.Value, past: Callable[[ir.Node], bool]) -> ir.Value:
    """A value in front of nodes that only hand their first input on."""
    while (node := value.producer()) is not None and past(node):
        if node.inputs[0] is None:
            break
        value = node.inputs[0]
    return value
