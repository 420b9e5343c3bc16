"""Which convolutions of bytes read an image in the order that models have."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from nanoloom.graph.integer_convolutions import PLACES
from nanoloom.graph.nchw_int8_conv import FROM_PLANES
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom.target import by_name
from tests.graph.models import operators
from tests.linalg.bounds import sample
from tests.linalg.single import model_of

VNNI = "x86-64-v4+avx512vnni"


def graph_of(
    channels: int, kernel: tuple[int, ...], target: str, **attributes: Any
) -> ir.Graph:
    parts = channels // attributes.get("group", 1)
    arrays = [
        sample(1, (1, channels, *(12,) * len(kernel)), "uint8", 0, 255),
        sample(2, (6, parts, *kernel), "int8", -128, 127),
        np.array(9, np.uint8),
    ]
    model, _ = model_of("ConvInteger", arrays, attributes, constants=(1, 2))
    on = by_name(target)
    return optimize(ir.from_proto(model), OPERATORS.keys(), None, on).graph


@pytest.mark.parametrize(
    ("channels", "kernel", "target", "attributes", "reads"),
    [
        (3, (3, 3), VNNI, {}, True),
        (3, (7, 7), VNNI, {"strides": [2, 2], "dilations": [2, 1]}, True),
        (2, (7,), VNNI, {}, True),
        (3, (3, 3), "aarch64+dotprod", {}, True),
        (3, (5, 5), VNNI, {}, True),  # six groups of four, or three and three numbers
        (3, (5, 5), "x86-64-v3+avxvnni", {}, False),
        (4, (3, 3), VNNI, {}, False),  # four groups, or three
        (5, (5, 5), VNNI, {}, False),  # ten groups, or six and one number
        (1, (3, 3), VNNI, {}, False),  # a single channel is in front and last
        (16, (3, 3), VNNI, {}, False),
        (3, (3, 3), VNNI, {"dilations": [1, 2]}, False),  # pixels lie apart
        (3, (3, 3), VNNI, {"group": 3}, False),
        (3, (3, 3), "x86-64-v3", {}, False),  # no dot products of four
        (3, (3, 3), "armv9-sve2", {}, False),
        (3, (3, 3), "sapphirerapids", {}, False),  # tile registers take 64
    ],
    ids=str,
)
def test_what_is_read_in_planes(
    channels: int, kernel: Any, target: str, attributes: Any, reads: bool
) -> None:
    graph = graph_of(channels, kernel, target, **attributes)
    (node,) = (n for n in graph if (n.domain, n.op_type) in PLACES)
    assert (FROM_PLANES in node.attributes) == reads
    assert operators(graph).count("Transpose") == (1 if reads else 2)
