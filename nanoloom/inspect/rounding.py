"""How far rounding errors alone may carry a model's results.

Every operation on floats rounds, each implementation in its own order.  The bound of
one operation is known (a sum of K products differs from the exact one by no more than
about sqrt(K) roundings of the sum of their absolute values: Higham and Mary, 2019);
what becomes of it further on depends on the model and on its inputs.  So it is
measured: the reference runs again with a random error within its bound added to every
result on the way, and the results' spread, with a factor for what a few trials miss, is
the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.graph.operator_spec import Error
from nanoloom.graph.operator_specs import named
from nanoloom.graph.unique_names import nested
from nanoloom.inspect.graph_writer import Writer, signed_random, unless_integer

TRIALS = 5
TRIAL = "nanoloom.trial"  # an input of what has errors
FACTOR = 4.0  # both sides round, and the trials do not find the worst errors
CONFIDENCE = 4.0  # roundings above sqrt(K), see the paper's lambda
ELEMENTWISE = 8.0  # roundings of a function like exp: 4 ULP
UNKNOWN_DEPTH = 1024
MODERN = 9  # the opset that brought Sign; before, Min did not broadcast
LARGEST = 1e30  # of a magnitude: minus infinity in a mask stays what it is

# Half a unit in the last place of 1: one rounding.
ROUNDING = {
    ir.DataType.DOUBLE: 2.0**-53,
    ir.DataType.FLOAT: 2.0**-24,
    ir.DataType.FLOAT16: 2.0**-11,
    ir.DataType.BFLOAT16: 2.0**-8,
}


# Results that are parts of the inputs.
EXACT = named(lambda spec: spec.error is Error.PARTS)
# Sums: the error is relative to the same sum of absolute values.
SUMS = named(lambda spec: spec.error is Error.SUM)
# Many operations in one: the error is relative to the largest result.
COMPOSITE = named(lambda spec: spec.error is Error.COMPOSITE)
RANDOM = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip


def random_node(model: ir.Model) -> ir.Node | None:
    """The first node that draws random numbers: such results cannot be compared."""
    return next((n for n in nested(model.graph) if n.op_type in RANDOM), None)


def with_errors(model: ir.Model) -> ir.Model:
    """A copy of a bound model that adds an error to every result that is rounded.

    Its outputs are the model's, in order, under other names.  It has one more input,
    TRIAL, a number: with another one there are other errors.
    """
    made = model.clone()
    passes.ShapeInferencePass()(made)
    kind = ir.TensorType(ir.DataType.FLOAT)
    trial = ir.Value(name=TRIAL, type=kind, shape=ir.Shape(()))
    made.graph.inputs.append(trial)
    noise = Noise(made.opset_imports.get("", 1), trial)
    for index, node in enumerate(list(nested(made.graph))):
        if is_onnx(node) and node.op_type in EXACT:
            continue
        if not is_onnx(node):
            give_types(node)
        for place, value in enumerate(node.outputs):
            if value.name and value.dtype in ROUNDING and not is_exact_cast(node):
                noise.add(node, value, f"noise.{index}.{place}")
    return made


def is_onnx(node: ir.Node) -> bool:
    """Not of a domain of others, whose operators do nobody knows what."""
    return node.domain in ("", "ai.onnx")


def give_types(node: ir.Node) -> None:
    """Results have the first input's type, where ONNX's inference knows of none."""
    given = node.inputs[0] if node.inputs else None
    for value in node.outputs:
        if value.dtype is None and given is not None and given.type is not None:
            value.type = given.type


def is_exact_cast(node: ir.Node) -> bool:
    """Whether a Cast goes to floats that hold all values of what it came from."""
    if node.op_type not in ("Cast", "CastLike"):
        return False
    given = node.inputs[0]
    before = rounding_of(given) if given is not None else None
    after = rounding_of(node.outputs[0])
    if before is None or after is None:
        return True  # of integers: those of masks and counters are small
    return before >= after


def rounding_of(value: ir.Value) -> float | None:
    """One rounding relative to 1; None for what is no float."""
    return None if value.dtype is None else ROUNDING.get(value.dtype)


@dataclass(frozen=True)
class Noise:
    """Writes the nodes that add errors.  opset: of the model's default domain."""

    opset: int
    trial: ir.Value

    def add(self, node: ir.Node, value: ir.Value, name: str) -> None:
        """value -> value + magnitude * (random, in [-error, error])"""
        graph = node.graph
        assert graph is not None and value.dtype is not None
        kind = value.dtype
        wide = ir.DataType.DOUBLE if kind == ir.DataType.DOUBLE else ir.DataType.FLOAT
        write = Writer(name)
        exact = write.cast(value, kind, wide)
        magnitude = write.cast(self.magnitude(write, node, value), kind, wide)
        if self.opset >= MODERN:
            magnitude = write("Min", magnitude, write.constant(LARGEST, wide))
            if is_onnx(node) and node.op_type not in SUMS | COMPOSITE:
                magnitude = unless_integer(write, magnitude, wide)
        error = write.constant(relative_error(node) * ROUNDING[kind], wide)
        trial = write.cast(self.trial, ir.DataType.FLOAT, wide)
        drawn = write(
            "Mul", error, signed_random(write, exact, sizes(value), trial, wide)
        )
        total = write("Add", exact, write("Mul", magnitude, drawn))
        result = write.cast(total, wide, kind)
        result.type, result.shape = value.type, value.shape
        keep = set(write.nodes)
        for user, at in list(value.uses()):
            if user not in keep:
                user.replace_input_with(at, result)
        replace_output(graph, value, result)
        graph.insert_after(node, write.nodes)

    def magnitude(self, write: Writer, node: ir.Node, value: ir.Value) -> ir.Value:
        """What the error of an operation is relative to, at every element."""
        if is_onnx(node) and node.op_type in SUMS:
            return write.sum_of_absolutes(node, ROUNDING)
        size = write("Abs", value)
        if not is_onnx(node) or node.op_type in COMPOSITE:
            return write("Max", size, write("ReduceMax", size, keepdims=0))
        return size


