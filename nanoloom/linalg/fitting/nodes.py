"""Whether a node's inputs fit together, as far as ONNX's inference does not look.

A rule for each operator that needs one: it raises ModelError in one sentence.  So the
lowerings may rely on it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.linalg.builder.input_checks import (
    at_least,
    channels_of,
    require_axes,
    require_axis,
    require_shape,
    require_spread,
)
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.fitting import classical, convolutions, images

Rule = Callable[[Node], None]


def require_fit(node: Node) -> None:
    """Raise ModelError for inputs or attributes that do not fit together."""
    for i in SINGLE.get(node.op, ()):
        given = node.optional(i)
        if given is not None and given.size != 1:
            raise node.invalid(f"its input {i} is {list(given.shape)}, not one number")
    for i in LISTS.get(node.op, ()):
        given = node.optional(i)
        if given is not None and given.rank != 1:
            raise node.invalid(f"its input {i} is {list(given.shape)}, not one list")
    rule = RULES.get(node.op)
    if rule is not None:
        rule(node)


# ---- channels and axes


def per_channel(*indices: int) -> Rule:
    def rule(node: Node) -> None:
        for i in indices:
            require_shape(node, i, [channels_of(node)])

    return rule


def batch_normalization(node: Node) -> None:
    """One number for each channel, or for each element of an image."""
    x, each = node.input(0), not node.int("spatial", 1)
    for i in (1, 2, 3, 4):
        require_shape(node, i, x.shape[1:] if each else [channels_of(node)])


def group_normalization(node: Node) -> None:
    groups, channels = at_least(node, "num_groups", 1), channels_of(node)
    if channels % groups:
        raise node.invalid(f"its {channels} channels are not {groups} equal groups")
    for i in (1, 2):
        require_shape(node, i, [groups if node.version < 21 else channels])


def together(node: Node) -> None:
    """Inputs, each broadcast to the others: before opset 8 inference does not look."""
    shapes = [x.shape for x in node.inputs if x is not None]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(str(list(shape)) for shape in shapes)
        raise node.invalid(f"its inputs {given} do not fit together") from None


def spreading(*indices: int) -> Rule:
    """Inputs that are broadcast to the first one."""

    def rule(node: Node) -> None:
        for i in indices:
            require_spread(node, i, node.input(0).shape)

    return rule


def slopes(node: Node) -> None:
    """PRelu; up to opset 6 a slope may be one of each channel."""
    if node.version >= 7 or node.input(1).shape != node.input(0).shape[1:2]:
        spreading(1)(node)


def normalized(node: Node) -> None:
    """LayerNormalization, RMSNormalization: scale and bias."""
    require_axis(node, -1)
    spreading(1, 2)(node)


def cumulative(node: Node) -> None:
    axis = node.known(1)
    if axis is not None:
        require_axes(node, axis.reshape(-1).tolist())


def gemm(node: Node) -> None:
    """Inference of opsets below 13 sees no sums of other lengths."""
    summed = node.input(0).shape[0 if node.int("transA", 0) else 1]
    shape = list(node.input(1).shape)
    shape[1 if node.int("transB", 0) else 0] = summed
    require_shape(node, 1, shape)
    require_spread(node, 2, node.output_shapes[0])


def quantization(node: Node) -> None:
    """One scale, one a place of the axis, or one a block of the axis."""
    x, scale = node.input(0), node.input(1)
    axis, block = node.int("axis", 1), node.int("block_size")
    if scale.size == 1 and scale.rank < 2:
        require_shape(node, 2, [], [1])
        return
    require_axis(node, 1)
    shape = list(x.shape)
    if block > 0:
        shape[axis] = -(-shape[axis] // block)
        require_shape(node, 1, shape)
    else:
        require_shape(node, 1, [shape[axis]])
    require_shape(node, 2, scale.shape)


def transpose(node: Node) -> None:
    order, rank = node.ints("perm"), node.input(0).rank
    if node.has("perm") and sorted(order) != list(range(rank)):
        raise node.invalid(f"its perm is {order}, its input has {rank} dimensions")


def lp_norm(node: Node) -> None:
    if node.has("p") and node.version < 2:
        return  # a float
    at_least(node, "p", 1, 2)


# ---- indices


def one_hot(node: Node) -> None:
    axis, rank = node.int("axis", -1), node.input(0).rank
    if not -rank - 1 <= axis <= rank:
        raise node.invalid(f"its axis is {axis}, its indices have {rank} dimensions")


def elements(node: Node) -> None:
    """GatherElements, ScatterElements: indices (and updates) of x's rank."""
    x, indices = node.input(0), node.input(1)
    axis = node.int("axis")
    require_axis(node)
    within = all(
        size <= extent
        for d, (size, extent) in enumerate(zip(indices.shape, x.shape, strict=False))
        if d != axis % x.rank
    )
    if indices.rank != x.rank or not within:
        raise node.invalid(
            f"its indices are {list(indices.shape)}, its input is {list(x.shape)}"
        )
    require_shape(node, 2, indices.shape)


