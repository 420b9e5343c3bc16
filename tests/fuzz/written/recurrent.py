"""Recurrent layers with their options, cells in loops, sequences of several lengths."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written


def layers(d: Drawn) -> Written:
    """nn.RNN, nn.LSTM and nn.GRU: directions, projections, layers, given states."""
    name = d.pick("RNN", "LSTM", "GRU")
    ins, hidden, count = d.number(2, 5), d.number(3, 6), d.number(1, 3)
    both, first, bias = d.flag(), d.flag(), d.chance(0.7)
    proj = d.number(1, 2) if name == "LSTM" and d.flag() else 0
    more = ", nonlinearity='relu'" if name == "RNN" and d.flag() else ""
    more += f", proj_size={proj}" if proj else ""
    plain, state = d.chance(0.25), d.flag()
    dtype = d.pick(torch.float32, torch.float32, torch.float64, torch.bfloat16)
    steps, batches = (5, 3, 8), (2, 4, 3)
    calls: list[Any] = []
    for t, n in zip(steps, batches, strict=True):
        shape = (t, ins) if plain else (n, t, ins) if first else (t, n, ins)
        h = (count * (1 + both), *(() if plain else (n,)), proj or hidden)
        c = (*h[:-1], hidden)
        given: Any = d.randn(*h, dtype=dtype)
        if name == "LSTM":
            given = (given, d.randn(*c, dtype=dtype))
        x = d.randn(*shape, dtype=dtype)
        calls.append(((x, given) if state else (x,), {}))
    result = d.pick(
        "y, h", "y[-1] if y.dim() == 2 else y[:, -1]", "{'y': y, 'h': h}", "h"
    )
    init = (f"self.r = nn.{name}({ins}, {hidden}, {count}, bias={bias}, "
            f"batch_first={first}, bidirectional={both}{more})")  # fmt: skip
    names = "x, s" if state else "x"
    return Written(f"{names}\n  y, h = self.r({names})\n  return {result}",
                   calls if not d.chance(0.3) else calls[:1], init,
                   shapes=auto_shapes(calls[0], calls[1]), dtype=dtype)  # fmt: skip


def auto_shapes(call: Any, other: Any) -> Any:
    """Open where two calls have other sizes."""

    def of(x: Any, y: Any) -> Any:
        if isinstance(x, torch.Tensor):
            pairs = enumerate(zip(x.shape, y.shape, strict=True))
            return {i: Dim.AUTO for i, (a, b) in pairs if a != b}
        if isinstance(x, tuple | list):
            return type(x)(of(a, b) for a, b in zip(x, y, strict=True))
        if isinstance(x, dict):
            return {k: of(v, y[k]) for k, v in x.items()}
        return None

    return of(call[0], other[0])


def cells(d: Drawn) -> Written:
    """A cell in a loop of Python, or steps that gather what they give."""
    name = d.pick("RNNCell", "LSTMCell", "GRUCell")
    hidden = d.number(3, 5)
    state = "h = None" if d.flag() else "h = x.new_zeros(x.shape[0], H)"
    if name == "LSTMCell":
        state = (
            "h = None" if "None" in state else "h = (x.new_zeros(x.shape[0], H),) * 2"
        )
    init = f"self.c = nn.{name}(4, {hidden}, bias={d.flag()})"
    out = "h[0]" if name == "LSTMCell" else "h"
    forward = f"""x
  {state.replace("H", str(hidden))}
  ys = []
  for t in range(x.shape[1]):
    h = self.c(x[:, t], h)
    ys.append({out})
  return torch.stack(ys, {d.pick(0, 1)}), h"""
    calls: list[Any] = [((d.randn(n, 4, 4),), {}) for n in (2, 3, 1)]
    return Written(forward, calls, init, shapes={"x": {0: Dim("n")}})


def packed(d: Drawn) -> Written:
    """pack_padded_sequence and back."""
    name, first, both = d.pick("RNN", "LSTM", "GRU"), d.flag(), d.flag()
    ordered = d.flag()
    shape = (3, 5, 4) if first else (5, 3, 4)
    lengths = torch.tensor([5, 3, 2] if ordered else [2, 5, 3])
    init = f"self.r = nn.{name}(4, 3, batch_first={first}, bidirectional={both})"
    forward = f"""x, lengths
  order = {{'batch_first': {first}, 'enforce_sorted': {ordered}}}
  p = nn.utils.rnn.pack_padded_sequence(x, lengths, **order)
  y, h = self.r(p)
  back = {{'batch_first': {first}, 'padding_value': {d.pick(0.0, -1.0)}}}
  y, n = nn.utils.rnn.pad_packed_sequence(y, **back)
  return y, n, h"""
    calls: list[Any] = [((d.randn(*shape), lengths), {}) for _ in range(2)]
    return Written(forward, calls, init, whole=False)


def masked_steps(d: Drawn) -> Written:
    """Lengths as a mask: the last real step of each row."""
    name = d.pick("LSTM", "GRU")
    last = d.pick("y[torch.arange(x.shape[0]), lengths - 1]",
                  "y.gather(1, (lengths - 1).view(-1, 1, 1)"
                  ".expand(-1, 1, y.shape[-1])).squeeze(1)",
                  "(y * m[..., None]).sum(1) / lengths[:, None]",
                  "y.masked_fill(~m[..., None], float('-inf')).amax(1)")  # fmt: skip
    forward = f"""x, lengths
  y, h = self.r(x)
  m = torch.arange(x.shape[1])[None] < lengths[:, None]
  return {last}, m"""
    calls: list[Any] = []
    for n, t in ((3, 5), (2, 7), (1, 4)):
        calls.append(((d.randn(n, t, 4), d.ints(1, t + 1, n)), {}))
    init = f"self.r = nn.{name}(4, 3, batch_first=True, bidirectional={d.flag()})"
    shapes = {"x": {0: Dim("n"), 1: Dim("t")}, "lengths": {0: Dim("n")}}
    return Written(forward, calls, init, shapes=shapes)


KINDS = (layers, layers, cells, packed, masked_steps)
