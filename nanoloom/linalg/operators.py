"""Every operator that nanoloom lowers itself, by family, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.classical import (
    features,
    linear_models,
    mel,
    ngrams,
    svm,
    trees,
)
from nanoloom.linalg.control import bodies, recurrent, unfit_branch
from nanoloom.linalg.elementwise import (
    activations,
    arithmetic,
    casting,
    comparison,
    integer_sums,
    lookup_tables,
    quantization,
    random,
)
from nanoloom.linalg.movement import (
    filling,
    gather,
    grids,
    optionals,
    padding,
    patches,
    resizing,
    roi_align,
    roi_pool,
    scatter,
    selection,
    shaping,
    unpooling,
)
from nanoloom.linalg.products import (
    binary_products,
    conv_transpose,
    convolution,
    deformable,
    determinant,
    einsum,
    integer_convolution,
    integer_matmul,
    integer_products,
    matmul,
    spectral,
)
from nanoloom.linalg.reductions import (
    arguments,
    channel_normalization,
    cumulative,
    integer_pooling,
    losses,
    normalization,
    pooling,
    reduce,
    softmax,
    sorting,
)
from nanoloom.linalg.special import table as special

Lower = Callable[[Builder, Node], Tensor | Sequence[Tensor | None]]

OPERATORS: dict[str, Lower] = {
    **activations.OPERATORS,
    **arguments.OPERATORS,
    **casting.OPERATORS,
    **channel_normalization.OPERATORS,
    **comparison.OPERATORS,
    **binary_products.OPERATORS,
    **bodies.OPERATORS,
    **unfit_branch.OPERATORS,
    **conv_transpose.OPERATORS,
    **convolution.OPERATORS,
    **cumulative.OPERATORS,
    **deformable.OPERATORS,
    **determinant.OPERATORS,
    **einsum.OPERATORS,
    **arithmetic.OPERATORS,
    **integer_sums.OPERATORS,
    **features.OPERATORS,
    **filling.OPERATORS,
    **gather.OPERATORS,
    **grids.OPERATORS,
    **integer_convolution.OPERATORS,
    **integer_matmul.OPERATORS,
    **integer_pooling.OPERATORS,
    **linear_models.OPERATORS,
    **losses.OPERATORS,
    **matmul.OPERATORS,
    **mel.OPERATORS,
    **ngrams.OPERATORS,
    **normalization.OPERATORS,
    **optionals.OPERATORS,
    **padding.OPERATORS,
    **patches.OPERATORS,
    **pooling.OPERATORS,
    **quantization.OPERATORS,
    **random.OPERATORS,
    **recurrent.OPERATORS,
    **reduce.OPERATORS,
    **integer_products.OPERATORS,
    **resizing.OPERATORS,
    **roi_align.OPERATORS,
    **roi_pool.OPERATORS,
    **scatter.OPERATORS,
    **selection.OPERATORS,
    **shaping.OPERATORS,
    **softmax.OPERATORS,
    **sorting.OPERATORS,
    **special.OPERATORS,
    **spectral.OPERATORS,
    **svm.OPERATORS,
    **lookup_tables.OPERATORS,
    **trees.OPERATORS,
    **unpooling.OPERATORS,
}