def scatter_nd(node: Node) -> None:
    x, indices = node.input(0), node.input(1)
    if not indices.rank or not 0 < indices.shape[-1] <= x.rank:
        raise node.invalid(
            f"its indices are {list(indices.shape)}, its input is {list(x.shape)}"
        )
    axes = node.ints("axes", range(indices.shape[-1]))
    rest = [n for d, n in enumerate(x.shape) if d not in axes]
    require_shape(node, 2, [*indices.shape[:-1], *rest])


def losses(node: Node) -> None:
    """scores [n, c, ...], labels [n, ...], weights [c]."""
    scores = node.input(0).shape
    if len(scores) < 2:
        raise node.invalid(f"its scores are {list(scores)}, expected [n, classes, ...]")
    require_shape(node, 1, [scores[0], *scores[2:]])
    require_shape(node, 2, [scores[1]])


def reverse_sequence(node: Node) -> None:
    x, axes = node.input(0), (node.int("batch_axis", 1), node.int("time_axis"))
    if x.rank < 2 or sorted(axes) != [0, 1]:
        raise node.invalid("its batch_axis and time_axis are not 0 and 1")
    require_shape(node, 1, [x.shape[axes[0]]])


def short_transform(node: Node) -> None:
    """A signal is [batch, length], or that times 1, or 2 for complex numbers.

    ONNX writes the 1 of real numbers; ONNX Runtime and its models leave it out as well.
    """
    shape = list(node.input(0).shape)
    if len(shape) not in (2, 3) or shape[2:] not in ([], [1], [2]):
        raise node.invalid(f"its signal is {shape}, expected [batch, length, 1 or 2]")


# ---- recurrent networks


def recurrent(gates: int) -> Rule:
    """x [t, n, i], W [d, g * h, i], R [d, g * h, h], bias, lengths, states, peeps."""

    def rule(node: Node) -> None:
        x = node.input(0).shape
        steps_first = not node.int("layout")
        if len(x) != 3:
            raise node.invalid(f"its input is {list(x)}, expected three dimensions")
        batch = x[1] if steps_first else x[0]
        ways = 2 if node.string("direction") == "bidirectional" else 1
        hidden = node.int("hidden_size", node.input(2).shape[-1])
        state = [ways, batch, hidden] if steps_first else [batch, ways, hidden]
        shapes = {
            1: [ways, gates * hidden, x[2]],
            2: [ways, gates * hidden, hidden],
            3: [ways, 2 * gates * hidden],
            4: [batch],
            5: state,
            6: state,
            7: [ways, 3 * hidden],
        }
        for i, shape in shapes.items():
            require_shape(node, i, shape)

    return rule


# Inputs that are one number, whatever their rank
SINGLE: dict[str, tuple[int, ...]] = {
    "Clip": (1, 2),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "OneHot": (1,),
    "Pad": (2,),
    "STFT": (1, 3),
    "TopK": (1,),
    "Trilu": (1,),
}
# Inputs that are a list of numbers
LISTS: dict[str, tuple[int, ...]] = {
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Upsample": (1,),
}
RULES: dict[str, Rule] = {
    **classical.RULES,
    **convolutions.RULES,
    **images.RULES,
    "ArgMax": require_axis,
    "ArgMin": require_axis,
    "BatchNormalization": batch_normalization,
    "CumProd": cumulative,
    "CumSum": cumulative,
    "DequantizeLinear": quantization,
    "GRU": recurrent(3),
    "GatherElements": elements,
    "Gemm": gemm,
    "GlobalLpPool": lp_norm,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": per_channel(1, 2),
    "LSTM": recurrent(4),
    "LayerNormalization": normalized,
    "LpNormalization": lambda node: require_axis(node, -1),
    "LpPool": lp_norm,
    "Max": together,
    "Mean": together,
    "MeanVarianceNormalization": lambda node: require_axes(
        node, node.ints("axes", (0, 2, 3))
    ),
    "Min": together,
    "NegativeLogLikelihoodLoss": losses,
    "OneHot": one_hot,
    "PRelu": slopes,
    "QuantizeLinear": quantization,
    "RMSNormalization": normalized,
    "RNN": recurrent(1),
    "ReverseSequence": reverse_sequence,
    "Scatter": elements,
    "ScatterElements": elements,
    "STFT": short_transform,
    "ScatterND": scatter_nd,
    "SoftmaxCrossEntropyLoss": losses,
    "Sum": together,
    "Transpose": transpose,
}