def replace_output(graph: ir.Graph | ir.Function, old: ir.Value, new: ir.Value) -> None:
    for place, value in enumerate(graph.outputs):
        if value is old:
            graph.outputs[place] = new


def relative_error(node: ir.Node) -> float:
    """The bound of one operation's error, in roundings."""
    op = node.op_type
    if not is_onnx(node):
        return ELEMENTWISE + CONFIDENCE + math.sqrt(UNKNOWN_DEPTH)
    many = op in SUMS or op in COMPOSITE or op == "CumProd"
    if many or "Softmax" in op or op.startswith("Reduce"):
        return ELEMENTWISE + CONFIDENCE + math.sqrt(depth(node))
    return ELEMENTWISE


def depth(node: ir.Node) -> int:
    """How many terms are summed for one result; UNKNOWN_DEPTH where nothing tells."""
    shapes = [sizes(x) for x in node.inputs if x is not None]
    if not shapes or any(shape is None for shape in shapes[:2]):
        return UNKNOWN_DEPTH
    known = [shape for shape in shapes if shape is not None]
    find = DEPTHS.get(node.op_type)
    if find is not None:
        return max(1, find(known))
    out = sizes(node.outputs[0])
    if node.op_type.startswith("Reduce") and out is not None:
        return max(1, math.prod(known[0]) // max(1, math.prod(out)))
    return max([*known[0], 1])


def sizes(value: ir.Value | None) -> Sequence[int] | None:
    """The dimensions, if all are numbers."""
    if value is None or value.shape is None:
        return None
    found = [d for d in value.shape if isinstance(d, int)]
    return found if len(found) == len(value.shape) else None


Shapes = Sequence[Sequence[int]]
DEPTHS: dict[str, Callable[[Shapes], int]] = {
    "MatMul": lambda shapes: shapes[0][-1],
    "Gemm": lambda shapes: max(shapes[0]),
    "Conv": lambda shapes: math.prod(shapes[1][1:]),
    "ConvTranspose": lambda shapes: shapes[1][0] * math.prod(shapes[1][2:]),
    "DeformConv": lambda shapes: math.prod(shapes[1][1:]),
    "GlobalAveragePool": lambda shapes: math.prod(shapes[0][2:]),
    "AveragePool": lambda shapes: math.prod(shapes[0][2:]),
    "InstanceNormalization": lambda shapes: math.prod(shapes[0][2:]),
    "GroupNormalization": lambda shapes: math.prod(shapes[0][1:]),
    "Einsum": lambda shapes: max(math.prod(shape) for shape in shapes),
    "Sum": lambda shapes: len(shapes),
    "Mean": lambda shapes: len(shapes),
}
