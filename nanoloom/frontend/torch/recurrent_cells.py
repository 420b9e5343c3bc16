"""Cells of recurrences for batches of any size: torch's own rules ask for a number."""

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


RULES: dict[Any, Any] = {
    aten.lstm_cell.default: lstm_cell, aten.gru_cell.default: gru_cell,
}  # fmt: skip
