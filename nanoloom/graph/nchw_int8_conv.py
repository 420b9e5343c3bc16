"""Convolutions of bytes that read a model's image as it comes, channels in front.

    T(x) -> nanoloom.integer.Convolution<channels_last>
      ->  x -> nanoloom.integer.Convolution<channels_last, from_planes>

A dot product takes four numbers that lie together: pixels of a row of one channel as
well as those of a few pixels with all of their channels.  Where this makes no more
groups of four, as of three channels and filters of 3 or 7 pixels, nothing is turned.
Nor for a few groups more, as of filters of 5 pixels, where those of all channels leave
numbers that make none: each of these is read by itself.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.editor import transpose_order
from nanoloom.graph.image_layouts import to_last
from nanoloom.graph.integer_convolutions import operands
from nanoloom.graph.types import shape_of
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import dot_for
from nanoloom.target.instructions.instruction import GROUP

FROM_PLANES = "from_planes"  # of a node, whose result has channels last
FEW = 16  # channels: each is a place of its own in memory
# Bits of vectors for which a number that is read by itself takes as long as a group: of
# 3 channels 5x5 took 0.84 to 0.96 of the time so.  With 256 bits it took 1.16 to 1.25.
WIDE = 512


def keep_nchw_int8(graph: ir.Graph, target: Target) -> None:
    """Let convolutions read what is turned for them alone, in place."""
    if target.vector.any_length or target.matrix is not None:
        return  # other ways to multiply bytes, which take more than four
    for node in graph:
        found = operands(node)
        if found is None or dot_for(target, *found.signs) is None:
            continue
        turned = found.x.producer()
        if turned is None or not fills_groups(node, found.w, target):
            continue
        if transpose_order(found.x) != to_last(len(shape_of(found.x))):
            continue
        if len(found.x.uses()) == 1 and not found.x.is_graph_output():
            node.replace_input_with(0, turned.inputs[0])
            node.attributes[FROM_PLANES] = ir.AttrInt64(FROM_PLANES, 1)


def fills_groups(node: ir.Node, filters: ir.Value, target: Target) -> bool:
    """Whether the pixels of a row fill groups as well as all of their channels."""
    words = node.attributes
    group, dilations = words.get("group"), words.get("dilations")
    whole = group is None or group.as_int() == 1
    side = dilations is None or dilations.as_ints()[-1] == 1
    _, channels, *_, taps = shape_of(filters)
    four = GROUP["u8"]
    alone, (together, left) = channels * -(-taps // four), divmod(channels * taps, four)
    together += left if target.vector.bits >= WIDE else left > 0
    few = 1 < channels < FEW and taps > 1
    several = shape_of(node.outputs[0])[-2] > 1  # or there is no row of results
    fills = several and few and alone <= together
    return whole and side and fills and "winograd" not in words
