"""Products of signs and weights of one magnitude count bits that differ.

    Conv(s * sign(x), a * sign(W))  ->  nanoloom.binary.BitConvolution(Pack(x), bits)

with a constant W whose numbers are a or -a in each filter (a column of MatMul and
Gemm), and signs as graph/sign_values.py knows them.  Of C products of signs as many are
-1 as bits differ: their sum is C - 2 * ones(x ^ W), exact in integers.

Zeros around an image are no signs.  Their bits are 0, as those of -1: what that takes
from a sum is a constant of its place, which is added to it.

Where Sign may give 0, x has the two planes x > 0 and x < 0, and W the planes W and
not W: of each product, none of two bits differ if it is 1, one if it is 0, two if it is
-1.  The sum is C - ones, with zeros around an image, too.  NaN is a 0 there.  What is
known never to be 0 (graph/sign_thresholds.py) has one plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.quantization import known_array
from nanoloom.graph.sign_thresholds import BYTE, DOMAIN, is_nonzero
from nanoloom.graph.sign_values import Bits, Signs, signs_of
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin

DEEPEST = 1 << 24  # products whose sum is a float32
PRODUCTS = {"Conv", "Gemm", "MatMul", "BitConvolution", "BitMatMul"}
BYTES = ir.Value(name="bytes", type=ir.TensorType(ir.DataType.UINT8))

# Why a product of signs is not counted.
NO_WEIGHT = "its weight is no constant of one magnitude in each filter or column"
NO_BYTES = "its groups have no multiple of 8 channels"
NO_FORM = "its alpha, beta, transA or bias has no form for bits"
TOO_DEEP = f"sums of {DEEPEST} products are no whole numbers in float32"


def binary_products(graph: ir.Graph) -> dict[str, str]:
    """Rewrite a graph with static shapes in place.

    Gives for each product of signs, by its node's name, why it is none of bits; "" if
    it is one.
    """
    editor = BinaryProducts(graph)
    found: dict[str, str] = {}
    for node in graph:
        if node.domain not in ("", "ai.onnx") or not is_static(node.outputs[0]):
            continue
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            continue
        signs = signs_of(node.inputs[0])
        if signs is not None:
            if is_nonzero(signs.positive.value):
                signs = replace(signs, negative=None)
            is_conv = node.op_type == "Conv"
            visit = editor.visit_convolution if is_conv else editor.visit_product
            found[node.name or node.op_type] = visit(node, signs)
    return found


@dataclass
class BinaryProducts(GraphEditor):
    """The graph being rewritten; packed: bits that are there already."""

    packed: dict[tuple[Bits, tuple[ir.Node, ...], int], ir.Value] = field(
        default_factory=dict[tuple[Bits, tuple[ir.Node, ...], int], ir.Value]
    )

    def visit_convolution(self, node: ir.Node, signs: Signs) -> str:
        """Put the counting form in the place of a convolution; says why it has none."""
        weight = weight_of(node.inputs[1], 0)
        groups = Origin.of(node).int("group", 1)
        if weight is None or node.outputs[0].dtype != ir.DataType.FLOAT:
            return NO_WEIGHT
        filters, channels, *kernel = weight.positive.shape
        if groups > 1 and (channels % BYTE or signs.negative is not None):
            return NO_BYTES
        if prod(weight.positive.shape[1:]) >= DEEPEST:
            return TOO_DEEP
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        given = node.attributes.get("kernel_shape")
        fits = channels * groups == shape_of(node.inputs[0])[1]  # type: ignore[arg-type] - an input that is there
        fits &= bias is None or shape_of(bias) == (filters,)
        if not fits or (given is not None and list(given.as_ints()) != kernel):
            return NO_FORM  # it is refused where it is lowered
        planes = planes_of(weight.positive, 1, signs)
        shift = np.int32(prod(weight.positive.shape[1:]))
        if signs.negative is None:
            shift = shift + borders(node, weight.positive)
        self.rewrite(node, signs, planes, np.asarray(shift), weight.scale, bias)
        return ""

    def visit_product(self, node: ir.Node, signs: Signs) -> str:
        """The same of a matrix product with a constant right operand."""
        given = Origin.of(node)
        factors = (given.attributes.get(name) for name in ("alpha", "beta"))
        plain = all(x is None or x.as_float() == 1 for x in factors)
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        columns = shape_of(node.outputs[0])[-1] if shape_of(node.outputs[0]) else 0
        if not plain or given.int("transA", 0):
            return NO_FORM
        if bias is not None and shape_of(bias) not in ((columns,), (1, columns)):
            return NO_FORM
        swapped = given.int("transB", 0) == 1
        weight = weight_of(node.inputs[1], 0 if swapped else 1)
        if weight is None or weight.positive.ndim != 2:
            return NO_WEIGHT
        if node.outputs[0].dtype != ir.DataType.FLOAT:
            return NO_WEIGHT
        positive = weight.positive.T if swapped else weight.positive
        if len(positive) >= DEEPEST or len(shape_of(node.inputs[0])) < 2:  # type: ignore[arg-type] - an input that is there
            return TOO_DEEP
        planes = planes_of(positive, 0, signs)
        shift = np.asarray(len(positive), np.int32)
        self.rewrite(node, signs, planes, shift, weight.scale, bias)
        return ""

    def rewrite(
        self,
        node: ir.Node,
        signs: Signs,
        planes: np.ndarray,
        shift: np.ndarray,
        scale: np.ndarray,
        bias: ir.Value | None,
    ) -> None:
        """The node becomes one on bits."""
        is_conv, out = node.op_type == "Conv", node.outputs[0]
        name = node.name or node.op_type
        if bias is not None and len(shape_of(bias)) > 1:
            bias = self.flat(bias)
        source = node.inputs[0]
        assert source is not None
        rank = len(shape_of(source))
        axis = 1 if is_conv else rank - 1
        factor = (scale * np.float32(signs.scale)).astype(np.float32)
        arrays = {"bits": planes, "shift": narrow(shift), "factor": factor}
        constants = [self.constant(a, f"{name}/{word}") for word, a in arrays.items()]
        x = self.bits(node, signs, axis, shape_of(source))
        inputs = [x, *constants, bias]
        times = 2 if signs.negative is None else 1
        attributes = [ir.AttrInt64("times", times)]
        if is_conv:
            attributes += list(node.attributes.values())
        op = "BitConvolution" if is_conv else "BitMatMul"
        made = self.add(node, op, inputs, attributes, shape_of(out), out, name, DOMAIN)
        self.replace(node, made)

    def flat(self, bias: ir.Value) -> ir.Value:
        """A vector of one row, if it is a constant; else reshaped."""
        array = known_array(bias)
        assert array is not None, "a bias of a matrix product is asked before"
        return self.constant(array.reshape(-1), f"{bias.name}/flat")

    def bits(
        self, node: ir.Node, signs: Signs, axis: int, shape: Sequence[int]
    ) -> ir.Value:
        """The planes of signs as bytes along an axis, behind each other."""
        planes = [signs.positive, *([signs.negative] if signs.negative else [])]
        made = [self.plane(node, x, signs.moves, axis, shape) for x in planes]
        if len(made) == 1:
            return made[0]
        whole = list(shape_of(made[0]))
        whole[axis] *= len(made)
        along, name = [ir.AttrInt64("axis", axis)], f"{node.name}/planes"
        return self.add(node, "Concat", made, along, whole, BYTES, name)

    def plane(
        self,
        node: ir.Node,
        bits: Bits,
        moves: tuple[ir.Node, ...],
        axis: int,
        shape: Sequence[int],
    ) -> ir.Value:
        """One condition as bytes: that from earlier if there is one."""
        key = bits, moves, axis
        if key not in self.packed:
            value = bits.value
            for move in moves:
                to = shape_of(move.outputs[0])
                given, words = [value, *move.inputs[1:]], list(move.attributes.values())
                name = f"{move.name}/signs"
                value = self.add(node, move.op_type, given, words, to, value, name)
            whole = list(shape)
            whole[axis] = -(-whole[axis] // BYTE)
            words = [ir.AttrInt64("axis", axis)]
            if bits.compare:
                words.append(ir.AttrString("compare", bits.compare))
                words.append(ir.AttrFloat32("than", bits.than))
                maker = value.producer()
                early = maker is not None and maker.op_type in PRODUCTS
                words.append(ir.AttrInt64("early", int(early)))
            name = f"{node.name}/pack"
            self.packed[key] = self.add(
                node, "Pack", [value], words, whole, BYTES, name, DOMAIN
            )
        return self.packed[key]


@dataclass(frozen=True)
class SignedWeight:
    """A weight: scale [filters] where positive, of the weight's shape, else -scale."""

    positive: np.ndarray
    scale: np.ndarray


