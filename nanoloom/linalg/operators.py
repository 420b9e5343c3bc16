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
    einstein,
    elementwise,
    filling,
    gather,
    integer_convolution,
    integer_matmul,
    losses,
    matmul,
    normalization,
    padding,
    patches,
    pooling,
    quantization,
    random,
    recurrent,
    reductions,
    scatter,
    selection,
    shaping,
    softmax,
    sorting,
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
    **einstein.OPERATORS,
    **elementwise.OPERATORS,
    **filling.OPERATORS,
    **gather.OPERATORS,
    **integer_convolution.OPERATORS,
    **integer_matmul.OPERATORS,
    **losses.OPERATORS,
    **matmul.OPERATORS,
    **normalization.OPERATORS,
    **padding.OPERATORS,
    **patches.OPERATORS,
    **pooling.OPERATORS,
    **quantization.OPERATORS,
    **random.OPERATORS,
    **recurrent.OPERATORS,
    **reductions.OPERATORS,
    **scatter.OPERATORS,
    **selection.OPERATORS,
    **shaping.OPERATORS,
    **softmax.OPERATORS,
    **sorting.OPERATORS,
}
