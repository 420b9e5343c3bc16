"""Means over axes whose sizes are known at run time: what they are divided by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from nanoloom.dynamic.constants import APART, Wholes, wholes_of
from nanoloom.ir.mlir import context, ir
from tests.dynamic.compared import PAIRS, compare, uniform

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
# Sums of 12000 numbers below 1, added up in parts.
BOUND = 2e-5
MEANS = {
    "instances": """float[n, 4, h, w] y)
    <float[4] scale = {1, -2, 3, 0.5}, float[4] bias = {0.1, 0.2, -0.3, 0}>
    { y = InstanceNormalization(x, scale, bias) }""",
    "groups": """float[n, 4, h, w] y)
    <float[4] scale = {1, -2, 3, 0.5}, float[4] bias = {0.1, 0.2, -0.3, 0}>
    { y = GroupNormalization<num_groups = 2>(x, scale, bias) }""",
    "pooled": "float[n, 4, 1, 1] y) { y = GlobalAveragePool(x) }",
    "mean": """float[n, 4] y) <int64[2] axes = {2, 3}>
    { y = ReduceMean<keepdims = 0>(x, axes) }""",
    "layer": """float[n, 4, h, w] y) <float scale = {1.5}>
    { y = LayerNormalization<axis = 1>(x, scale) }""",
    "all": "float[] y) { y = ReduceMean<keepdims = 0>(x) }",
    "deviation": """float[n, 4, h, w] y) <int64[2] axes = {0, 2}>
    { y = MeanVarianceNormalization<axes = [0, 2, 3]>(x) }""",
}


def of_images(text: str, batch: str = "1") -> onnx.ModelProto:
    text = text.replace("[n,", f"[{batch},")
    return parser.parse_model(f"{HEAD}g (float[{batch}, 4, h, w] x) => ({text}")


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", MEANS)
def test_over_any_height_and_width(tmp_path: Path, name: str) -> None:
    model = of_images(MEANS[name])
    sizes = [{"h": h, "w": w} for h, w in PAIRS if name != "deviation" or h * w > 1]
    made = compare(model, sizes, tmp_path, uniform, BOUND)
    assert any(np.abs(y["y"]).max() > 0.1 for y in made)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", ["instances", "groups", "pooled"])
def test_of_any_batch(tmp_path: Path, name: str) -> None:
    model = of_images(MEANS[name], "n")
    sizes = [{"n": 1 + i % 5, "h": h, "w": w} for i, (h, w) in enumerate(PAIRS)]
    compare(model, sizes, tmp_path, uniform, BOUND)


def test_a_share_is_told_from_its_neighbours() -> None:
    def floats(*numbers: float) -> list[ir.Attribute]:
        kind = ir.F32Type.get()
        return [ir.FloatAttr.get(kind, np.float32(x).item()) for x in numbers]

    with context(), ir.Location.unknown():
        for n in (1, 3, 49, 19519, APART - 1):
            found = wholes_of(floats(1 / n, 1 / 7))
            assert found is not None
            assert (list(found.numbers), found.are_shares) == ([n, 7], True)
        assert wholes_of(floats(1, 49)) == Wholes([1, 49])
        for numbers in ((0.3, 0.25), (1 / 3, 2), (1 / APART, 0.5), (1e-5, 3e-6)):
            assert wholes_of(floats(*numbers)) is None