def weight_of(value: ir.Value | None, axis: int) -> SignedWeight | None:
    """A constant with one magnitude, not 0, in each of its parts along an axis."""
    array = known_array(value)
    if array is None or array.dtype != np.float32 or not array.size:
        return None
    if array.ndim <= axis:
        return None
    others = tuple(d for d in range(array.ndim) if d != axis)
    size = abs(array)
    scale = size.max(axis=others)
    whole = size == np.expand_dims(scale, others)
    if not whole.all() or not (np.isfinite(scale) & (scale > 0)).all():
        return None
    return SignedWeight(array > 0, scale)


def narrow(shift: np.ndarray) -> np.ndarray:
    """Half as much to read for each result, where all numbers have room in 16 bits."""
    limits = np.iinfo(np.int16)
    fits = limits.min <= shift.min() and shift.max() <= limits.max
    return shift.astype(np.int16 if fits and shift.ndim else np.int32)


def planes_of(positive: np.ndarray, axis: int, signs: Signs) -> np.ndarray:
    """Bits of a weight as bytes along an axis, for the planes of the signs."""
    planes = [positive] if signs.negative is None else [positive, ~positive]
    packed = [np.packbits(x, axis=axis, bitorder="little") for x in planes]
    return np.concatenate(packed, axis=axis)


