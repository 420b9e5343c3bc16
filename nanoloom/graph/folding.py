"""Operators that ONNX's reference computes as nanoloom's own code does: only they fold.

A constant gives what the same numbers give as an input.  The reference is wrong for
some operators, types and attributes, and elsewhere rounds otherwise; a node that is not
named here runs when the program runs, also if all of its inputs are constants.
`tests/graph/sweep.py` compares every operator below with the code, on ONNX's node tests
and on random cases: one that differs may not stand here.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from nanoloom.graph.operator_families import words
from nanoloom.graph.own_evaluation import is_own

# The same numbers (a zero may have another sign): moved, compared, computed in
# integers, or rounded once.
EXACT = words(
    """
    Abs Add And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
    CastLike Ceil Clip Compress Concat ConstantOfShape DepthToSpace
    DequantizeLinear Div Equal Expand EyeLike Flatten Floor Gather GatherElements
    GatherND Greater GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Max Min Mod
    Mul Neg NonZero Not OneHot Or Pad QuantizeLinear Range Reciprocal ReduceMax
    ReduceMin Relu Reshape Round ScatterElements ScatterND Shape Sign Size Slice
    SpaceToDepth Split Sqrt Squeeze Sub Tile TopK Transpose Trilu Unique Unsqueeze Where
    Xor
    """
)
# The same up to the roundings that `verify` allows: weights that a model computes from
# weights, and tables of positions.  By element types of the first input.
ROUNDED: dict[str, tuple[str, ...]] = {
    "Acos": ("float32", "float64"),
    "Acosh": ("float32", "float64"),
    "AffineGrid": ("float32",),
    "Asin": ("float32", "float64"),
    "Asinh": ("float32", "float64"),
    "Atan": ("float32", "float64"),
    "Atanh": ("float32", "float64"),
    "AveragePool": ("float32", "float64"),
    "BlackmanWindow": ("int32", "int64"),
    "CenterCropPad": ("float32", "float64"),
    "Col2Im": ("float32", "float64"),
    "Conv": ("float32", "float64"),
    "ConvInteger": ("int8", "uint8"),
    "Cos": ("float32", "float64"),
    "Cosh": ("float32", "float64"),
    "CumSum": ("float32", "float64", "int32", "int64"),
    "DFT": ("float32", "float64"),
    "DeformConv": ("float32",),
    "Det": ("float32", "float64"),
    "DynamicQuantizeLinear": ("float32",),
    "Einsum": ("float32", "float64", "int32", "int64"),
    "Exp": ("float32", "float64"),
    "Gemm": ("float32", "float64"),
    "GlobalAveragePool": ("float32",),
    "HammingWindow": ("int32", "int64"),
    "HannWindow": ("int32", "int64"),
    "HardSigmoid": ("float32", "float64"),
    "Hardmax": ("float32", "float64"),
    "InstanceNormalization": ("float32",),
    "LayerNormalization": ("float32",),
    "LeakyRelu": ("float32", "float64"),
    "Log": ("float32", "float64"),
    "LogSoftmax": ("float32", "float64"),
    "LpPool": ("float32",),
    "MatMul": ("float32", "float64", "int32", "int64"),
    "MatMulInteger": ("int8", "uint8"),
    "Mean": ("float32", "float64"),
    "MeanVarianceNormalization": ("float32",),
    "MelWeightMatrix": ("int64",),
    "Mish": ("float32",),
    "PRelu": ("float32", "float64"),
    "Pow": ("float32", "float64"),
    "QLinearMatMul": ("int8", "uint8"),
    "RMSNormalization": ("float32", "float64"),
    "ReduceL1": ("float32", "float64"),
    "ReduceL2": ("float32", "float64"),
    "ReduceLogSum": ("float32", "float64"),
    "ReduceLogSumExp": ("float32", "float64"),
    "ReduceMean": ("float32", "float64"),
    "ReduceProd": ("float32", "float64", "int64"),
    "ReduceSum": ("float32", "float64", "int32", "int64"),
    "ReduceSumSquare": ("float32", "float64"),
    "RotaryEmbedding": ("float32",),
    "STFT": ("float32",),
    "Shrink": ("float32", "float64", "int32", "int64"),
    "Sigmoid": ("float32",),
    "Sin": ("float32", "float64"),
    "Sinh": ("float32", "float64"),
    "Softmax": ("float32",),
    "Sum": ("float32", "float64"),
    "Tan": ("float32", "float64"),
    "Tanh": ("float32",),
    "ThresholdedRelu": ("float32", "float64"),
}


def agrees(node: ir.Node) -> bool:
    """Whether a node of ONNX's domain, known from outside, may be computed.

    By the reference, or by what stands in `own_evaluation.py` in its place.
    """
    if node.op_type in EXACT or is_own(node):
        return True
    first = node.inputs[0] if node.inputs else None
    if first is None or first.dtype is None:
        return False
    return first.dtype.numpy().name in ROUNDED.get(node.op_type, ())


def is_defined(node: ir.Node) -> bool:
    """Whether ONNX says what a node gives for its constants.

    It does not for the conversion of a float that lies beyond the integers.
    """
    x, y = node.inputs[0] if node.inputs else None, node.outputs[0].dtype
    if node.op_type not in ("Cast", "CastLike") or y is None:
        return True
    if x is None or x.const_value is None or not y.is_integer():
        return True
    if not x.const_value.dtype.is_floating_point():
        return True
    limits = ml_dtypes.iinfo(y.numpy())
    whole = np.trunc(x.const_value.numpy().astype(np.float64))
    inside = (whole >= float(limits.min)) & (whole < float(limits.max) + 1)
    return bool(inside.all())
