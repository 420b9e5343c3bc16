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

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.quantization import (
    BYTES,
    Quantized,
    dequantized,
    known_array,
    only_user,
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
    rewriting = IntegerMovement(graph)
    for node in graph:
        if is_tensor_op(node, {"Split"}):
            rewriting.cut(node)
        if node.op_type == "QuantizeLinear" and node.domain in ("", "ai.onnx"):
            for quantize in rewriting.parted(node):
                rewriting.visit(quantize)


@dataclass
class IntegerMovement(GraphEditor):
    """The graph being rewritten."""

    def parted(self, node: ir.Node) -> list[ir.Node]:
        """A Quantize, or those of the parts of a concatenation that it is for."""
        source, out = node.inputs[0], node.outputs[0]
        concat = None if source is None else source.producer()
        if concat is None or not is_tensor_op(concat, {"Concat"}):
            return [node]
        if only_user(concat.outputs[0]) is not node or not quantizes_alike(node):
            return [node]
        sources = [dequantized(origin_of(value)) for value in concat.inputs]
        if out.dtype not in BYTES or not is_static(out) or not any(sources):
            return [node]
        kept, name = list(node.attributes.values()), node.name or node.op_type
        parts: list[ir.Value] = []
        for part in concat.inputs:
            assert part is not None, "ONNX lets no input of Concat be left out"
            given = [part, *node.inputs[1:]]
            parts.append(
                self.add(node, node.op_type, given, kept, shape_of(part), out, name)
            )
        along = list(concat.attributes.values())
        shape, word = shape_of(out), concat.name or "Concat"
        self.replace(node, self.add(node, "Concat", parts, along, shape, out, word))
        made = [part.producer() for part in parts]
        return [each for each in made if each is not None]

    def cut(self, node: ir.Node) -> None:
        """Slices in the place of a Split of integers that are quantized again."""
        source, outs = node.inputs[0], node.outputs
        if source is None or dequantized(origin_of(source)) is None:
            return
        if not all(out.name and is_static(out) for out in outs):
            return
        readers = (use.node.op_type for out in outs for use in out.uses())
        if "QuantizeLinear" not in readers:
            return
        axis = Origin.of(node).int("axis", 0) % len(shape_of(source))
        begin, parts = 0, list[ir.Value]()
        for out in outs:
            end = begin + shape_of(out)[axis]
            given = [
                self.constant(np.array([number]), f"{out.name}/{word}")
                for word, number in (("begin", begin), ("end", end), ("axis", axis))
            ]
            name, shape = f"{node.name or 'Split'}/{begin}", shape_of(out)
            inputs = [source, *given]
            parts.append(self.add(node, "Slice", inputs, [], shape, out, name))
            begin = end
        self.replace(node, *parts)

    def visit(self, node: ir.Node) -> None:
        """Put the moved integers in the place of a Quantize that makes them again."""
        out = node.outputs[0]
        moves, source = movements_of(node.inputs[0])
        given = dequantized(source)
        wanted = quantization(Origin.of(node), out)
        if given is None or wanted is None or out.dtype not in BYTES:
            return
        if out.dtype != given.value.dtype or not is_alike(given, wanted):
            return
        if out.is_graph_output() and not moves:
            return
        if given.scale <= 0 and any(move.op_type in ORDERED for move in moves):
            return
        made = given.value
        for move in moves:
            made = self.add(
                move,
                move.op_type,
                self.inputs_of(move, made, given),
                list(move.attributes.values()),
                shape_of(move.outputs[0]),
                made,
                move.name or move.op_type,
            )
        if moves:
            self.replace(node, made)
        else:
            ir.convenience.replace_all_uses_with(out, made)
            self.graph.remove(node, safe=True)

    def inputs_of(
        self, move: ir.Node, made: ir.Value, given: Quantized
    ) -> list[ir.Value | None]:
        """What a move of integers reads; what a Pad puts around is one, too."""
        inputs = [made, *move.inputs[1:]]
        around = filling(move)
        if move.op_type != PAD or around is None:
            return inputs
        dtype = made.dtype
        assert dtype is not None
        limits = np.iinfo(dtype.numpy())
        zero = 0 if given.zero is None else int(given.zero)
        number = np.rint(np.float32(around) / given.scale) + zero
        stored = np.clip(number, limits.min, limits.max).astype(limits.dtype)
        inputs += [None] * (3 - len(inputs))
        inputs[2] = self.constant(np.asarray(stored), f"{move.name or PAD}/around")
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


def movements_of(value: ir.Value | None) -> tuple[list[ir.Node], Origin | None]:
    """The moves that a value has come through, in order, and what made it before."""
    moves: list[ir.Node] = []
    node = None if value is None else value.producer()
    while node is not None and is_move(node):
        moves.insert(0, node)
        value = node.inputs[0]
        node = None if value is None else value.producer()
    return moves, None if node is None else Origin.of(node)


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