def borders(node: ir.Node, positive: np.ndarray) -> np.ndarray:
    """What sums lack where windows reach over an image's edges: [result..., filters].

    Of each tap outside, the sum of the filter's signs there; 0 without padding.
    """
    assert node.inputs[0] is not None
    size, made = (shape_of(v)[2:] for v in (node.inputs[0], node.outputs[0]))
    taps = positive.shape[2:]
    inside = np.ones((*made, *taps), bool)
    for axis, (extent, count, kernel) in enumerate(zip(size, made, taps, strict=True)):
        begin, stride, dilation = steps_of(node, axis, extent, count, kernel)
        first, tap = np.arange(count) * stride - begin, np.arange(kernel) * dilation
        at = first[:, None] + tap
        shape = [1] * inside.ndim
        shape[axis], shape[len(made) + axis] = at.shape
        inside &= ((at >= 0) & (at < extent)).reshape(shape)
    if inside.all():
        return np.asarray(0, np.int32)
    channels = positive.shape[1]
    sums = 2 * positive.sum(axis=1, dtype=np.int32) - channels  # [filters, taps...]
    outside = (~inside).reshape(-1, prod(taps)).astype(np.int32)
    lacking = outside @ sums.reshape(len(positive), -1).T
    return lacking.reshape(*made, len(positive))


def steps_of(
    node: ir.Node, axis: int, extent: int, count: int, kernel: int
) -> tuple[int, int, int]:
    """Padding in front, stride and dilation of a convolution along a spatial axis."""

    def numbers(name: str, missing: int) -> int:
        given = node.attributes.get(name)
        return missing if given is None else given.as_ints()[axis]

    stride, dilation = numbers("strides", 1), numbers("dilations", 1)
    given = node.attributes.get("auto_pad")
    mode = "NOTSET" if given is None else given.as_string()
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        return (0 if mode == "VALID" else numbers("pads", 0)), stride, dilation
    span = (kernel - 1) * dilation + 1
    total = max((count - 1) * stride + span - extent, 0)
    low = total // 2 if mode == "SAME_UPPER" else total - total // 2
    return low, stride, dilation
