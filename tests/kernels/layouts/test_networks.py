"""Networks in any layout compute what they did before."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom import mlir
from nanoloom.graph.stage import optimize
from nanoloom.kernels.layouts.layout import FIRST, LAST, Layout, blocks
from nanoloom.kernels.layouts.stage import Plan, plan_layouts
from nanoloom.kernels.stage import SIMPLIFY
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import LinalgModule, lower
from nanoloom.mlir import run_pipeline
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from tests.graph.image_networks import network
from tests.linalg.harness import run
from tests.vector.kernel_harness import shared_cache

TARGET = by_name("x86-64-v3")


def planned(
    model: onnx.ModelProto, only: Layout | None = None
) -> tuple[LinalgModule, Plan]:
    """A model's module and its layouts; an MLIR context must be current."""
    graph = optimize(onnx_ir.from_proto(model), OPERATORS.keys())
    module = lower(graph)
    run_pipeline(module.module, SIMPLIFY)
    return module, plan_layouts(module, TARGET, only)


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


@pytest.mark.parametrize("layout", ["first", "4", "auto"])
@pytest.mark.parametrize("seed", [3, 8, 11])
def test_compiled_networks(seed: int, layout: str) -> None:
    model, x = network(seed, 14)
    right = ReferenceEvaluator(model).run(None, {"x": x})
    options = CompileOptions(host(), layout=layout)
    program = nanoloom.compile(model, options=options, cache=shared_cache())
    for one, other in zip(program({"x": x}).values(), right, strict=True):
        assert (one == other).all() and one.shape == np.shape(other)
