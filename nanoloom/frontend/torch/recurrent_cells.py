"""Recurrences in torch's simpler operators, for any numbers of rows and steps.

torch's own rules ask for these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

aten: Any = torch.ops.aten
Tensor = torch.Tensor


def lstm_cell(
    x: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gates in the order input, forget, cell, output."""
    hidden, cell = hx
    gates = F.linear(x, w_ih, b_ih) + F.linear(hidden, w_hh, b_hh)
    into, keep, new, out = gates.chunk(4, -1)
    cell = keep.sigmoid() * cell + into.sigmoid() * new.tanh()
    return out.sigmoid() * cell.tanh(), cell


def gru_cell(
    x: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Gates in the order reset, update, new; the reset one is of what is new."""
    reset, update, new = F.linear(x, w_ih, b_ih).chunk(3, -1)
    of_reset, of_update, of_new = F.linear(hx, w_hh, b_hh).chunk(3, -1)
    candidate = (new + (reset + of_reset).sigmoid() * of_new).tanh()
    keep = (update + of_update).sigmoid()
    return (hx - candidate) * keep + candidate


def projected_lstm(
    x: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """With projections of its states, which ONNX's LSTM has not: as a scan of steps."""
    del dropout, train  # refused where they matter
    directions, each = 2 if bidirectional else 1, 5 if has_biases else 3
    x, ends = x.transpose(0, 1) if batch_first else x, list[tuple[Tensor, Tensor]]()
    for layer in range(num_layers):
        rows: list[Tensor] = []
        for place in range(layer * directions, (layer + 1) * directions):
            begin = hx[0][place], hx[1][place]
            back = place % directions == 1
            own = params[place * each : (place + 1) * each]
            *end, made = projected(x.flip(0) if back else x, begin, own)
            rows.append(made.flip(0) if back else made)
            ends.append((end[0], end[1]))
        x = torch.cat(rows, -1)
    hidden, cell = (torch.stack(state) for state in zip(*ends, strict=True))
    return x.transpose(0, 1) if batch_first else x, hidden, cell


def projected(
    x: Tensor, begin: tuple[Tensor, Tensor], own: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """One direction of a layer: its last states, and what each step gives."""
    w_ih, w_hh, *biases, w_hr = own
    held = (w_hh, w_hr, *biases[1:])
    into = F.linear(x, w_ih, *biases[:1])

    def step(
        hidden: Tensor, cell: Tensor, row: Tensor, w_hh: Tensor, w_hr: Tensor,
        *bias: Tensor,
    ) -> list[Tensor]:  # fmt: skip
        into, keep, new, out = (row + F.linear(hidden, w_hh, *bias)).chunk(4, -1)
        cell = keep.sigmoid() * cell + into.sigmoid() * new.tanh()
        hidden = F.linear(out.sigmoid() * cell.tanh(), w_hr)
        return [hidden, cell, hidden.clone()]

    scan: Any = torch.ops.higher_order.scan
    made = scan(step, [state.clone() for state in begin], [into], held)
    return made[0], made[1], made[2]


RULES: dict[Any, Any] = {
    aten.lstm.input: projected_lstm,
    aten.lstm_cell.default: lstm_cell, aten.gru_cell.default: gru_cell,
}  # fmt: skip
