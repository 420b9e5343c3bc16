"""The int8 networks and binary layers: what is drawn is what ONNX says, exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom_papers.reproduce.expected_results import Expected
from nanoloom_papers.reproduce.flow_binary import LAYERS, BinaryLayer, binary, integers
from nanoloom_papers.reproduce.flow_networks import (
    NETWORKS,
    Drawing,
    Network,
    drawn,
    model_of,
)
from tests.vector.kernel_harness import shared_cache


def complaint(network: Network, got: np.ndarray) -> str:
    """Without any room."""
    return Expected(network.value, None).complaint(got)


def reference(network: Network) -> np.ndarray:
    found = ReferenceEvaluator(network.model).run(None, {"image": network.image})
    return np.asarray(next(iter(found)))


@pytest.mark.parametrize("name", ["resnet18", "vgg11"])
def test_networks_are_exact(name: str) -> None:
    network = drawn(name, quick=True)
    onnx.checker.check_model(network.model)
    assert len(np.unique(network.value)) > 9
    made = reference(network)
    assert complaint(network, made) == ""
    assert complaint(network, np.roll(made, 1, 1)).startswith("wrong result")


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_leave_room_for_halves(name: str) -> None:
    """That are rounded up, but not for a missing or a moved result."""
    network = drawn(name, quick=True)
    right = Expected(network.value, 0 * network.value + network.allowed)
    assert 0 < network.allowed < abs(network.value).max()
    assert right.complaint(network.value + network.allowed / 2) == ""
    assert right.complaint(0 * network.value).startswith("wrong result")
    assert right.complaint(np.roll(network.value, 1, 1)).startswith("wrong result")


def test_a_densenet_has_all_layers() -> None:
    nodes = drawn("densenet121", quick=True).model.graph.node
    assert len([node for node in nodes if node.op_type == "Conv"]) == 120


def test_every_word_of_a_network() -> None:
    """Of all of them, on an odd number of channels and of pixels."""
    net = Drawing()
    image = net.random.integers(0, 256, (3, 13, 11)).astype(np.float64) / 256
    x = net.conv(net.quantized("image", image, 1 / 256), 7, 3, 2)
    past = net.conv(x, 7, 1, relu=False)
    x = net.concat(net.add(net.conv(x, 7, 5, relu=False), past), net.normalized(x))
    last = net.dense(net.mean(net.average(net.largest(x, 3, 1))), 5, relu=False)
    model = model_of("all", net, image.shape, last)
    found = Network(model, image[None].astype(np.float32), last.value[None], 0.0)
    assert complaint(found, reference(found)) == ""


def test_the_networks_of_the_paper() -> None:
    assert set(NETWORKS) == {
        "resnet18", "resnet34", "vgg11", "vgg13", "vgg16", "densenet121",
    }  # fmt: skip
    assert [(x.channels, x.side) for x in LAYERS] == [
        (64, 56), (128, 28), (256, 14), (512, 7),
    ]  # fmt: skip


@pytest.mark.parametrize("draw", [binary, integers])
def test_layers_are_exact(draw: Callable[[BinaryLayer], Network]) -> None:
    network = draw(BinaryLayer(24, 5))
    assert complaint(network, reference(network)) == ""
    program = nanoloom.compile(network.model, cache=shared_cache())
    (made,) = program({"image": network.image}).values()
    assert complaint(network, made) == ""
    assert complaint(network, -made).startswith("wrong result")
