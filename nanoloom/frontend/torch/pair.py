"""A complex tensor as two real ones."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir


@dataclass(frozen=True)
class Pair:
    re: ir.Value
    im: ir.Value
