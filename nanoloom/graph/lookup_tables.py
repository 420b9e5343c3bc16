"""Elementwise functions of 8-bit numbers between quantizations run on their integers.

    Quantize(f(Dequantize(q)))                  ->  nanoloom.integer.Table(q)
    Quantize(f(Dequantize(a) + Dequantize(b)))  ->  nanoloom.integer.Sum(a, b)

f: elementwise operations on q and on numbers, also such with quantizations in between:
x * sigmoid(x), HardSwish, Gelu ...; of a sum Relu or Clip.  ONNX's reference computes
the results of all numbers, with all of its roundings.  They are the table (attribute
table: for the bits 0 to 255 of q), or what a formula must give (integer_sums.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.evaluate import reference
from nanoloom.graph.integer_sums import Formula, formula_of
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.operator_families import ELEMENTWISE
from nanoloom.graph.quantization import (
    BITS,
    BYTES,
    DOMAIN,
    dequantized,
    quantized,
    quantizes_alike,
)
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin

TABLE, SUM = "Table", "Sum"
AROUND_SUM = {"Add", "Clip", "DequantizeLinear", "QuantizeLinear", "Relu"}
MOST = 32  # operations of a function


@dataclass(frozen=True)
class Function:
    """An 8-bit value as a function of another one: its results by the bits of that."""

    base: ir.Value
    results: np.ndarray


def compute_bytes(graph: ir.Graph, opsets: Mapping[str, int]) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = ByteFunctions(graph, dict(opsets))
    for node in graph:
        if node.op_type == "QuantizeLinear" and quantizes_alike(node):
            rewriting.visit(node)


def maps_bytes(node: ir.Node) -> bool:
    """Whether a node is a function of 8-bit numbers: it is elementwise."""
    return node.domain == DOMAIN and node.op_type in (TABLE, SUM)


@dataclass
class ByteFunctions(GraphEditor):
    """The graph being rewritten; known: what its 8-bit values are functions of."""

    opsets: dict[str, int]
    known: dict[ir.Value, Function] = field(default_factory=dict)

    def visit(self, node: ir.Node) -> None:
        """Put a function in the place of a Quantize that gives its results."""
        out = node.outputs[0]
        if out.dtype not in BYTES or not is_static(out):
            return
        steps = steps_behind(node, shape_of(out))
        leaves = {s.inputs[0] for s in steps if s.op_type == "DequantizeLinear"}
        functions = {leaf: self.function(leaf) for leaf in leaves if leaf is not None}
        bases = {function.base for function in functions.values()}
        if len(bases) == 1:
            (base,) = bases
            given = {leaf: each.results for leaf, each in functions.items()}
            found = computed(steps, self.opsets, given, BITS.shape)
            if found is not None:
                table = ir.AttrInt64s("table", [int(x) for x in found])
                made = self.put(node, TABLE, [base], [table])
                self.known[made] = Function(base, found)
        elif (pair := self.pair(steps)) is not None:
            inputs, formula = pair
            numbers = asdict(formula).items()
            given = {k: n if isinstance(n, int) else float(n) for k, n in numbers}
            self.put(node, SUM, inputs, ir.convenience.convert_attributes(given))

    def put(
        self,
        node: ir.Node,
        op: str,
        inputs: Sequence[ir.Value],
        attributes: Sequence[ir.Attr],
    ) -> ir.Value:
        out, name = node.outputs[0], node.name or node.op_type
        shape = shape_of(out)
        made = self.add(node, op, inputs, attributes, shape, out, name, DOMAIN)
        self.replace(node, made)
        return made

    def function(self, value: ir.Value) -> Function:
        """What a value is a function of: itself, if it is not known better."""
        assert value.dtype is not None
        return self.known.get(value, Function(value, BITS.view(value.dtype.numpy())))

    def pair(
        self, steps: Sequence[ir.Node]
    ) -> tuple[Sequence[ir.Value], Formula] | None:
        """What is added, if it is that: two numbers, and the formula of their sum."""
        ends = [s for s in steps if s.op_type == "DequantizeLinear"]
        names = [s.op_type for s in steps]
        if len(ends) != 2 or names.count("Add") != 1 or not {*names} <= AROUND_SUM:
            return None
        a, b = (dequantized(Origin.of(s)) for s in ends)
        wanted = quantized(steps[-1])
        if a is None or b is None or wanted is None:
            return None
        if min(x.scale for x in (a, b, wanted)) <= 0:
            return None
        every = np.meshgrid(BITS, BITS, indexing="ij")
        given = {
            x.value: numbers.view(x.kind)
            for x, numbers in zip((a, b), every, strict=True)
        }
        results = computed(steps, self.opsets, given, (BITS.size, BITS.size))
        formula = None if results is None else formula_of(a, b, wanted, results)
        return None if formula is None else ([a.value, b.value], formula)


def computed(
    steps: Sequence[ir.Node],
    opsets: dict[str, int],
    given: Mapping[ir.Value, np.ndarray],
    shape: tuple[int, ...],
) -> np.ndarray | None:
    """What ONNX's reference makes of some arrays of this shape, one step after another.

    None if it fails, or gives another shape or type.
    """
    arrays: dict[ir.Value | None, np.ndarray] = {**given}
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
