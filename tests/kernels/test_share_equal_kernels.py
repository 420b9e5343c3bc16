"""Kernels of open programs that are equal but for what they were cut for are one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import nanoloom
from nanoloom import compiler
from nanoloom.kernels.program import Kernel, Program
from nanoloom.kernels.share_equal_kernels import share_equal_kernels
from nanoloom.memory.calls import Call
from nanoloom.nest.nest import LoopNest

F32 = onnx.TensorProto.FLOAT
CHANNELS, FEW, MANY = 24, 197, 785


def kernel(name: str, text: str, rows: int) -> Kernel:
    return Kernel(
        name, text, "contraction", LoopNest((), (), ()), (True,), ((rows, 8),)
    )


def program(*kernels: Kernel) -> Program:
    named = {each.name: each for each in kernels}
    calls = tuple(Call(each.name, (), "") for each in kernels)
    return Program(named, calls, (), (), (), (), (), 0)


def test_one_text_and_one_schedule():
    one, other, third = (kernel(f"k{rows}", "text", rows) for rows in (3, 5, 7))
    apart = replace(one, name="other", text="another")
    ways = {"k3": "few", "k5": "many", "k7": "few"}  # of `apart` nobody asks
    made = share_equal_kernels(
        program(one, other, third, apart), lambda k: ways[k.name]
    )
    assert [*made.kernels] == ["k3", "k5", "other"]
    assert [call.kernel for call in made.calls] == ["k3", "k5", "k3", "other"]
    assert made.calls[2].shapes == third.shapes  # those that it is called with


def test_nothing_is_equal():
    given = program(kernel("k3", "a", 3), kernel("k5", "b", 5))
    assert share_equal_kernels(given, str) is given


def two_products() -> bytes:
    """The same product of any number of images with few rows, and with many."""
    rng = np.random.default_rng(0)
    names, nodes, weights = ("few", "many"), [], []
    for name in names:
        weight = rng.normal(size=(CHANNELS, CHANNELS)).astype(np.float32)
        weights.append(onnx.numpy_helper.from_array(weight, f"w_{name}"))
        nodes.append(helper.make_node("MatMul", [name, f"w_{name}"], [f"p_{name}"]))
        nodes.append(helper.make_node("Add", [f"p_{name}", name], [f"y_{name}"]))
    sizes = zip(names, (FEW, MANY), strict=True)
    shapes = {name: ["batch", rows, CHANNELS] for name, rows in sizes}
    graph = helper.make_graph(
        nodes,
        "two",
        [helper.make_tensor_value_info(n, F32, shapes[n]) for n in names],
        [helper.make_tensor_value_info(f"y_{n}", F32, shapes[n]) for n in names],
        weights,
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()


def test_rows_of_images_of_two_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    made_of: list[Program] = []

    def shared(program: Program, way: Callable[[Kernel], Hashable]) -> Program:
        made_of.append(share_equal_kernels(program, way))
        return made_of[-1]

    monkeypatch.setattr(compiler, "share_equal_kernels", shared)
    model = two_products()
    found = nanoloom.compile(model, cache=tmp_path)
    rng = np.random.default_rng(1)
    weights = {x.name: x for x in onnx.load_from_string(model).graph.initializer}
    for images in (1, 4):
        feeds = {
            name: rng.normal(size=(images, rows, CHANNELS)).astype(np.float32)
            for name, rows in (("few", FEW), ("many", MANY))
        }
        made = found(feeds)
        for name, given in feeds.items():
            weight = onnx.numpy_helper.to_array(weights[f"w_{name}"]).astype(np.float64)
            wanted = given @ weight + given
            bound = (CHANNELS + 3) * 2.0**-23 * (abs(given) @ abs(weight) + abs(given))
            assert (abs(made[f"y_{name}"] - wanted) <= bound).all()
            assert not (abs(wanted) <= bound).all()  # zeros would fail
    assert [len(program.kernels) for program in made_of] == [1]
