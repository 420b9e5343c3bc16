"""Products with weights whose four bits are places in a table of floats."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.quantized_weights import bytes_tensor, require_count
from nanoloom.frontend.microsoft.replacement import Refused, Replacement

# Of bitsandbytes, whose paper (arXiv 2305.14314, appendix E) has the second one.
HALF_FP4 = (0.0, 0.0052083333, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
FP4 = np.array((*HALF_FP4, *(-x for x in HALF_FP4)), np.float32)
NF4 = np.array(
    (
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
        0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
        0.7229568362236023, 1.0,
    ),
    np.float32,
)  # fmt: skip
TABLES = (FP4, NF4)


def mat_mul_bnb4(b: Replacement) -> ir.Value:
    """A @ W^T; W is flat, a largest element for each block of it."""
    b.ignore("training_mode")
    b.require("transB", 1)
    kind, block = b.int("quant_type"), b.positive("block_size")
    if kind not in (0, 1):
        raise Refused(f"its attribute quant_type = {kind} is not supported")
    rows, depth = b.positive("N"), b.positive("K")
    packed, largest, count = b.tensor(b.input(1)), b.input(2), rows * depth
    require_count(b, packed, (count + 1) // 2)
    blocks = -(-count // block)

    def looked_up(x: np.ndarray) -> np.ndarray:
        places = np.stack([x.reshape(-1) >> 4, x.reshape(-1) & 15], -1)
        return np.resize(TABLES[kind][places.reshape(-1)[:count]], (1, count))

    flat = b.constant(bytes_tensor(packed, (count,), looked_up, np.float32))
    scales = b.op(
        "Cast",
        b.op("Reshape", largest, b.numbers(blocks, 1)),
        to=int(ir.DataType.FLOAT),
    )
    scales = b.op("Reshape", b.op("Expand", scales, b.numbers(1, block)), b.numbers(-1))
    scales = b.op("Slice", scales, b.numbers(0), b.numbers(count))
    weight = b.op("Reshape", b.op("Mul", flat, scales), b.numbers(rows, depth))
    x = b.input(0)
    weight = b.op("CastLike", weight, x)
    return b.op("MatMul", x, b.op("Transpose", weight, perm=[1, 0]))


OPERATORS = {"MatMulBnb4": mat_mul_bnb4}
