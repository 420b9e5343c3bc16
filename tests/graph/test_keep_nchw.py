"""Windows over few channels stay in planes where vectors have any length."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from nanoloom.graph.keep_nchw import IN_PLANES
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom.target import by_name
from tests.graph.models import operators, proto

POOL = "y = MaxPool<kernel_shape = [3, 3]>(x)"
DEPTHWISE = "y = Conv<group = 3>(x, w)"
ANY, KNOWN = "rv64gcv", "x86-64-v4"


def graph_of(nodes: str, target: str, channels: int, row: int) -> ir.Graph:
    shape, made = f"1, {channels}, 9, {row + 2}", f"1, {channels}, 7, {row}"
    ones = ", ".join("1" * 9 * channels)
    weights = f"<float[{channels}, 1, 3, 3] w = {{{ones}}}>" if "Conv" in nodes else ""
    text = f"g (float[{shape}] x) => (float[{made}] y) {weights} {{ {nodes} }}"
    model = ir.from_proto(proto(text))
    return optimize(model, OPERATORS.keys(), None, by_name(target)).graph


@pytest.mark.parametrize(
    ("nodes", "target", "channels", "row", "stays"),
    [
        (POOL, ANY, 3, 17, True),
        (POOL, "armv9-sve2", 3, 17, True),
        (POOL, KNOWN, 3, 17, False),
        (POOL, ANY, 17, 17, False),  # rows are no longer than channels
        (DEPTHWISE, ANY, 3, 17, True),
        (DEPTHWISE, KNOWN, 3, 17, False),
    ],
)
def test_what_stays_in_planes(
    nodes: str, target: str, channels: int, row: int, stays: bool
) -> None:
    graph = graph_of(nodes, target, channels, row)
    assert operators(graph).count("Transpose") == (0 if stays else 2)
    assert any(IN_PLANES in node.attributes for node in graph) == stays


def test_a_pool_behind_channels_last_takes_them_so() -> None:
    nodes = """a = Conv<group = 3>(x, w) b = Transpose<perm = [0, 2, 3, 1]>(a)
        c = Transpose<perm = [0, 3, 1, 2]>(b) d = Relu(c)
        y = MaxPool<kernel_shape = [1, 1]>(d)"""
    dense = nodes.replace("Conv<group = 3>(x, w)", "Conv<pads = [0, 0, 0, 0]>(x, v)")
    ones = ", ".join("1" * 81)
    text = f"""g (float[1, 3, 9, 19] x) => (float[1, 3, 7, 17] y)
        <float[3, 3, 3, 3] v = {{{ones}}}> {{ {dense} }}"""
    model = ir.from_proto(proto(text))
    graph = optimize(model, OPERATORS.keys(), None, by_name(ANY)).graph
    pools = [node for node in graph if node.op_type == "MaxPool"]
    assert [node.domain for node in pools] == ["nanoloom"]
