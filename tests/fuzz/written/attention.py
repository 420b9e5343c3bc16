"""Attention as a layer with all options, and as a function."""

from __future__ import annotations

from typing import Any

from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written


def heads(d: Drawn) -> Written:
    first = d.flag()
    kdim, vdim = d.pick(8, 8, 6), d.pick(8, 8, 5)
    init = (
        f"self.a = nn.MultiheadAttention(8, {d.pick(1, 2, 4)}, bias={d.flag()},"
        f" add_bias_kv={d.chance(0.3)}, add_zero_attn={d.chance(0.3)}, kdim={kdim},"
        f" vdim={vdim}, batch_first={first})"
    )
    n, t, s = 3, 4, d.pick(4, 6)
    plain = d.chance(0.2)

    def shape(length: int, width: int) -> tuple[int, ...]:
        return (
            (length, width)
            if plain
            else (n, length, width)
            if first
            else (length, n, width)
        )

    q, k, v = d.randn(*shape(t, 8)), d.randn(*shape(s, kdim)), d.randn(*shape(s, vdim))
    named: dict[str, Any] = {}
    if d.flag():
        named["key_padding_mask"] = d.bools(*((s,) if plain else (n, s)), share=0.2)
    if d.flag():
        mask = d.bools(t, s, share=0.2)
        named["attn_mask"] = mask if d.flag() else mask.float() * -5
    need = d.pick("", ", need_weights=False", ", average_attn_weights=False")
    body = (
        "q, k, v, key_padding_mask=None, attn_mask=None\n  y, w = self.a(q, k, v,"
        f" key_padding_mask=key_padding_mask, attn_mask=attn_mask{need})\n  return y, w"
    )
    return Written(body, [((q, k, v), named), ((q * 2, k, v), named)], init)


def scaled(d: Drawn) -> Written:
    """scaled_dot_product_attention with masks, scales, causal, fewer heads of keys."""
    dtype = d.float_type()
    groups = d.flag()
    h = 4
    kv = 2 if groups else h
    mask = d.pick("", "", ", attn_mask=m", ", is_causal=True")
    more = mask + (", enable_gqa=True" if groups else "") + d.pick("", ", scale=0.3")
    calls: list[Any] = []
    kind = d.pick("bool", "float", "wide")
    for n, t, s in ((2, 4, 6), (3, 5, 3), (1, 1, 8)):
        m = d.bools(t, s, share=0.7)
        m[:, 0] = True
        m = m if kind == "bool" else (~m).to(dtype) * -4
        m = m.expand(n, 1, t, s).clone() if kind == "wide" else m
        calls.append(
            (
                (
                    d.randn(n, h, t, 8, dtype=dtype),
                    d.randn(n, kv, s, 8, dtype=dtype),
                    d.randn(n, kv, s, 8, dtype=dtype),
                    m,
                ),
                {},
            )
        )
    a = {0: Dim.AUTO, 2: Dim.AUTO}
    shapes: Any = {
        "q": a,
        "k": a,
        "v": a,
        "m": (
            {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO}
            if kind == "wide"
            else {0: Dim.AUTO, 1: Dim.AUTO}
        ),
    }
    return Written(
        f"q, k, v, m\n  return F.scaled_dot_product_attention(q, k, v{more})",
        calls,
        shapes=shapes,
        dtype=dtype,
    )


KINDS = (heads, scaled)
