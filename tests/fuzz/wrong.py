"""Where a reference is known to be wrong, how far, and how that was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx

from tests.fuzz.asked import Asked

Test = Callable[[Asked], bool]


def always(asked: Asked) -> bool:
    return True


@dataclass(frozen=True)
class Wrong:
    """A reference that is not asked about some nodes, and what is wrong with it.

    source: ort or reference.  when: of attributes and operator set.  on: of the inputs,
    which a damaged model is not asked about.
    """

    source: str
    operators: frozenset[str]
    why: str
    when: Test = always
    on: Test = always


def operators(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ---- resizing


def resized_lengths(asked: Asked) -> list[float]:
    """ONNX's length_resized, scale times size, of the axes whose scales are given.

    ONNX's test of align_corners with the scale 0.6 of 4 elements counts 2.4.
    """
    x, scales = asked.input(0), asked.input(2)
    if x is None or scales is None or scales.size != x.ndim:
        return []
    return [float(scale) * size for scale, size in zip(scales, x.shape, strict=True)]


def has_part_of_an_element(asked: Asked) -> bool:
    return any(abs(x - round(x)) > 1e-4 for x in resized_lengths(asked))


def becomes_one_element(asked: Asked) -> bool:
    sizes = asked.input(3)
    lengths = resized_lengths(asked) if sizes is None else sizes.tolist()
    return any(abs(x - 1) <= 1e-4 for x in lengths)


COUNTED = ("align_corners", "pytorch_half_pixel", "tf_crop_and_resize")

# ---- sums


def may_saturate(unsigned: int, signed: int) -> Test:
    """Whether two products of an 8-bit pair may exceed 16 bits; by places of inputs."""

    def test(asked: Asked) -> bool:
        one, other = asked.input(unsigned), asked.input(signed)
        if one is None or other is None:
            return False
        if one.dtype != np.uint8 or other.dtype != np.int8 or not one.size * other.size:
            return False
        largest = np.abs(other.astype(np.int64)).max()
        return bool(2 * int(one.max()) * largest > np.iinfo(np.int16).max)

    return test


def is_empty(asked: Asked) -> bool:
    x = asked.input(0)
    return x is not None and x.size == 0


def is_uneven(asked: Asked) -> bool:
    """A Fourier transform of a number of samples that is no power of two."""
    length = asked.input(1 if asked.node.op_type == "DFT" else 3)
    window, x = asked.input(2), asked.input(0)
    if length is not None:
        count = int(length.reshape(-1)[0])
    elif asked.node.op_type == "STFT":
        count = window.size if window is not None else 0
    else:
        assert x is not None
        axis = asked.number("axis", 1)
        if asked.opset >= 20:
            axis = int(window.reshape(-1)[0]) if window is not None else -2
        count = x.shape[axis]
    return count & (count - 1) != 0


def is_nearly_constant(asked: Asked) -> bool:
    """Whether E x^2 - (E x)^2 loses half of its digits somewhere."""
    x = asked.input(0)
    if x is None or not x.size:
        return x is None
    axes = tuple(asked.numbers("axes") or (0, 2, 3))
    wide = x.astype(np.float64)
    squares = np.mean(wide * wide, axis=axes)
    return bool((wide.var(axis=axes) < 2.0**-12 * squares).any())


def is_smooth(asked: Asked) -> bool:
    return asked.word("coordinate_transformation_mode") == "align_corners" and bool(
        asked.number("antialias")
    )


def is_cubic_to_border(asked: Asked) -> bool:
    cubic = asked.word("mode").endswith("cubic")
    return cubic and asked.word("padding_mode", "zeros") == "border"


def adds_many_bfloat16(asked: Asked) -> bool:
    x = asked.input(0)
    return x is not None and x.dtype.name == "bfloat16" and x.size > 256


SATURATED = (
    "without VNNI it adds pairs of products of unsigned and signed bytes in 16 bits,"
    " which saturate: exact integers decide"
)
WRONG = (
    Wrong(
        "ort",
        operators("""
            ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
            ReduceMin ReduceProd ReduceSum ReduceSumSquare
        """),
        "negative axes of an empty array take out other axes",
        on=is_empty,
    ),
    Wrong(
        "reference",
        operators(
            "ReduceL1 ReduceL2 ReduceLogSum ReduceMean ReduceSum ReduceSumSquare"
        ),
        "it adds in 8 bits: what is less than the last bit of a sum is lost",
        on=adds_many_bfloat16,
    ),
    Wrong(
        "reference",
        operators("GlobalMaxPool"),
        "it takes the largest along two axes, whichever there are",
        on=lambda asked: (x := asked.input(0)) is None or x.ndim != 4,
    ),
    Wrong(
        "reference",
        operators("GridSample"),
        "it moves the coordinate to the border, where everybody else moves each pixel",
        is_cubic_to_border,
    ),
    Wrong(
        "ort",
        operators("Resize"),
        "with antialias, corners that are aligned count as if they were not",
        is_smooth,
    ),
    Wrong(
        "ort",
        operators("Resize"),
        "it counts whole elements, where ONNX's length_resized is scale times size",
        lambda asked: asked.word("coordinate_transformation_mode") in COUNTED,
        has_part_of_an_element,
    ),
    Wrong(
        "ort",
        operators("MeanVarianceNormalization"),
        "it divides by a deviation of 0, where ONNX adds 1e-9",
    ),
    Wrong(
        "ort",
        operators("DynamicQuantizeLinear"),
        "of zeros only its scale is 1; by ONNX's formula it would be 0, by the"
        " reference it is 1 / 255",
        on=lambda asked: (x := asked.input(0)) is None or not x.any(),
    ),
    Wrong("ort", operators("MatMulInteger"), SATURATED, on=may_saturate(0, 1)),
    Wrong("ort", operators("ConvInteger"), SATURATED, on=may_saturate(1, 0)),
    Wrong(
        "ort", operators("QLinearConv QLinearMatMul"), SATURATED, on=may_saturate(0, 3)
    ),
    Wrong(
        "ort",
        operators("Gemm"),
        "beta does nothing where there are no products to add to",
        lambda asked: any(a.name == "beta" and a.f != 1 for a in asked.node.attribute),
        is_empty,
    ),
    Wrong(
        "ort",
        operators("DFT STFT"),
        "it rounds angles of up to 2 pi n, not reduced, to 32 bits: each root of one is"
        " n roundings off, unless n is a power of two",
        on=is_uneven,
    ),
    Wrong(
        "reference",
        operators("AveragePool LpPool MaxPool"),
        "auto_pad gives it other sizes than ONNX's formula",
        lambda asked: asked.word("auto_pad", "NOTSET") != "NOTSET",
    ),
    Wrong(
        "reference",
        operators("Hardmax LogSoftmax Softmax"),
        "before set 13 they were of all axes from one on",
        lambda asked: asked.opset < 13,
    ),
    Wrong(
        "reference",
        operators("RoiAlign"),
        "before set 16 there was no half pixel",
        lambda asked: asked.opset < 16,
    ),
    Wrong(
        "reference",
        operators("ConvTranspose"),
        "the bias of the first channel is added to every group",
        lambda asked: asked.number("group", 1) > 1,
    ),
    Wrong(
        "reference",
        operators("LpNormalization"),
        "for p = 1 it sums the numbers, not their absolute values",
    ),
    Wrong(
        "reference",
        operators("Resize"),
        "it reads at -0.5 for one element, where ONNX says 0",
        lambda asked: (
            asked.word("coordinate_transformation_mode") == "pytorch_half_pixel"
        ),
        becomes_one_element,
    ),
    Wrong(
        "reference",
        operators("GRU LSTM RNN"),
        "it does not clip",
        lambda asked: any(a.name == "clip" for a in asked.node.attribute),
    ),
    Wrong(
        "reference",
        operators("GRU LSTM RNN"),
        "it takes every sequence as long as the longest, whatever sequence_lens says",
        lambda asked: len(asked.node.input) > 4 and bool(asked.node.input[4]),
    ),
    Wrong(
        "reference",
        operators("GRU LSTM"),
        "its functions are those that ONNX takes if none are named",
        lambda asked: any(a.name == "activations" for a in asked.node.attribute),
    ),
    Wrong(
        "reference",
        operators("LRN"),
        "it leaves channels out, from as many on as there are images",
        on=lambda asked: (x := asked.input(0)) is None or x.shape[0] < x.shape[1],
    ),
    Wrong(
        "reference",
        operators("BatchNormalization"),
        "before set 14 it takes every node for one in training; ONNX tells by the"
        " number of outputs",
        lambda asked: asked.opset < 14,
    ),
    Wrong(
        "reference",
        operators("MeanVarianceNormalization"),
        "of nearly equal numbers it has the variance as a difference of large numbers",
        on=is_nearly_constant,
    ),
    Wrong(
        "reference",
        operators("ReduceSumSquare"),
        "of 32-bit integers it gives 64 bits, where ONNX keeps the type",
        on=lambda asked: (
            (x := asked.input(0)) is None
            or (x.dtype.kind in "iu" and x.dtype.itemsize < 8)
        ),
    ),
)


def is_wrong(source: str, asked: Asked) -> bool:
    """Whether a reference is known to be wrong about a node."""
    op = asked.node.op_type
    return any(
        x.source == source and op in x.operators and x.when(asked) and x.on(asked)
        for x in WRONG
    )


def distrusted(source: str, model: onnx.ModelProto) -> bool:
    """Whether a reference may be wrong about an operator of a model."""
    opset = max((x.version for x in model.opset_import if not x.domain), default=1)
    return any(
        x.source == source
        and node.op_type in x.operators
        and x.when(Asked(node, (), opset))
        for node in every_node(model.graph.node)
        for x in WRONG
    )


def every_node(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Those of the graphs inside, too."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from every_node(attribute.g.node)
