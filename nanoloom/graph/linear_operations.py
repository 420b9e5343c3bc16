"""Linear operations around a product are done where there are the fewest numbers.

    MatMul(x, Mul(y, c))    ->  MatMul(Mul(x, c), y)
    Conv(Mul(x, g), w)      ->  Conv(x, Mul(w, g))
    Average(Conv(x, w, b))  ->  Conv(Average(x), w, b)      w [F, C, 1, 1]

A product is linear in each operand.  A factor of one is one of the other, if that has
the factor's axes: a number has none, a gate of squeeze-and-excite an image's channels.
An average is over axes of the result, and one of the operand that they come from, if it
has them unchanged.  Their order changes nothing but roundings.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import prod
from types import MappingProxyType

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.patterns.pattern import Found, Pattern, is_constant
from nanoloom.graph.patterns.rules import Rule, apply_rules
from nanoloom.graph.types import shape_of, size
from nanoloom.graph.value_origin import Origin, numbers

AVERAGES = frozenset({"AveragePool", "GlobalAveragePool"})
FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
# The operand whose factor is a pass of its own: a MatMul's left one takes it along.
WRITTEN = MappingProxyType({"Conv": 0, "MatMul": 1})
TURNED = 3  # times that filters are written and read, and turned: the image's once


def reorder_linear(graph: ir.Graph, operators: Set[str]) -> None:
    """Rewrite a graph with static shapes in place.

    operators: those of AVERAGES and WRITTEN that are looked at.
    """
    rules = [rule for rule in RULES if rule.pattern.roots <= operators]
    apply_rules(GraphEditor(graph), rules)


def scale(graph: GraphEditor, node: ir.Node, found: Found) -> bool:
    """Multiply the other operand, if it has fewer numbers."""
    place, x, factor = WRITTEN[node.op_type], found["x"], found["factor"]
    target, whole = found["target"], shape_of(x) == shape_of(found["value"])
    wanted = whole and has_axes(node, place, factor) and pays(node, target, found)
    if wanted:
        shape, name = shape_of(target), f"{node.name}/factor"
        made = graph.add(node, "Mul", [target, factor], [], shape, target, name)
        node.replace_input_with(1 - place, made)
        node.replace_input_with(place, x)
    return wanted


def average(graph: GraphEditor, pool: ir.Node, found: Found) -> bool:
    """Swap a pool and the layer that it reads, if that is less to compute.

    A bias is its own average, where no window has places outside of the image.
    """
    image, made, (averaged,) = found["x"], found["made"], pool.outputs
    layer = made.producer()
    assert layer is not None, "the pattern has one"
    wanted = is_within(pool) and keeps_pixels(layer) and is_less(layer, pool)
    if wanted:
        shape = (*shape_of(image)[:2], *shape_of(averaged)[2:])
        how, name = list(pool.attributes.values()), f"{pool.name}/first"
        few = graph.add(layer, pool.op_type, [image], how, shape, image, name)
        layer.replace_input_with(0, few)
        made.shape = averaged.shape
        graph.replace(pool, made)
    return wanted


def axes_of(node: ir.Node) -> tuple[Sequence[str], Sequence[str]]:
    """Names of the axes of a product's operands, the last one first.

    Filters of many taps have none: they are laid out, or transformed, while compiling.
    """
    if node.op_type == "MatMul":
        batch = [f"b{i}" for i in range(max(len(shape_of(x)) for x in operands(node)))]
        return ["k", "m", *batch], ["n", "k", *batch]
    _, filters = operands(node)
    pixels = [f"p{i}" for i in range(len(shape_of(filters)) - 2)]
    taps = [f"t{i}" for i in range(len(pixels))]
    whole = Origin.of(node).int("group", 1) == 1
    return [*pixels, "c", "n"], [*taps, "c" if whole else "part", "f"]


def operands(node: ir.Node) -> tuple[ir.Value, ir.Value]:
    one, other, *_ = node.inputs
    assert one is not None and other is not None
    return one, other


def has_axes(node: ir.Node, place: int, factor: ir.Value) -> bool:
    """Whether the operand that a factor is not of has its axes, where it has them."""
    target = shape_of(operands(node)[1 - place])[::-1]
    if node.op_type == "Conv" and set(target[:-2]) != {1}:
        return False
    if len(shape_of(factor)) > len(target):
        return False
    mine, others = axes_of(node)
    shown = zip(shape_of(factor)[::-1], target, mine, others, strict=False)
    return all(n == 1 or (n == has and a == b) for n, has, a, b in shown)


def pays(node: ir.Node, target: ir.Value, found: Found) -> bool:
    """Whether there is less to multiply.

    Two constants would be multiplied at each call.
    """
    if is_constant(target) and is_constant(found["factor"]):
        return False
    times = TURNED if node.op_type == "Conv" else 1
    return times * size(target) < size(found["x"])


def keeps_pixels(layer: ir.Node) -> bool:
    """Whether each pixel of a convolution's result is made of the same pixel alone.

    A border would make the result larger than the image.
    """
    image, filters = operands(layer)
    single = set(shape_of(filters)[2:]) == {1} and set(numbers(layer, "strides")) <= {1}
    return single and shape_of(image)[2:] == shape_of(layer.outputs[0])[2:]


def is_within(pool: ir.Node) -> bool:
    """Whether all places of a pool's windows are in the image."""
    how = pool.attributes.get("auto_pad")
    fitted = how is not None and how.as_string() not in ("NOTSET", "VALID")
    larger = any(numbers(pool, "pads")) or any(numbers(pool, "ceil_mode"))
    return not fitted and not larger


def is_less(layer: ir.Node, pool: ir.Node) -> bool:
    """Whether products are spared, and more than windows have further sums.

    Of an image of any size: samples of sizes are rewritten alike.
    """
    image, weights = operands(layer)
    further = shape_of(image)[1] - shape_of(layer.outputs[0])[1]
    if pool.op_type != "AveragePool":
        return size(weights) > 2 * further  # of two pixels and more
    spared = (prod(numbers(pool, "strides")) - 1) * size(weights)
    return spared > prod(numbers(pool, "kernel_shape")) * further


def is_float(value: ir.Value) -> bool:
    return value.dtype in FLOATS


def is_given(value: ir.Value) -> bool:
    return not is_constant(value)


SCALED = (
    "MatMul(target, value := Mul(x, factor))",
    "Conv(value := Mul(x, factor), target, ...)",
)
AVERAGED = "(AveragePool | GlobalAveragePool)(made := Conv(x, w, ...))"
RULES = (
    *(Rule(Pattern(text, value=is_float, x=is_given), scale) for text in SCALED),
    Rule(Pattern(AVERAGED, made=lambda made: made.dtype == ir.DataType.FLOAT), average),
)
