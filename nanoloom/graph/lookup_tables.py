"""Functions of one 8-bit number between two quantizations are tables of 256 numbers.

    Quantize(f(Dequantize(q)))  ->  nanoloom.integer.Table(q)

f: elementwise operations on q and on numbers, also such with quantizations in between:
x * sigmoid(x), HardSwish, Gelu ...  ONNX's reference computes the table, with all of
its roundings.  Attribute table: the result for the bits 0 to 255 of q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.evaluate import reference
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.operator_families import ELEMENTWISE
from nanoloom.graph.quantization import BYTES, DOMAIN, quantizes_alike
from nanoloom.graph.types import is_static, shape_of

NAME = "Table"
MOST = 32  # operations of a function
BITS = np.arange(256, dtype=np.uint8)


@dataclass(frozen=True)
class Function:
    """An 8-bit value as a function of another one: its results by the bits of that."""

    base: ir.Value
    results: np.ndarray


def make_tables(graph: ir.Graph, opsets: Mapping[str, int]) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Tables(graph, dict(opsets))
    for node in graph:
        if node.op_type == "QuantizeLinear" and quantizes_alike(node):
            rewriting.visit(node)


def is_table(node: ir.Node | None) -> bool:
    """Whether a node looks its results up: it is elementwise."""
    return node is not None and node.domain == DOMAIN and node.op_type == NAME


@dataclass
class Tables(GraphEditor):
    """The graph being rewritten; known: what its 8-bit values are functions of."""

    opsets: dict[str, int]
    known: dict[ir.Value, Function] = field(default_factory=dict)

    def visit(self, node: ir.Node) -> None:
        """Put a table in the place of a Quantize that gives a function of one value."""
        out = node.outputs[0]
        if out.dtype not in BYTES or not is_static(out):
            return
        steps = steps_behind(node, shape_of(out))
        leaves = {s.inputs[0] for s in steps if s.op_type == "DequantizeLinear"}
        functions = [self.function(leaf) for leaf in leaves if leaf is not None]
        bases = {function.base for function in functions}
        if len(bases) != 1:
            return
        found = self.results(steps, dict(zip(leaves, functions, strict=True)))
        if found is None:
            return
        (base,) = bases
        table = [ir.AttrInt64s("table", [int(x) for x in found])]
        name = node.name or node.op_type
        made = self.add(node, NAME, [base], table, shape_of(out), out, name, DOMAIN)
        self.replace(node, made)
        self.known[made] = Function(base, found)

    def function(self, value: ir.Value) -> Function:
        """What a value is a function of: itself, if it is not known better."""
        assert value.dtype is not None
        return self.known.get(value, Function(value, BITS.view(value.dtype.numpy())))

    def results(
        self, steps: Sequence[ir.Node], given: Mapping[ir.Value | None, Function]
    ) -> np.ndarray | None:
        """What the last step gives for all numbers, None if the reference fails."""
        arrays = {value: function.results for value, function in given.items()}
        return computed(steps, self.opsets, arrays, BITS.shape)


def computed(
    steps: Sequence[ir.Node],
    opsets: dict[str, int],
    given: Mapping[ir.Value | None, np.ndarray],
    shape: tuple[int, ...],
) -> np.ndarray | None:
    """What ONNX's reference makes of some arrays of this shape, one step after another.

    None if it fails, or gives another shape or type.
    """
    arrays = dict(given)
    for step in steps:
        made = reference(step, opsets, [arrays_of(v, arrays) for v in step.inputs])
        if made is None or made.shape != shape:
            return None
        arrays[step.outputs[0]] = made
    last = steps[-1].outputs[0]
    wanted = None if last.dtype is None else last.dtype.numpy()
    return arrays[last] if arrays[last].dtype == wanted else None


def arrays_of(
    value: ir.Value | None, arrays: Mapping[ir.Value | None, np.ndarray]
) -> np.ndarray | None:
    """A step's input: 256 numbers, or the one that a constant holds."""
    if value is None:
        return None
    if value in arrays:
        return arrays[value]
    assert value.const_value is not None
    return value.const_value.numpy().reshape(())


def steps_behind(node: ir.Node, shape: Sequence[int]) -> list[ir.Node]:
    """The operations from Dequantize to this Quantize, in order, [] with others.

    All but constants of one element have this shape.
    """
    found: dict[ir.Node, None] = {}

    def is_taken(step: ir.Node | None) -> bool:
        if step is None or len(found) > MOST:
            return False
        if step in found:
            return True
        if not is_step(step) or list(shape_of(step.outputs[0])) != list(shape):
            return False
        for number, value in enumerate(step.inputs):
            if value is None or is_number(value):
                continue
            is_leaf = step.op_type == "DequantizeLinear" and number == 0
            if is_leaf and value.dtype in BYTES and value.const_value is None:
                continue
            if is_leaf or not is_taken(value.producer()):
                return False
        found[step] = None
        return True

    return list(found) if is_taken(node) else []


def is_step(node: ir.Node) -> bool:
    """Whether a node works on one element of each input."""
    if len(node.outputs) != 1 or not is_static(node.outputs[0]):
        return False
    return quantizes_alike(node) or is_tensor_op(node, ELEMENTWISE)


def is_number(value: ir.Value) -> bool:
    """Whether a value is a constant of one element."""
    if value.const_value is None or not is_static(value):
        return False
    return int(np.prod(shape_of(value), dtype=np.int64)) == 1
