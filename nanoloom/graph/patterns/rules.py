"""Rules are equations: a pattern, and what puts the other side in its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.patterns.pattern import ANY, Found, Pattern

E = TypeVar("E", bound=GraphEditor)


@dataclass(frozen=True, eq=False)
class Rule(Generic[E]):
    """rewrite: says whether it changed the graph; else the next way is tried."""

    pattern: Pattern
    rewrite: Callable[[E, ir.Node, Found], bool]


def apply_rules(editor: E, rules: Iterable[Rule[E]]) -> None:
    """Rewrite a graph in place, node by node, by the rules of each one's operator."""
    by_root: dict[str, list[Rule[E]]] = defaultdict(list)
    for rule in rules:
        for name in rule.pattern.roots:
            by_root[name].append(rule)
    anywhere = by_root.pop(ANY, [])
    for node in editor.graph:
        for rule in (*by_root.get(node.op_type, ()), *anywhere):
            if node.graph is not editor.graph:
                break
            found = rule.pattern.match(node)
            any(rule.rewrite(editor, node, values) for values in found)
