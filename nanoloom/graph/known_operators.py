"""Operators that nobody knows are refused by their names, before their shapes are."""

from __future__ import annotations

from collections.abc import Mapping, Set

import onnx_ir as ir

from nanoloom.frontend.problems import Problem, operator_problems, refuse
from nanoloom.graph.types import operator_name
from nanoloom.graph.unique_names import nested


def require_known_operators(
    graph: ir.Graph, direct: Set[str], opsets: Mapping[str, int]
) -> None:
    """Raise Unsupported, in one sentence, for operators outside of ONNX.

    direct: those that linalg lowers itself, some of them nanoloom's own.
    """
    found: list[Problem] = []
    for node in nested(graph):
        lowered = operator_name(node) in direct
        found += operator_problems(node, opsets, lowered=lowered)
    refuse(found)
