"""Small pictures of four kinds, drawn with noise: what the network learns to tell.

Stripes along either axis or diagonal, of a random width, phase and contrast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pictures = NDArray[np.float32]  # [count, 1, SIZE, SIZE]
Kinds = NDArray[np.int64]  # [count], 0 to 3

SIZE = 16
DIRECTIONS = ((1, 0), (0, 1), (1, 1), (1, -1))
NOISE = 0.7


def draw(count: int, seed: int) -> tuple[Pictures, Kinds]:
    """So many pictures, and which kind each is of."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, len(DIRECTIONS), count)
    steps = np.array(DIRECTIONS)[kinds]
    width = random.uniform(2.5, 5, (count, 1, 1))
    phase = random.uniform(0, 2 * np.pi, (count, 1, 1))
    down, across = np.mgrid[:SIZE, :SIZE]
    along = steps[:, :1, None] * down + steps[:, 1:, None] * across
    contrast = random.uniform(0.5, 1.5, (count, 1, 1))
    stripes = contrast * np.sin(2 * np.pi * along / width + phase)
    noise = random.normal(0, NOISE, stripes.shape)
    return (stripes + noise).astype(np.float32)[:, None], kinds
