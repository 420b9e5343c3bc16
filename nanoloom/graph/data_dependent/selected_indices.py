"""The places of true elements: what NonZero and its kin are made of."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.data_dependent.count import Count, counts_of
from nanoloom.graph.data_dependent.node_builder import INT64, Maker
from nanoloom.graph.types import shape_of


def is_known(x: ir.Value | None) -> bool:
    return x is None or x.const_value is not None


def chosen_places(m: Maker, mask: ir.Value) -> tuple[ir.Value, Count]:
    """Places of the true elements of a row, in order; 0 behind them."""
    (extent,) = shape_of(mask)
    made, number = m.own("Places", [mask], [([extent], INT64), ([1], INT64)])
    return made, m.count(number, extent, *counts_of(mask).values())
