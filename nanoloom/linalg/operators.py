"""Every operator that nanoloom lowers itself, by family, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.linalg import (
    activations,
    arguments,
    casting,
    channel_normalization,
    comparison,
    control,
    conv_transpose,
    convolution,
    cumulative,
    elementwise,
    filling,
    gather,
    integer_convolution,
    integer_matmul,
    losses,
    matmul,
    normalization,
    pooling,
    quantization,
    random,
    recurrent,
    reductions,
    selection,
    shaping,
    softmax,
)
from nanoloom.linalg.builder import Builder
from nanoloom.linalg.node import Node
from nanoloom.linalg.tensor import Tensor

Lower = Callable[[Builder, Node], Tensor | Sequence[Tensor | None]]

OPERATORS: dict[str, Lower] = {
    **activations.OPERATORS,
    **arguments.OPERATORS,
    **casting.OPERATORS,
    **channel_normalization.OPERATORS,
    **comparison.OPERATORS,
    **control.OPERATORS,
    **conv_transpose.OPERATORS,
    **convolution.OPERATORS,
    **cumulative.OPERATORS,
    **elementwise.OPERATORS,
    **filling.OPERATORS,
    **gather.OPERATORS,
    **integer_convolution.OPERATORS,
    **integer_matmul.OPERATORS,
    **losses.OPERATORS,
    **matmul.OPERATORS,
    **normalization.OPERATORS,
    **pooling.OPERATORS,
    **quantization.OPERATORS,
    **random.OPERATORS,
    **recurrent.OPERATORS,
    **reductions.OPERATORS,
    **selection.OPERATORS,
    **shaping.OPERATORS,
    **softmax.OPERATORS,
}
