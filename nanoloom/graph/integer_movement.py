"""Integers that are only moved stay integers.

    Quantize(move(Dequantize(q)))  ->  move(q)       same scale and zero point

with moves that make no new numbers: Reshape, Transpose, Slice, MaxPool ...  Both
roundings of the left side are far below half a step, so that every q comes back.  The
parts of a Split are slices; what a Pad puts around is quantized while compiling.

    Quantize(Concat(a, b))  ->  Concat(Quantize(a), Quantize(b))

where one of them is dequantized: what has another scale becomes a table
(lookup_tables.py).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.patterns.pattern import Found, Pattern
from nanoloom.graph.patterns.rules import Rule, apply_rules
from nanoloom.graph.quantization import (
    BYTES,
    Quantized,
    dequantized,
    known_array,
    quantization,
    quantizes_alike,
)
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin, origin_of

MOVES = {
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
}
PAD = "Pad"  # with a number that is known, or numbers of its own
RESIZE = "Resize"  # each number is its nearest neighbour's
ORDERED = {"MaxPool"}  # of integers as of their numbers, where the scale is positive
TRANSFORMATION = "coordinate_transformation_mode"
RANGE = 2.0**-90, 2.0**90  # of scales: no number overflows or is denormal


def move_integers(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    editor = GraphEditor(graph)
    apply_rules(editor, (CUT, PARTED))
    apply_rules(editor, (MOVED,))


def part(graph: GraphEditor, node: ir.Node, found: Found) -> bool:
    """Quantize the parts of a concatenation, if one of them is dequantized."""
    out, concat = node.outputs[0], found["whole"].producer()
    assert concat is not None, "the pattern has one"
    parts = [x for x in concat.inputs if x is not None]
    if out.dtype not in BYTES or not quantizes_alike(node):
        return False
    if not any(dequantized(origin_of(x)) for x in parts):
        return False
    kept, name, given = list(node.attributes.values()), node.name, node.inputs[1:]
    name = name or node.op_type
    made = [
        graph.add(node, node.op_type, [x, *given], kept, shape_of(x), out, name)
        for x in parts
    ]
    along, word = list(concat.attributes.values()), concat.name or "Concat"
    graph.replace(
        node, graph.add(node, "Concat", made, along, shape_of(out), out, word)
    )
    return True


def cut(graph: GraphEditor, node: ir.Node, found: Found) -> bool:
    """Slices in the place of a Split of integers that are quantized again."""
    source, outs = found["d"], node.outputs
    readers = (use.node.op_type for out in outs for use in out.uses())
    if dequantized(origin_of(source)) is None or "QuantizeLinear" not in readers:
        return False
    if not all(out.name for out in outs):
        return False
    axis = Origin.of(node).int("axis", 0) % len(shape_of(source))
    begin, parts = 0, list[ir.Value]()
    for out in outs:
        end, shape = begin + shape_of(out)[axis], shape_of(out)
        given = [
            graph.constant(np.array([number]), f"{out.name}/{word}")
            for word, number in (("begin", begin), ("end", end), ("axis", axis))
        ]
        name = f"{node.name or 'Split'}/{begin}"
        parts.append(graph.add(node, "Slice", [source, *given], [], shape, out, name))
        begin = end
    graph.replace(node, *parts)
    return True


def move(graph: GraphEditor, node: ir.Node, found: Found) -> bool:
    """Put the moved integers in the place of a Quantize that makes them again."""
    out, moves = node.outputs[0], list[ir.Node]()
    value = node.inputs[0]
    while value is not found["d"] and value is not None:
        maker = value.producer()
        assert maker is not None, "the pattern has gone past it"
        moves.insert(0, maker)
        value = maker.inputs[0]
    given, wanted = dequantized(origin_of(value)), quantization(Origin.of(node), out)
    if given is None or wanted is None or out.dtype != given.value.dtype:
        return False
    ordered = any(each.op_type in ORDERED for each in moves)
    if not is_alike(given, wanted) or (ordered and given.scale <= 0):
        return False
    if out.is_graph_output() and not moves:
        return False
    made = given.value
    for each in moves:
        inputs, kept = inputs_of(graph, each, made, given), each.attributes.values()
        shape, name = shape_of(each.outputs[0]), each.name or each.op_type
        made = graph.add(each, each.op_type, inputs, list(kept), shape, made, name)
    if moves:
        graph.replace(node, made)
    else:
        ir.convenience.replace_all_uses_with(out, made)
        graph.graph.remove(node, safe=True)
    return True


def inputs_of(
    graph: GraphEditor, move: ir.Node, made: ir.Value, given: Quantized
) -> list[ir.Value | None]:
    """What a move of integers reads; what a Pad puts around is one, too."""
    inputs = [made, *move.inputs[1:]]
    around = filling(move)
    if move.op_type != PAD or around is None:
        return inputs
    limits = np.iinfo(given.kind)
    zero = 0 if given.zero is None else int(given.zero)
    number = np.rint(np.float32(around) / given.scale) + zero
    stored = np.clip(number, limits.min, limits.max).astype(limits.dtype)
    inputs += [None] * (3 - len(inputs))
    inputs[2] = graph.constant(np.asarray(stored), f"{move.name or PAD}/around")
    return inputs


def filling(pad: ir.Node) -> float | None:
    """The known number that a Pad puts around, None if there is none."""
    mode = pad.attributes.get("mode")
    if mode is not None and mode.as_string() != "constant":
        return None
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    array = known_array(value)
    if value is not None and (array is None or array.size != 1):
        return None
    return 0.0 if array is None else float(array.reshape(()))


def is_move(node: ir.Node) -> bool:
    plain = is_tensor_op(node, MOVES | ORDERED | {PAD, RESIZE})
    if plain and node.op_type == PAD and not is_known(node):
        return False
    if plain and node.op_type == RESIZE and not is_nearest(node):
        return False
    return plain and len(node.outputs) == 1 and is_static(node.outputs[0])


def is_nearest(resize: ir.Node) -> bool:
    """Whether all numbers of a larger or smaller image are some of the image's."""
    given = (resize.attributes.get(x) for x in ("mode", TRANSFORMATION))
    mode, places = ("" if x is None else x.as_string() for x in given)
    return mode in ("", "nearest") and places != "tf_crop_and_resize"


def is_known(pad: ir.Node) -> bool:
    """Whether a Pad puts a known number around a tensor, or numbers of the tensor."""
    if "pads" in pad.attributes:  # of opsets before 11, with its number beside
        return False
    mode = pad.attributes.get("mode")
    around = filling(pad)
    own = mode is not None and mode.as_string() != "constant"
    return own or (around is not None and bool(np.isfinite(around)))


def is_alike(one: Quantized, other: Quantized) -> bool:
    """Whether both have the same scale, one for all, and the same zero point."""
    if one.scale.ndim or other.scale.ndim or one.scale != other.scale:
        return False
    zeros = [0 if x.zero is None else int(x.zero) for x in (one, other)]
    return zeros[0] == zeros[1] and bool(RANGE[0] < np.abs(one.scale) < RANGE[1])


DEQUANTIZED = "d := DequantizeLinear(...)"
CUT = Rule(Pattern(f"Split({DEQUANTIZED}, ...)", shared=True), cut)
PARTED = Rule(Pattern("QuantizeLinear(whole := Concat(...), ...)"), part)
MOVED = Rule(
    Pattern(f"QuantizeLinear({DEQUANTIZED}, ...)", shared=True, past=is_move), move
)
