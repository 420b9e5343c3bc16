"""Where a value comes from, also if it has become a constant since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

KEY = "nanoloom.origin"


@dataclass(frozen=True)
class Origin:
    """The node that made a value: its operator, inputs and attributes."""

    op: str
    inputs: tuple[ir.Value | None, ...]
    attributes: Mapping[str, ir.Attr]

    @classmethod
    def of(cls, node: ir.Node) -> Origin:
        op = node.op_type if node.domain in ("", "ai.onnx") else ""
        return cls(op, tuple(node.inputs), dict(node.attributes))

    def int(self, name: str, default: int) -> int:
        found = self.attributes.get(name)
        return default if found is None else found.as_int()

    def input(self, index: int) -> ir.Value | None:
        return self.inputs[index] if index < len(self.inputs) else None


def remember(value: ir.Value, node: ir.Node) -> None:
    """Note which node a constant was folded from, before the node is removed."""
    value.meta[KEY] = Origin.of(node)


def origin_of(value: ir.Value | None) -> Origin | None:
    """What makes a value, or made it; None for inputs and given constants."""
    if value is None:
        return None
    node = value.producer()
    return Origin.of(node) if node is not None else value.meta.get(KEY)


def numbers(node: ir.Node, name: str) -> list[int]:
    """An attribute, as numbers; none where it is missing."""
    found = node.attributes.get(name)
    if found is None:
        return []
    alone = found.type == ir.AttributeType.INT
    return [found.as_int()] if alone else list(found.as_ints())
