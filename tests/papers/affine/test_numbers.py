"""What the affine path computes, by every strategy: products, reductions, models."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import Report, partition_model
from nanoloom.errors import Error
from nanoloom.frontend.inputs import random_inputs
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.target.host import host
from nanoloom_papers.affine.strategies import NAMES as STRATEGIES
from nanoloom_papers.affine.strategies import Unrolling, strategy_named
from tests.conformance.test_models import shaped
from tests.guarded import in_child
from tests.linalg.single import model_of
from tests.notation.programs import EPSILON, normal
from tests.vector.edges import PRODUCTS, Edges, convert, multiply, run_edges
from tests.vector.kernel_harness import shared_cache

Array = np.ndarray
MODELS = Path(__file__).parents[2] / "models"
COLUMNS = (33, 1, 17, 50, 7, 16, 31)
WAYS = [
    Unrolling(),
    Unrolling(vlen=4, k=1, m=1, n=1),
    Unrolling(vlen=8, k=3, m=3, n=2),
    Unrolling(vlen=16, k=2, m=8, n=16),
]


def computed(
    op: str,
    *inputs: Array,
    strategy: str = "affine",
    unrolling: Unrolling = WAYS[0],
    **attributes: Any,
) -> Array:
    """The first result of a model of one node, compiled by a strategy."""
    model, feeds = model_of(op, inputs, attributes)
    options = CompileOptions(host(), strategy=strategy_named(strategy, unrolling))
    program = nanoloom.compile(model, threads=2, options=options, cache=shared_cache())
    return next(iter(program(feeds).values()))


@pytest.mark.drawn
@pytest.mark.parametrize("unrolling", WAYS, ids=str)
@pytest.mark.parametrize("strategy", ["affine", "onnx-mlir"])
@pytest.mark.parametrize("transposed", [0, 1])
def test_a_product(strategy: str, unrolling: Unrolling, transposed: int) -> None:
    a, b = normal(19, 37), normal(*((53, 37) if transposed else (37, 53)), seed=1)
    right = b.T if transposed else b
    got = computed(
        "Gemm", a, b, strategy=strategy, unrolling=unrolling, transB=transposed
    )
    exact = a.astype(float) @ right
    room = (37 + 2) * EPSILON * (abs(a.astype(float)) @ abs(right))
    assert (abs(got - exact) <= room).all()
    assert not (abs(0 * got - exact) <= room).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reductions_of_rows(strategy: str) -> None:
    """Of 53 numbers, which fill no vectors; NaNs as by the default strategy."""
    x = normal(5, 53, seed=2)
    wide = x.astype(float)
    total = computed("ReduceSum", x, np.array([1]), strategy=strategy, keepdims=0)
    assert (abs(total - wide.sum(1)) <= 55 * EPSILON * abs(wide).sum(1)).all()
    squares = computed("ReduceSumSquare", x, np.array([1]), strategy=strategy)
    exact = (wide**2).sum(1, keepdims=True)
    assert (abs(squares - exact) <= 57 * EPSILON * exact).all()
    x[1, 7], x[2, :] = np.nan, np.nan
    for op in ("ReduceMax", "ReduceMin", "ArgMax", "Softmax"):
        given = (x,) if op in ("ArgMax", "Softmax") else (x, np.array([1]))
        got = computed(op, *given, strategy=strategy)
        wanted = computed(op, *given, strategy="default")
        room = 4 * EPSILON * abs(np.nan_to_num(wanted)) if op == "Softmax" else 0
        assert (np.isnan(got) == np.isnan(wanted)).all()
        assert (abs(np.nan_to_num(got) - np.nan_to_num(wanted)) <= room).all()


@pytest.mark.drawn
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["i32", "u8", "i64"])
def test_integers_are_exact(strategy: str, kind: str) -> None:
    dtype = {"i32": np.int32, "u8": np.uint8, "i64": np.int64}[kind]
    x = np.random.default_rng(3).integers(0, 100, (7, 43)).astype(dtype)
    for op, wanted in (("ReduceMax", x.max(1)), ("ReduceMin", x.min(1))):
        got = computed(op, x, np.array([1]), strategy=strategy, keepdims=0)
        assert got.tolist() == wanted.tolist()
    if kind != "u8":  # ONNX has no sums of those
        total = computed("ReduceSum", x, np.array([0]), strategy=strategy, keepdims=0)
        assert total.tolist() == x.sum(0).tolist()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_convolution(strategy: str) -> None:
    x, w = normal(1, 3, 9, 11), normal(20, 3, 3, 3, seed=1)
    got = computed("Conv", x, w, strategy=strategy)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(float), (3, 3), (2, 3))
    exact = np.einsum("nchwyx,ocyx->nohw", windows, w)
    room = 29 * EPSILON * np.einsum("nchwyx,ocyx->nohw", abs(windows), abs(w))
    assert (abs(got - exact) <= room).all()
    assert (abs(exact) > room).mean() > 0.9


# ---- memory


def products(strategy: str) -> list[str]:
    edges = Edges()
    for pair, columns in zip(PRODUCTS, cycle(COLUMNS), strict=False):
        multiply(edges, *pair, columns, flat=columns % 2 == 0)
    convert(edges, "bool", "f32", 37)
    convert(edges, "i32", "bool", 37)
    return run_edges(edges, host(), strategy_named(strategy))


@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_byte_too_far(strategy: str) -> None:
    assert in_child(products, strategy) == []


# ---- models

NETWORKS = ["nsnet2_opset17_torchscript", "bge-small_opset18_dynamo"]


def way(name: str, strategy: str) -> str:
    """Each strategy makes the small network, and one of them the other."""
    return strategy if name == NETWORKS[0] else name


@pytest.mark.drawn(one_in=8, kind=way)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_small_networks(name: str, strategy: str) -> None:
    """As by the default strategy up to its own rounding."""
    path = MODELS / f"{name}.onnx"
    usual = nanoloom.compile(path, threads=1, cache=shared_cache())
    inputs = random_inputs(shaped(usual), seed=3)
    wanted = usual(inputs)
    options = CompileOptions(host(), strategy=strategy_named(strategy))
    made = nanoloom.compile(path, threads=1, options=options, cache=shared_cache())
    for output, array in made(inputs).items():
        largest = abs(wanted[output]).max()
        error = abs(array - wanted[output]).max()
        assert error <= 100 * EPSILON * largest, output
        assert not abs(wanted[output]).max() <= 100 * EPSILON * largest


# ---- options


def test_each_way_is_compiled_by_itself(tmp_path: Path) -> None:
    """Everything that decides about the code is part of its key in the cache."""
    model, _ = model_of("MatMul", [normal(9, 20), normal(20, 33)], {})
    store = Cache(tmp_path)
    chosen: list[tuple[str, Unrolling]] = [("affine", each) for each in WAYS]
    chosen.append(("onnx-mlir", WAYS[0]))
    for strategy, unrolling in chosen:
        options = CompileOptions(host(), strategy=strategy_named(strategy, unrolling))
        report = Report()
        nanoloom.compile(model, threads=1, options=options, cache=store, report=report)
        assert (report.kernels, report.cached) == (1, 0)


def test_a_schedule_is_for_the_default_strategy() -> None:
    model, _ = model_of("MatMul", [normal(9, 20), normal(20, 33)], {})
    options = CompileOptions(
        host(), schedules=(("*", ""),), strategy=strategy_named("affine")
    )
    with pytest.raises(Error, match="kernels have no schedules with the strategy aff"):
        nanoloom.compile(model, options=options, cache=shared_cache())


@pytest.mark.parametrize(("strategy", "turned"), [("affine", 0), ("default", 1)])
def test_keys_are_read_as_they_lie(strategy: str, turned: int) -> None:
    """Along the sum: no kernel turns them, where the strategy's loops want them so."""
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[3,70,20] q, float[3,90,20] k) => (float[3,70,90] y)
    { t = Transpose<perm = [0, 2, 1]>(k) y = MatMul(q, t) }"""
    options = CompileOptions(host(), strategy=strategy_named(strategy))
    program = partition_model(load(onnx.parser.parse_model(text)), options, Report())
    assert len(program.calls) == 1 + turned
