"""Tables of rows scored by a model: columns in, columns out, in any order and size."""

from __future__ import annotations

from nanoloom.scoring.scorer import Scorer

__all__ = ["Scorer"]
