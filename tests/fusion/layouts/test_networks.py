"""Networks in any layout compute what they did before."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.fusion.layouts.layout import FIRST, LAST, Layout, blocks
from nanoloom.fusion.layouts.stage import Plan, plan_layouts
from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.ir.mlir import run_pipeline
from nanoloom.kernels.stage import SIMPLIFY, partition
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import LinalgModule, lower
from nanoloom.options import CompileOptions
from nanoloom.schedule.dataflow.dataflow import Dataflow
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from tests.graph.image_networks import network
from tests.linalg.harness import run
from tests.vector.kernel_harness import shared_cache

TARGET = by_name("x86-64-v3")


def planned(
    model: onnx.ModelProto, only: Layout | None = None, target: Target = TARGET
) -> tuple[LinalgModule, Plan]:
    """A model's module and its layouts; an MLIR context must be current."""
    graph = optimize(onnx_ir.from_proto(model), OPERATORS.keys())
    module = lower(graph)
    run_pipeline(module.module, SIMPLIFY)
    return module, plan_layouts(module, target, only)


@pytest.mark.drawn(one_in=6)
@pytest.mark.parametrize("only", [FIRST, blocks(2), blocks(4)], ids=str)
@pytest.mark.parametrize("seed", [*range(15), 126, 136, 201, 239, 375])
def test_random_networks(seed: int, only: Layout) -> None:
    """Small whole numbers: exact in any order of any loops."""
    model, x = network(seed, 14 if seed < 100 else 18)
    right = ReferenceEvaluator(model).run(None, {"x": x})
    with mlir.context():
        module, plan = planned(model, only)
        plan.apply()
        assert module.module.operation.verify()
        got = run(module, {"x": x})
    for one, other in zip(got, right, strict=True):
        assert one.shape == other.shape
        assert (one == other).all()
        assert not (one == np.add(other, 1)).any()


def test_they_are_not_all_as_they_were() -> None:
    """Of the networks above most have channels that can lie elsewhere."""
    changed = {FIRST: 0, blocks(2): 0, blocks(4): 0}
    for seed in range(20):
        for only in changed:
            with mlir.context():
                _, plan = planned(network(seed, 14)[0], only)
                changed[only] += any(each != LAST for each in plan.chosen.values())
    assert changed[FIRST] > 10 and changed[blocks(2)] > 4 and changed[blocks(4)] > 2


@pytest.mark.drawn
@pytest.mark.parametrize("layout", ["first", "4", "auto"])
@pytest.mark.parametrize("seed", [3, 8, 11])
def test_compiled_networks(seed: int, layout: str) -> None:
    model, x = network(seed, 14)
    right = ReferenceEvaluator(model).run(None, {"x": x})
    options = CompileOptions(host(), layout=layout)
    program = nanoloom.compile(model, options=options, cache=shared_cache())
    for one, other in zip(program({"x": x}).values(), right, strict=True):
        assert (one == other).all() and one.shape == np.shape(other)


