"""Dataflows of the kernels of models' convolutions, beside ONNX's reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.options import CompileOptions
from nanoloom.schedule.dataflow.dataflow import parse
from nanoloom.schedule.dataflow.recommended import Recommended
from nanoloom.target.host import host
from tests.linalg.single import model_of
from tests.vector.kernel_harness import shared_cache

Array = np.ndarray[Any, np.dtype[Any]]
FLOWS = (
    "output; weight 9; input 4",
    "weight; output 4; input 1",
    "input; output 2",
    "",
)


@dataclass(frozen=True)
class Node:
    """A convolution by the shapes of its image and weights."""

    image: tuple[int, ...]
    weights: tuple[int, ...]
    op: str = "Conv"
    words: dict[str, Any] = field(default_factory=dict[str, Any])

    def inputs(self) -> list[Array]:
        random = np.random.default_rng(0)
        if self.op == "Conv" or self.op == "ConvTranspose":
            return [
                random.standard_normal(s, np.float32)
                for s in (self.image, self.weights)
            ]
        image = random.integers(0, 256, self.image).astype(np.uint8)
        weights = random.integers(-128, 128, self.weights).astype(np.int8)
        if self.op == "ConvInteger":
            return [image, weights]
        one, other, result = (np.float32(x) for x in (0.125, 0.0625, 4.0))
        start, middle, end = np.uint8(3), np.int8(0), np.uint8(7)
        given = image, one, start, weights, other, middle, result, end
        return [np.asarray(x) for x in given]

    @property
    def is_exact(self) -> bool:
        return self.op in ("ConvInteger", "QLinearConv")


NODES = [
    Node((1, 5, 9, 11), (12, 5, 3, 3), words={"pads": [1, 0, 2, 1]}),
    Node((2, 3, 9, 11), (9, 3, 3, 2), words={"strides": [2, 3]}),
    Node((1, 6, 9, 11), (8, 3, 3, 3), words={"group": 2, "dilations": [2, 1]}),
    Node((1, 7, 9, 11), (14, 1, 3, 3), words={"group": 7, "pads": [1] * 4}),
    Node((2, 5, 30), (12, 5, 5), words={"pads": [2, 2]}),
    Node((1, 3, 5, 6, 7), (9, 3, 3, 2, 3), words={"pads": [1] * 6}),
    Node((1, 5, 9, 11), (12, 5, 1, 1)),
    Node((1, 5, 7, 6), (5, 9, 3, 3), "ConvTranspose", {"strides": [2, 2]}),
    Node((1, 5, 7, 6), (5, 9, 3, 3), "ConvTranspose"),
    Node((1, 5, 9, 11), (12, 5, 3, 3), "ConvInteger", {"pads": [1] * 4}),
    Node((1, 5, 9, 11), (12, 5, 3, 3), "QLinearConv", {"strides": [2, 2]}),
]


def reference(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    (made,) = ReferenceEvaluator(model).run(None, feeds)  # type: ignore[misc] - a list of one
    return np.asarray(made)


@cache
def products_of(content: bytes) -> list[str]:
    """The names of a model's kernels of one product each, which compile."""
    nests = nanoloom.compile(content, cache=shared_cache(), exact_conv=True).nests()
    return [name for name, nest in nests.items() if len(nest.products) == 1]


@pytest.mark.drawn(one_in=8)
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("node", NODES, ids=str)
def test_kernels_of_models(node: Node, flow: str) -> None:
    inputs = node.inputs()
    model, feeds = model_of(node.op, inputs, node.words)
    kernels, target = products_of(model.SerializeToString()), host()
    assert kernels
    made = parse(flow) if flow else Recommended()
    options = CompileOptions(
        target, schedules=tuple((name, made) for name in kernels), exact_conv=True
    )
    program = nanoloom.compile(model, options=options, cache=shared_cache(), threads=2)
    (got,) = program(feeds).values()
    right = reference(model, feeds)
    if node.is_exact:
        assert np.array_equal(got, right) and right.any()
        return
    largest = reference(model, {name: abs(x) for name, x in feeds.items()})
    terms = int(np.prod(node.weights[1:]))
    bound = 2 * (terms + 2) * np.finfo(np.float32).eps * largest  # theirs is in f32
    assert (abs(got - right) <= bound).all()
    assert (abs(right) > bound).any(), "zeros would not be found"
