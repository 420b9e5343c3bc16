"""torch's fused layer of an encoder and its attention, in the operators they stand for.

nn.TransformerEncoder and nn.MultiheadAttention call them without gradients.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

Tensor = Any


def attended(
    x: Tensor, heads: int, qkv: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor],
    mask: Tensor | None, mask_type: int | None,
) -> Tensor:  # fmt: skip
    """Attention of rows among themselves; a mask is true where a key is not seen."""
    batch, length, width = x.shape
    parts = F.linear(x, *qkv).reshape(batch, length, 3, heads, width // heads)
    q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
    seen = None
    if mask is not None:
        seen = mask.logical_not() if mask.dtype == torch.bool else mask
        if mask_type == 1:  # [batch, keys]
            seen = seen[:, None, None, :]
        elif seen.dim() == 3:  # [batch * heads, rows, keys]
            seen = seen.reshape(batch, heads, length, length)
    made = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return F.linear(made.transpose(1, 2).reshape(batch, length, width), *out)


def encoder_layer(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool,
    eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
    norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor,
    ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    def attend(x: Tensor) -> Tensor:
        qkv, out = (qkv_weight, qkv_bias), (proj_weight, proj_bias)
        return attended(x, num_heads, qkv, out, mask, mask_type)

    def feed(x: Tensor) -> Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        inner = F.gelu(inner) if use_gelu else F.relu(inner)
        return F.linear(inner, ffn_weight_2, ffn_bias_2)

    def first(x: Tensor) -> Tensor:
        return F.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def second(x: Tensor) -> Tensor:
        return F.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(first(src))
        return x + feed(second(x))
    x = first(src + attend(src))
    return second(x + feed(x))


RULES: dict[Any, Any] = {
    torch.ops.aten._transformer_encoder_layer_fwd.default: encoder_layer,
}
