"""nanoloom compile --dataflow: dataflows of convolutions on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom as package
from nanoloom.cli.schedules import dataflows
from nanoloom.options import CompileOptions
from nanoloom.schedule.dataflow.dataflow import Dataflow
from nanoloom.schedule.dataflow.recommended import Recommended
from nanoloom.target.host import host
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused
from tests.vector.kernel_harness import shared_cache

DEPTHWISE = """
<ir_version: 10, opset_import: ["": 21]>
depthwise (float[1, 11, 9, 13] image, float[11, 1, 3, 3] weights)
  => (float[1, 11, 5, 7] made)
{
    sums = Conv <group = 11, pads = [1, 1, 1, 1], strides = [2, 2]> (image, weights)
    made = Relu (sums)
}
"""

DENSE = """
<ir_version: 10, opset_import: ["": 21]>
dense (float[1, 64, 56, 56] image) => (float[1, 64, 56, 56] made)
{ made = Conv <pads = [1, 1, 1, 1]> (image, weights) }
"""


@pytest.fixture
def depthwise(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(DEPTHWISE), tmp_path / "depthwise.onnx")
    return tmp_path / "depthwise.onnx"


def test_words() -> None:
    given = ["output; weight 2", "conv*: input", "a: recommended", "recommended"]
    assert dataflows(given) == (
        ("contraction_*", Dataflow("output", (("weight", 2),))),
        ("conv*", Dataflow("input")),
        ("a", Recommended()),
        ("contraction_*", Recommended()),
    )
    assert dataflows(None) == ()


def test_the_schedule_has_it(depthwise: Path, nanoloom: Command) -> None:
    words = "--dataflow", "weight; output 3", "--emit", "schedule", "-o", "-"
    said = nanoloom("compile", depthwise, *words)
    assert said.status == 0, said.err
    assert "dataflow weight; output 3" in said.out
    assert "arg1 stationary, 3 of product in registers" in said.out
    assert '"nanoloom.stationary"' in said.out


def test_no_convolution_is_winograds(tmp_path: Path, nanoloom: Command) -> None:
    """A dataflow is of the sums that a convolution is, not of another method's."""
    model = onnx.parser.parse_model(DENSE)
    weights = np.ones((64, 64, 3, 3), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    onnx.save(model, tmp_path / "dense.onnx")
    words = ["compile", tmp_path / "dense.onnx", "--emit", "graph", "-o", "-"]
    assert "winograd" in nanoloom(*words).out
    said = nanoloom(*words, "--dataflow", "recommended")
    assert said.status == 0, said.err
    assert "winograd" not in said.out


@pytest.mark.parametrize(
    "flow", ["output; weight 9; input 3", "input; output 1", "weight"]
)
def test_a_border_and_an_activation(depthwise: Path, flow: str) -> None:
    """The kernel has a pad in front, and what follows."""
    random = np.random.default_rng(0)
    image = random.standard_normal((1, 11, 9, 13)).astype(np.float32)
    weights = random.standard_normal((11, 1, 3, 3)).astype(np.float32)
    ((_, made),) = dataflows([flow])
    options = CompileOptions(host(), schedules=(("contraction_*", made),))
    program = package.compile(depthwise, options=options, cache=shared_cache())
    (got,) = program({"image": image, "weights": weights}).values()
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    right = np.zeros((1, 11, 5, 7))
    for y, x in np.ndindex(3, 3):
        right += (
            padded[:, :, y : y + 9 : 2, x : x + 13 : 2]
            * weights[:, 0, y, x, None, None]
        )
    assert np.allclose(got, np.maximum(right, 0), rtol=0, atol=1e-5)
    assert got.max() > 1


@pytest.mark.parametrize(
    ("flow", "reason"),
    [
        ("rows", "'rows' is none of output, weight, input"),
        ("conv*: output; weight", "'weight' is no operand with a number"),
        (
            "conv*: output",
            "dataflow of sums of products is for conv*, and no kernel has such",
        ),
        ("*: output", "the kernel has 0 sums of products, not one"),
    ],
)
def test_refusals(depthwise: Path, nanoloom: Command, flow: str, reason: str) -> None:
    said = nanoloom("compile", depthwise, "--dataflow", flow, "-e", "asm", "-o", "-")
    refused(said, reason)


SINGLE = """
<ir_version: 10, opset_import: ["": 21]>
single (float[1, 1, 9, 7] image, float[1, 3, 9, 7] planes,
        float[1, 4, 2, 2] weights, float[3, 1, 1, 1] taps)
  => (float[1, 4, 18, 14] a, float[1, 3, 9, 7] b, float[1, 3, 9, 7] c)
{
    a = ConvTranspose <strides = [2, 2]> (image, weights)
    b = Conv (image, taps)
    c = Conv <group = 3> (planes, taps)
}
"""


@pytest.mark.parametrize("flow", ["output", "recommended", "*: input"])
def test_single_products(flow: str, tmp_path: Path, nanoloom: Command) -> None:
    """Windows that do not meet, and a channel's tap: nothing is added up."""
    onnx.save(onnx.parser.parse_model(SINGLE), tmp_path / "single.onnx")
    words = "--dataflow", flow, "-e", "asm", "-o", "-"
    said = nanoloom("compile", tmp_path / "single.onnx", *words)
    refused(said, "a dataflow is for layers that add up products, and each result")
    assert "contraction" not in said.err
