"""Products and gathers with weights of 2, 4 or 8 bits, a scale for each block.

The packed numbers become a constant of bytes and a DequantizeLinear with its blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.mapped_tensors import release
from nanoloom.frontend.microsoft.replacement import Refused, Replacement

Array = np.ndarray
BITS = (2, 4, 8)


def mat_mul_n_bits(b: Replacement) -> ir.Value:
    """A @ W + bias; W's columns lie as rows of whole blocks.

    What a runtime rounds A to on the way (accuracy_level) is its own affair: at least
    f32 is computed with here.
    """
    b.ignore("accuracy_level")
    b.require("weight_prepacked", 0)
    bits, block = bits_of(b), b.positive("block_size")
    columns, depth = b.positive("N"), b.positive("K")
    blocks = -(-depth // block)
    packed, scales = b.tensor(b.input(1)), b.input(2)
    require_count(b, packed, columns * blocks * block * bits // 8)
    whole = bytes_tensor(
        packed, (columns, blocks * block), lambda x: unpacked(x, bits, columns)
    )
    scales = b.op("Reshape", scales, b.numbers(columns, blocks))
    rows = dequantized(b, whole, scales, zero_points(b, bits, columns, blocks), block)
    if depth < blocks * block:
        rows = b.op("Slice", rows, b.numbers(0), b.numbers(depth), b.numbers(1))
    made = b.op("MatMul", b.input(0), b.op("Transpose", rows, perm=[1, 0]))
    bias = b.optional(5)
    return made if bias is None else b.op("Add", made, bias)


def bits_of(b: Replacement, name: str = "bits") -> int:
    bits = b.int(name, 4)
    if bits not in BITS:
        raise Refused(f"its attribute {name} = {bits} is not supported")
    return bits


def require_count(b: Replacement, packed: ir.TensorProtocol, count: int) -> None:
    if packed.size != count or packed.dtype != ir.DataType.UINT8:
        raise Refused(
            f"its packed weight has {packed.size} numbers of {packed.dtype.name}, "
            f"{count} of UINT8 are needed",
            "export the model again",
        )


def zero_points(b: Replacement, bits: int, rows: int, blocks: int) -> ir.Value:
    """Of bytes like the weight, packed or not; or floats, one for each block."""
    given = b.optional(3)
    shape = (rows, blocks)
    if given is None:
        return b.constant(np.full(shape, 1 << (bits - 1), np.uint8))
    if b.dtype(given) != ir.DataType.UINT8:
        return b.op("Reshape", given, b.numbers(*shape))
    packed = b.tensor(given)
    require_count(b, packed, rows * -(-blocks * bits // 8))
    return b.constant(bytes_tensor(packed, shape, lambda x: unpacked(x, bits, rows)))


def dequantized(
    b: Replacement, whole: ir.TensorProtocol, scales: ir.Value, zeros: ir.Value,
    block: int,
) -> ir.Value:  # fmt: skip
    """(whole - zeros) * scales, [rows, columns] in blocks along the columns."""
    weight = b.constant(whole)
    if b.dtype(zeros) == ir.DataType.UINT8:
        return b.op("DequantizeLinear", weight, scales, zeros, axis=1, block_size=block)
    axis = b.numbers(2)
    split = b.op("Reshape", weight, b.numbers(0, -1, block))
    floats = b.op("Cast", split, to=int(b.dtype(scales)))
    moved = b.op("Sub", floats, b.op("Unsqueeze", zeros, axis))
    scaled = b.op("Mul", moved, b.op("Unsqueeze", scales, axis))
    return b.op("Reshape", scaled, b.numbers(0, -1))


def gather_block_quantized(b: Replacement) -> ir.Value:
    """Rows of a table of blocks, dequantized."""
    data, scales, zeros = b.input(0), b.input(2), b.optional(3)
    rank, block = b.rank(data), b.positive("block_size", 128)
    if not rank:
        raise Refused(f"its table {data.name} is a scalar")
    axis, by = b.int("gather_axis", 0) % rank, b.int("quantize_axis", 1) % rank
    tensor = b.tensor(data)
    if tensor.dtype not in (ir.DataType.UINT8, ir.DataType.UINT4, ir.DataType.INT4):
        raise Refused(f"its table is of {tensor.dtype.name}")
    bits, kind = bits_of(b), np.int8 if tensor.dtype == ir.DataType.INT4 else np.uint8
    is_packed = tensor.dtype == ir.DataType.UINT8
    whole = b.constant(table(tensor, bits if is_packed else 8, kind))
    if zeros is not None:
        given = b.tensor(zeros)
        count = scales_count(b, scales)
        zeros = b.constant(table(given, bits if is_packed else 8, kind, count))
    elif is_packed:
        middle = b.constant(np.array(1 << (bits - 1), np.uint8))
        zeros = b.op("Expand", middle, b.op("Shape", scales))
    rows = b.op("DequantizeLinear", whole, scales, zeros, axis=by, block_size=block)
    return b.op("Gather", rows, b.input(1), axis=axis)


def scales_count(b: Replacement, scales: ir.Value) -> int:
    count = b.extent(scales, -1)
    if count is None:
        raise Refused(f"the shape of its scales {scales.name} is not known before it")
    return count


def table(
    tensor: ir.TensorProtocol, bits: int, kind: type, last: int | None = None
) -> ir.TensorProtocol:
    """A tensor whose last axis is packed, as bytes.  last: how many of them count."""
    shape = [int(d) for d in tensor.shape.numpy()]
    shape[-1] = last or shape[-1] * 8 // bits
    rows = int(np.prod(shape[:-1]))

    def numbers(x: Array) -> Array:
        return unpacked(x.astype(kind), bits, rows) if bits < 8 else x.astype(kind)

    return bytes_tensor(tensor, tuple(shape), numbers, kind)


def unpacked(packed: Array, bits: int, rows: int) -> Array:
    """Numbers of so many bits, the lowest first, as bytes [rows, columns]."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    wide = packed.reshape(rows, -1, 1) >> shifts & np.uint8((1 << bits) - 1)
    return wide.reshape(rows, -1)


def bytes_tensor(
    packed: ir.TensorProtocol,
    shape: tuple[int, ...],
    make: Callable[[Array], Array],
    kind: type = np.uint8,
) -> ir.TensorProtocol:
    """What is made of a weight, each time that somebody asks; it may be large."""

    def made() -> ir.TensorProtocol:
        rows = make(packed.numpy()).reshape(*shape[:-1], -1)[..., : shape[-1]]
        release(packed)
        return ir.Tensor(np.ascontiguousarray(rows))

    dtype = ir.DataType.from_numpy(np.dtype(kind))
    return ir.LazyTensor(made, dtype, ir.Shape(shape), name=packed.name)


OPERATORS = {
    "GatherBlockQuantized": gather_block_quantized,
    "MatMulNBits": mat_mul_n_bits,
}