def alone(words: str, window: str, width: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """A depthwise layer between the model's own tensors, of small whole numbers."""
    random = np.random.default_rng(width)
    model = onnx.parser.parse_model(f"""
    <ir_version: 10, opset_import: ["": 21]>
    alone (float[2, 5, 9, {width}] x) => (float[2, 5, h, w] y)
    {{
        c = Conv<group = 5, {words}>(x, weights)
        y = Relu(c)
    }}
    """)
    shape = (5, 1, *map(int, window.split("x")))
    weights = random.integers(-4, 5, shape).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    return model, random.integers(-4, 5, (2, 5, 9, width)).astype(np.float32)


@pytest.mark.parametrize(
    ("words", "window", "width", "first"),
    [
        ("pads = [1, 1, 1, 1]", "3x3", 45, True),
        ("pads = [1, 2, 0, 3], strides = [2, 1], dilations = [1, 2]", "3x3", 61, True),
        ("pads = [0, 1, 0, 1]", "1x3", 32, True),
        ("pads = [1, 1, 1, 1], strides = [1, 2]", "3x3", 90, True),
        ("pads = [2, 2, 2, 2]", "5x5", 7, True),
        ("pads = [1, 1, 1, 1], strides = [3, 3]", "3x3", 45, False),
        ("pads = [4, 4, 4, 4]", "9x9", 45, False),  # more taps than are written out
    ],
)
def test_a_depthwise_layer_alone(
    words: str, window: str, width: int, first: bool
) -> None:
    """Its planes stay apart where that is faster than to turn them twice."""
    model, x = alone(words, window, width)
    (right,) = ReferenceEvaluator(model).run(None, {"x": x})
    with mlir.context():
        _, plan = planned(model)
        assert (FIRST in plan.chosen.values()) == first
    program = nanoloom.compile(model, cache=shared_cache())
    (got,) = program({"x": x}).values()
    assert (got == right).all() and np.max(right) > 4


def gated(channels: int, squeezed: int, width: int) -> onnx.ModelProto:
    """A depthwise layer whose channels are weighed by what their means say."""
    model = onnx.parser.parse_model(f"""
    <ir_version: 10, opset_import: ["": 21]>
    gated (float[1, {channels}, 33, {width}] x) => (float[1, {channels}, 33, {width}] y)
    {{
        c = Conv<group = {channels}, pads = [1, 1, 1, 1]>(x, weights)
        m = GlobalAveragePool(c)
        s = Conv(m, fewer)
        r = Relu(s)
        e = Conv(r, more)
        g = Sigmoid(e)
        y = Mul(c, g)
    }}
    """)
    random = np.random.default_rng(channels)
    shapes = {
        "weights": (channels, 1, 3, 3),
        "fewer": (squeezed, channels, 1, 1),
        "more": (channels, squeezed, 1, 1),
    }
    for name, shape in shapes.items():
        array = random.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


@pytest.mark.parametrize(
    ("channels", "squeezed", "width"), [(20, 5, 45), (7, 3, 32), (32, 16, 90)]
)
def test_vectors_of_channels_have_one_order(
    channels: int, squeezed: int, width: int
) -> None:
    """The means of planes and what is computed of them lie alike in any layout."""
    with mlir.context():
        _, plan = planned(gated(channels, squeezed, width))
        made = [layout for layout in plan.chosen.values() if layout != LAST]
        assert made == [FIRST]


@pytest.mark.parametrize("reader", ["Conv<group = 12, {}>(r, w)", "MaxPool<{}>(r)"])
def test_planes_of_a_layer_have_no_border_in_memory(reader: str) -> None:
    """What reads them asks where they end, and they are written as they are."""
    words = "kernel_shape = [3, 3], pads = [1, 1, 1, 1]"
    model = onnx.parser.parse_model(f"""
    <ir_version: 10, opset_import: ["": 21]>
    planes (float[1, 12, 33, 45] x) => (float[1, 12, 33, 45] y)
    {{
        c = Conv<group = 12, {words}>(x, w)
        r = Relu(c)
        y = {reader.format(words)}
    }}
    """)
    random = np.random.default_rng(1)
    w = random.integers(-4, 5, (12, 1, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    with mlir.context():
        module = lower(optimize(onnx_ir.from_proto(model), OPERATORS.keys()))
        assert len(partition(module, TARGET).calls) == 2
    x = random.integers(-4, 5, (1, 12, 33, 45)).astype(np.float32)
    (right,) = ReferenceEvaluator(model).run(None, {"x": x})
    (got,) = nanoloom.compile(model, cache=shared_cache())({"x": x}).values()
    assert (got == right).all() and np.max(right) > 4


@pytest.mark.parametrize(
    ("channels", "strides", "window", "level", "first"),
    [
        (3, 1, 5, "x86-64-v4", True),
        (3, 1, 5, "x86-64-v3", True),
        (2, 2, 3, "x86-64-v4", True),
        (2, 2, 3, "x86-64-v3", False),
        (8, 1, 5, "x86-64-v4", False),
    ],
)
def test_a_first_layer_alone(
    channels: int, strides: int, window: int, level: str, first: bool
) -> None:
    """It writes planes where few channels are read, here with a function behind it, and
    registers hold sums of several rows of pixels."""
    random = np.random.default_rng(channels)
    model = onnx.parser.parse_model(f"""
    <ir_version: 10, opset_import: ["": 21]>
    alone (float[2, {channels}, 19, 45] x) => (float[2, 21, h, w] y)
    {{
        c = Conv<pads = [2, 2, 2, 2], strides = [{strides}, {strides}]>(x, weights)
        s = Sigmoid(c)
        y = Mul(c, s)
    }}
    """)
    weights = random.integers(-4, 5, (21, channels, window, window)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    x = random.integers(-4, 5, (2, channels, 19, 45)).astype(np.float32)
    (right,) = ReferenceEvaluator(model).run(None, {"x": x})
    with mlir.context():
        _, plan = planned(model, target=by_name(level))
        assert (set(plan.chosen.values()) == {FIRST}) == first
    made = nanoloom.compile(model, exact_conv=True, cache=shared_cache())
    (got,) = made({"x": x}).values()
    close = abs(got - right) <= 4 * np.finfo(np.float32).eps * abs(right) + 1e-30
    assert close.all() and np.max(right) > 4


@pytest.mark.parametrize("name", ["aarch64+sve", "riscv64+v"])
def test_vectors_of_any_width_are_of_channels(name: str) -> None:
    model, _ = alone("pads = [1, 1, 1, 1]", "3x3", 45)
    with mlir.context():
        _, plan = planned(model, target=by_name(name))
        assert set(plan.chosen.values()) <= {LAST}


def test_a_dataflow_has_vectors_of_channels() -> None:
    model, x = alone("pads = [1, 1, 1, 1]", "3x3", 45)
    (right,) = ReferenceEvaluator(model).run(None, {"x": x})
    flow = Dataflow("output")
    options = CompileOptions(host(), schedules=(("contraction_*", flow),))
    assert not options.planes and CompileOptions(host()).planes
    program = nanoloom.compile(model, options=options, cache=shared_cache())
    (nest,) = (nest for nest in program.nests().values() if nest.products)
    assert nest.products[0].extents[-3:] == (5, 3, 3)
    (got,) = program({"x": x}).values()
    assert (got == right).all()
