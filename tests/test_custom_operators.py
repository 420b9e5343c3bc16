"""Operators that functions stand for: numbers, sizes, libraries, the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error, InputError, Unsupported
from nanoloom.frontend.custom_operators import REGISTERED
from nanoloom.notation import Buffer, axes, exp

Array = np.ndarray
DOMAIN = "test.domain"


def model_of(
    name: str, shape: list[Any], count: int = 1, **attributes: Any
) -> onnx.ModelProto:
    """Relu, then the operator, then a sum with 1: it is one among others."""
    results = [f"r{i}" for i in range(count)]
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node(name, ["a"], results, "own", domain=DOMAIN, **attributes),
        *(
            helper.make_node("Add", [r, "one"], [f"y{i}"])
            for i, r in enumerate(results)
        ),
    ]
    one = helper.make_tensor("one", 1, [], [1.0])
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(count)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, shape)], outputs, [one]
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def swish(node: Any) -> Any:
    x = node.input(0)
    scaled = node.op("Mul", x, node.scalar(node.float("beta", 1.0), x))
    return node.op("Mul", x, node.op("Sigmoid", scaled))


def exact(x: Array, beta: float = 1.0) -> Array:
    wide = np.maximum(x.astype(np.float64), 0)
    return wide / (1 + np.exp(-beta * wide)) + 1


def drawn(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_over_nodes(tmp_path: Path) -> None:
    """One program for all sizes; its library needs no function any more."""
    nanoloom.operator(DOMAIN, "Swish")(swish)
    program = nanoloom.compile(model_of("Swish", ["n", 7], beta=2.0))
    for rows in (1, 5):
        x = drawn(rows, 7)
        assert abs(program.run({"x": x})["y0"] - exact(x, 2.0)).max() < 1e-5
        assert abs(program.run({"x": x})["y0"] - exact(x)).max() > 1e-2
    static = nanoloom.compile(model_of("Swish", [3, 7]))
    static.save(tmp_path / "own.so")
    REGISTERED.clear()
    x = drawn(3, 7)
    loaded = nanoloom.load(tmp_path / "own.so")
    assert abs(loaded.run({"x": x})["y0"] - exact(x)).max() < 1e-5


def softmax_and_sum(x: Buffer, scale: float = 1.0) -> tuple[Buffer, Buffer]:
    i, j = axes("i j")
    total, made = Buffer("total"), Buffer("made")
    total[i] += exp(x[i, j] * scale)
    made[i, j] = exp(x[i, j] * scale) / total[i]
    return made, total


def test_over_buffers(tmp_path: Path) -> None:
    """Several outputs, compiled again for other sizes, and in a library."""
    nanoloom.operator(DOMAIN, "Softmax", buffers=True)(softmax_and_sum)
    model = model_of("Softmax", ["n", "m"], 2, scale=0.5)
    program = nanoloom.compile(model)
    for shape in ((1, 1), (3, 17), (5, 64)):
        x = drawn(*shape)
        wide = np.exp(np.maximum(x.astype(np.float64), 0) / 2)
        found, total = program.run({"x": x}), wide.sum(-1)
        assert abs(found["y0"] - wide / total[:, None] - 1).max() < 1e-5
        assert abs(found["y1"] - total - 1).max() < 1e-4
    static = model_of("Softmax", [2, 5], 2, scale=0.5)
    nanoloom.compile(static).save(tmp_path / "own.so")
    x = drawn(2, 5)
    expected = nanoloom.compile(static).run({"x": x})
    found = nanoloom.load(tmp_path / "own.so").run({"x": x})
    assert (found["y0"] == expected["y0"]).all()


def test_versions(tmp_path: Path) -> None:
    """Another version is another program, from the same cache; so is none."""
    cache, x = Cache(tmp_path), drawn(3, 7)

    def found(factor: float, version: str | None) -> float:
        def scaled(node: Any) -> Any:
            x = node.input(0)
            return node.op("Mul", x, node.scalar(factor, x))

        nanoloom.operator(DOMAIN, "Scaled", version=version)(scaled)
        program = nanoloom.compile(model_of("Scaled", [3, 7]), cache=cache)
        return float((program.run({"x": x})["y0"] - 1).max() / x.max())

    assert found(2, None) == pytest.approx(2)
    assert found(3, None) == pytest.approx(3)
    assert found(4, "1") == pytest.approx(4)
    assert found(5, "1") == pytest.approx(4)  # that is what a version says
    assert found(5, "2") == pytest.approx(5)


def failing(node: Any) -> Any:
    return {}[node.input(0).name]


def failing_buffers(x: Buffer) -> Buffer:
    raise ValueError("no such luck")


def unwritten(x: Buffer) -> Buffer:
    return x


@pytest.mark.parametrize(
    ("function", "buffers", "reason"),
    [
        (swish, False, "gamma is not supported; give the node what swish reads"),
        (failing, False, "its function raised KeyError"),
        (failing_buffers, True, "got an unexpected keyword argument 'gamma'"),
        (lambda x, gamma: unwritten(x), True, "no Buffer with a statement"),
    ],
)
def test_refusals(function: Any, buffers: bool, reason: str) -> None:
    nanoloom.operator(DOMAIN, "Wrong", buffers=buffers)(function)
    with pytest.raises(Unsupported, match=reason):
        nanoloom.compile(model_of("Wrong", [3, 7], gamma=1.0)).run({"x": drawn(3, 7)})


def test_wrong_domains() -> None:
    with pytest.raises(Error, match=r"the operators of ai\.onnx are not a user's"):
        nanoloom.operator("", "Relu")
    with pytest.raises(Unsupported, match=r"its domain test\.domain is unknown"):
        nanoloom.compile(model_of("Unknown", [3, 7])).run({"x": drawn(3, 7)})


def test_what_is_no_function_stands_for_no_operator() -> None:
    wrong: Any = 5
    with pytest.raises(InputError, match="is a int, no function"):
        nanoloom.operator(DOMAIN, "Number")(wrong)
    with pytest.raises(InputError, match="version is a int; give a str"):
        nanoloom.operator(DOMAIN, "Number", version=wrong)
    assert (DOMAIN, "Number") not in REGISTERED
