"""Every operator of ONNX Runtime's own that has an expansion, by kind, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from nanoloom.frontend.microsoft import (
    activations,
    attention,
    codebooks,
    crops,
    experts,
    gates,
    grouped_attention,
    linear_algebra,
    linear_attention,
    movement,
    normalization,
    products,
    quantized,
    quantized_products,
    quantized_weights,
    recurrent,
    rotary,
    tokens,
)
from nanoloom.frontend.microsoft.replacement import Replacement

Expansion = Callable[[Replacement], ir.Value | Sequence[ir.Value | None]]

OPERATORS: dict[str, Expansion] = {
    **activations.OPERATORS,
    **attention.OPERATORS,
    **codebooks.OPERATORS,
    **crops.OPERATORS,
    **experts.OPERATORS,
    **gates.OPERATORS,
    **grouped_attention.OPERATORS,
    **linear_algebra.OPERATORS,
    **linear_attention.OPERATORS,
    **movement.OPERATORS,
    **normalization.OPERATORS,
    **products.OPERATORS,
    **quantized.OPERATORS,
    **quantized_products.OPERATORS,
    **quantized_weights.OPERATORS,
    **recurrent.OPERATORS,
    **rotary.OPERATORS,
    **tokens.OPERATORS,
}
# What ONNX Runtime writes into ONNX's own domain, too.
DEFAULT_DOMAIN = frozenset(
    (
        "LayerNormalization",  # of older models than the operator itself
        "SimplifiedLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    )
)
