"""Graphs inside of graphs, as deep as a file can hold and deeper."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from nanoloom.frontend.onnx import load
from tests.frontend import models
from tests.frontend.models import refusal


def nested(levels: int) -> onnx.ModelProto:
    """An If in an If in an If ..."""
    graph = helper.make_graph(
        [models.unary("x", "e")], "g", [], [models.value("e", [2, 3])]
    )
    for i in range(levels):
        node_ = helper.make_node("If", ["f"], [f"y{i}"], then_branch=graph)
        other = helper.make_graph(
            [models.unary("x", f"o{i}")], "o", [], [models.value(f"o{i}", [2, 3])]
        )
        node_.attribute.append(helper.make_attribute("else_branch", other))
        graph = helper.make_graph([node_], "g", [], [models.value(f"y{i}", [2, 3])])
    inputs = [models.value("x", [2, 3]), models.value("f", [], TensorProto.BOOL)]
    return models.model(graph.node, inputs, graph.output)


def test_as_deep_as_a_file_can_hold() -> None:
    assert sum(1 for _ in load(nested(30)).graph.all_nodes()) == 61
    assert "has graphs nested 31 deep" in refusal(nested(31))


@pytest.mark.parametrize("levels", (34, 200))
def test_deep_nesting(levels: int) -> None:
    """Written by hand: protobuf does not even build messages this deep."""
    graph = b""
    for _ in range(levels):
        attribute = field(6, graph + b"\x12\x01g") + b"\x0a\x01b\xa0\x01\x05"
        node_ = field(5, attribute) + b"\x22\x02If"
        graph = field(1, node_)
    content = b"\x08\x09" + field(7, graph) + field(8, b"\x10\x12")
    text = refusal(content)
    assert "has graphs nested too deep for protobuf" in text


def field(number: int, body: bytes) -> bytes:
    size, made = len(body), bytearray([number << 3 | 2])
    while size > 127:
        made.append(size & 127 | 128)
        size >>= 7
    return bytes(made) + bytes([size]) + body


def test_deep_nesting_of_large_graphs() -> None:
    graph = field(10, b"x" * 5000)
    for _ in range(60):
        graph = field(1, field(5, field(6, graph)))
    assert "nested more than 100 messages deep" in refusal(
        b"\x08\x09" + field(7, graph)
    )
