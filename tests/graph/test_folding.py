"""Constants give what the same numbers give as inputs."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.graph.evaluate import Evaluation
from nanoloom.graph.folding import EXACT, ROUNDED, agrees
from nanoloom.graph.own_evaluation import RULES
from tests.fuzz.recipes.table import RECIPES
from tests.graph import sweep
from tests.graph.models import proto
from tests.linalg.single import model_of

SEED, NUMBER, OF_ONNX = 100, 1, 3
FOLDED = sorted(EXACT | ROUNDED.keys() | RULES.keys())


@pytest.fixture(scope="module")
def node_tests() -> dict[str, list[sweep.Case]]:
    found: dict[str, list[sweep.Case]] = defaultdict(list)
    for case in sweep.node_tests():
        found[case.operator].append(case)
    return found


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("operator", FOLDED)
def test_the_reference_agrees(
    operator: str, node_tests: dict[str, list[sweep.Case]]
) -> None:
    """On ONNX's node tests (of many, some) and on random cases."""
    given = node_tests[operator]
    chosen = given[:: max(1, -(-len(given) // OF_ONNX))]
    if operator in RECIPES:
        random = (sweep.drawn(operator, SEED + i) for i in range(NUMBER))
        chosen += [case for case in random if case is not None]
    assert chosen, f"nothing tests {operator}"
    for case in chosen:
        assert sweep.difference(case) == "", case.name
    assert any(sweep.folded(case) is not None for case in chosen)


def f(*shape: int) -> np.ndarray:
    return np.random.default_rng(4).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("ConvTranspose", [f(1, 2, 2, 2), f(2, 2, 1, 1), f(4)], {"group": 2}),
        (
            "AveragePool",
            [f(2, 3, 7, 4)],
            {"ceil_mode": 1, "kernel_shape": [2, 3], "strides": [2, 3]},
        ),
        ("ReduceSumSquare", [np.arange(6, dtype=np.int32).reshape(2, 3)], {}),
    ],
)
def test_where_the_reference_is_wrong(
    op: str, inputs: list[np.ndarray], attributes: dict[str, Any], tmp_path: Path
) -> None:
    """It is another number or type than the code gives, and is not asked."""
    cache = Cache(tmp_path)

    def run(constants: range) -> np.ndarray:
        model, feeds = model_of(op, inputs, attributes, constants=constants)
        return nanoloom.compile(model, cache=cache)(feeds)["y0"]

    computed, constant = run(range(0)), run(range(len(inputs)))
    assert computed.dtype == constant.dtype
    np.testing.assert_array_equal(constant, computed)
    model, _ = model_of(op, inputs, attributes, constants=range(len(inputs)))
    node = ir.from_proto(model).graph[0]
    evaluation = Evaluation.of(node, {"": 22})
    made = None if evaluation is None else evaluation.run()
    reference = np.zeros(0) if made is None else np.asarray(made[0])
    same = reference.dtype == computed.dtype and (reference == computed).all()
    assert not same, f"the reference is right by now: {op} may fold"


@pytest.mark.parametrize("op", ["Erf", "HardSwish", "Gelu"])
def test_own_code_folds_where_the_reference_is_wrong(op: str) -> None:
    """Its numbers are those of 64-bit floats, and the element type stays."""
    x = f(9).astype(np.float64)
    model, _ = model_of(op, [x], {}, constants=range(1))
    node = ir.from_proto(model).graph[0]
    node.inputs[0].const_value = ir.Tensor(x)
    node.inputs[0].type = ir.TensorType(ir.DataType.DOUBLE)
    assert agrees(node, 22)
    evaluation = Evaluation.of(node, {"": 22})
    assert evaluation is not None
    (made,) = evaluation.run() or [None]
    erf = np.array([math.erf(v) for v in x])
    halves = np.array([math.erf(v / math.sqrt(2)) for v in x])
    right = {
        "Erf": erf,
        "Gelu": x * (1 + halves) / 2,
        "HardSwish": x * np.clip(x / 6 + 0.5, 0, 1),
    }[op]
    assert made is not None and made.dtype == np.float64
    assert (abs(made - right) <= 4 * np.finfo(np.float64).eps * (1 + abs(x))).all()
    assert not (abs(made * 0 - right) <= 1e-9).all()


def test_bias_of_each_group(tmp_path: Path) -> None:
    x, w = np.ones((1, 2, 1, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    bias = np.array([10, 20, 30, 40], np.float32)
    inputs = [x, w * 0 + [[[[1]], [[2]]], [[[3]], [[4]]]], bias]
    inputs[1] = inputs[1].astype(np.float32)
    model, feeds = model_of("ConvTranspose", inputs, {"group": 2}, constants=range(3))
    made = nanoloom.compile(model, cache=Cache(tmp_path))(feeds)["y0"]
    assert made.reshape(-1).tolist() == [11, 22, 33, 44]


@pytest.mark.parametrize("to", ["uint32", "uint64", "int32", "int8"])
def test_what_onnx_leaves_open_is_the_same_both_ways(to: str, tmp_path: Path) -> None:
    """A float beyond the integers."""
    x = np.array([np.nan, np.inf, -5.5, 1e20, 70000, 7], np.float32)
    kind = ir.DataType.from_numpy(np.dtype(to)).value
    made: list[np.ndarray] = []
    for constants in (range(0), range(1)):
        model, feeds = model_of("Cast", [x], {"to": kind}, constants=constants)
        made.append(nanoloom.compile(model, cache=Cache(tmp_path))(feeds)["y0"])
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize("zero", ["uint8", "int8", "int16"])
def test_what_is_quantized_saturates_both_ways(zero: str, tmp_path: Path) -> None:
    """Beyond 32 bits, too: a mask's largest number, the reciprocal of nothing."""
    x = np.array([np.inf, -np.inf, 3.4e38, -3.4e38, 5e9, -7e9, 2.5, -3.5], np.float32)
    limits = np.iinfo(zero)
    inputs = [x, np.array(0.5, np.float32), np.array(limits.min + 1, zero)]
    exact = np.rint(x.astype(np.float64) / 0.5) + limits.min + 1
    right = np.clip(exact, limits.min, limits.max).astype(zero)
    for constants in (range(1, 3), range(3)):
        model, feeds = model_of("QuantizeLinear", inputs, {}, constants=constants)
        made = nanoloom.compile(model, cache=Cache(tmp_path))(feeds)["y0"]
        np.testing.assert_array_equal(made, right)


@pytest.mark.parametrize("kind", ["float32", "float16", "int64"])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_chooses(kind: str, axis: int, tmp_path: Path) -> None:
    """The numbers that are given: none is rounded, and infinity is no NaN."""
    off, on = (-1.1549038, np.inf) if kind != "int64" else (-(2**60), 2**60 + 1)
    at = np.array([[0, 2, -1], [5, -3, -4]])
    inputs = [at, np.array(3), np.array([off, on], kind)]
    node = {"axis": axis}
    model, feeds = model_of("OneHot", inputs, node, constants=range(3))
    made = nanoloom.compile(model, cache=Cache(tmp_path))(feeds)["y0"]
    hot = np.where(at < 0, at + 3, at)[..., None] == np.arange(3)
    right = np.where(np.moveaxis(hot, -1, axis), on, off).astype(kind)
    np.testing.assert_array_equal(made, right)


def test_shapes_from_one_hot(tmp_path: Path) -> None:
    """As PyTorch writes repeat_interleave: a row of OneHot in front of Tile."""
    text = """g (float[b, 3] x) => (float[n, m] y)
      <int64[1] i = {1}, int64[2] v = {1, 2}, int64[1] m = {-1}> {
        shape = Shape(x)
        rank = Shape(shape)
        depth = Squeeze(rank)
        hot = OneHot(i, depth, v)
        repeats = Reshape(hot, m)
        y = Tile(x, repeats)
    }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    made = nanoloom.compile(proto(text), cache=Cache(tmp_path))({"x": x})["y"]
    assert (made == np.tile(x, [1, 2])).all()


def test_texts_are_numbers_or_refused(tmp_path: Path) -> None:
    text = 'g () => (int64[1] y) <string[1] a = {{"7"}}> {{ y = {}(a) }}'
    known = nanoloom.compile(proto(text.format("Cast<to = 7>")), cache=Cache(tmp_path))
    assert known({})["y"].tolist() == [7]
    with pytest.raises(nanoloom.Error) as found:
        nanoloom.compile(proto(text.format("Abs")), cache=Cache(tmp_path))
    assert not isinstance(found.value, nanoloom.InternalError)


def test_the_bits_of_a_constant_without_axes(tmp_path: Path) -> None:
    attributes = {"to": int(ir.DataType.INT64)}
    model, feeds = model_of(
        "BitCast", [np.array(-1.5)], attributes, constants=[0], version=26
    )
    made = nanoloom.compile(model, cache=Cache(tmp_path), threads=1)(feeds)["y0"]
    assert made.shape == () and made == np.float64(-1.5).view(np.int64)
