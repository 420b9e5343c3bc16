"""Operators by what they make of the order of dimensions."""

from __future__ import annotations

from collections.abc import Set

import onnx_ir as ir

from nanoloom.graph.folding import words

# Of pixels and their channels
SPATIAL = words(
    """
    Conv ConvInteger ConvTranspose QLinearConv MaxPool AveragePool LpPool
    GlobalAveragePool GlobalMaxPool GlobalLpPool
    """
)
# An element of each input, wherever it lies
ELEMENTWISE = words(
    """
    Abs Add And Cast Ceil Celu Clip Div Elu Equal Erf Exp Floor Gelu Greater
    GreaterOrEqual HardSigmoid HardSwish Identity LeakyRelu Less LessOrEqual Log Max
    Min Mish Mul Neg Not Or Pow Reciprocal Relu Round Selu Sigmoid Sign Softplus
    Softsign Sqrt Sub Sum Swish Tanh ThresholdedRelu Where PRelu Dropout
    """
)
# Along dimensions that a node names
REDUCTIONS = words(
    """
    ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2
    ReduceSumSquare ReduceLogSum ReduceLogSumExp
    """
)


def is_tensor_op(node: ir.Node, names: Set[str]) -> bool:
    """Whether a node is one of ONNX's operators on tensors."""
    return node.domain in ("", "ai.onnx") and node.op_type in names
