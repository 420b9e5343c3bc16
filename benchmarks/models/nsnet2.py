"""NSNet2, the noise suppressor of the DNS challenge: two GRU layers between linears.

The network gives a gain for every frequency of every frame; the spectral transforms
around it are not part of the model.
"""

from __future__ import annotations

import torch
from torch import nn

GAIN = 1.0
# frequency bins, GRU width, width of the two layers behind
FULL = (161, 400, 600)
SMALL = (13, 19, 23)


class NsNet2(nn.Module):
    """[batch, frames, bins] -> gains in 0..1 of the same shape."""

    def __init__(self, bins: int, hidden: int, wide: int) -> None:
        super().__init__()
        self.encode = nn.Linear(bins, hidden)
        self.recur = nn.GRU(hidden, hidden, num_layers=2, batch_first=True)
        self.decode = nn.Sequential(
            nn.Linear(hidden, wide),
            nn.ReLU(),
            nn.Linear(wide, wide),
            nn.ReLU(),
            nn.Linear(wide, bins),
            nn.Sigmoid(),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        frames, _ = self.recur(self.encode(features))
        return self.decode(frames)


def make(name: str, small: bool) -> nn.Module:
    return NsNet2(*(SMALL if small else FULL))
