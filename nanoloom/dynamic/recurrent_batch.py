"""Recurrences, whose batch has samples of its own: a step is a product of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others
from nanoloom.dynamic.samples import are_of_steps

RECURRENT = ("GRU", "LSTM", "RNN", "Scan")


def require_steps(graph: ir.Graph, samples: Sequence[Mapping[str, int]]) -> None:
    """Raise NotDynamic for samples of recurrences, where a model has none.

    That is no reason of the model's: other samples have theirs.
    """
    found = any(node.op_type in RECURRENT for node in graph)
    if are_of_steps(samples) and not found:
        raise NotDynamic("", others=Others.ANY)
