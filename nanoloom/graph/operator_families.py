"""Operators that are alike to every part of the compiler, named once."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Each element from those at its place: inputs are broadcast to one shape as in numpy.
ELEMENTWISE = words(
    """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot
    BitwiseOr BitwiseXor Cast Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu
    Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less
    LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round
    Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh
    ThresholdedRelu Where Xor
    """
)
# Along dimensions that a node names.
REDUCTIONS = words(
    """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
    ReduceProd ReduceSum ReduceSumSquare
    """
)
