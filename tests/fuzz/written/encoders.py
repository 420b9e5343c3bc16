"""torch's own layers of transformers with all options."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written

NAMES = ("x, mask=None, pad=None", "x, m, mask=None, pad=None", "x, m, mask=None")


def transformers(d: Drawn) -> Written:
    """An encoder, a decoder, or both."""
    first, norm_first = d.flag(), d.flag()
    act = d.pick("'relu'", "'gelu'", "F.silu")
    order = f"batch_first={first}, norm_first={norm_first}, activation={act}"
    dtype = d.pick(torch.float32, torch.float32, torch.bfloat16, torch.float64)
    n, t, s = 2, 5, 3
    x = d.randn(*((n, t, 8) if first else (t, n, 8)), dtype=dtype)
    memory = d.randn(*((n, s, 8) if first else (s, n, 8)), dtype=dtype)
    way = d.number(0, 2)
    init, call = WAYS[way](d, order)
    named: dict[str, Any] = {}
    if d.flag():
        named["mask"] = causal(d, t, dtype)
    if "pad" in NAMES[way] and d.flag():
        named["pad"] = d.bools(n, t, share=0.3)
        named["pad"][:, 0] = False
    args = (x, memory) if way else (x,)
    calls = [(args, named), (tuple(y * 0.5 for y in args), named)]
    return Written(f"{NAMES[way]}\n  return {call}", calls, init, dtype=dtype)


def causal(d: Drawn, steps: int, dtype: Any) -> Any:
    """A mask of truth values, or of what is added."""
    later = torch.triu(torch.ones(steps, steps, dtype=torch.bool), 1)
    if d.flag():
        return later
    return torch.zeros(steps, steps, dtype=dtype).masked_fill(later, float("-inf"))


def layer(d: Drawn, order: str) -> str:
    return f"8, 2, 12, dropout=0.1, {order}, bias={d.chance(0.8)}"


def encoder(d: Drawn, order: str) -> tuple[str, str]:
    init = (
        f"self.e = nn.TransformerEncoder(nn.TransformerEncoderLayer({layer(d, order)}),"
        f" {d.number(1, 2)}, enable_nested_tensor={d.flag()},"
        f" norm={d.pick('None', 'nn.LayerNorm(8)')})"
    )
    more = d.pick("", ", is_causal=mask is not None")
    return init, f"self.e(x, mask=mask, src_key_padding_mask=pad{more})"


def decoder(d: Drawn, order: str) -> tuple[str, str]:
    init = (
        f"self.e = nn.TransformerDecoder(nn.TransformerDecoderLayer({layer(d, order)}),"
        f" {d.number(1, 2)})"
    )
    return init, "self.e(x, m, tgt_mask=mask, tgt_key_padding_mask=pad)"


def both(d: Drawn, order: str) -> tuple[str, str]:
    init = f"self.e = nn.Transformer(8, 2, 1, 1, 12, {order})"
    return init, "self.e(m, x, tgt_mask=mask)"


WAYS = (encoder, decoder, both)
KINDS = (transformers,)
