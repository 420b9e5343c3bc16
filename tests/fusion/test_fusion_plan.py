"""A kernel carries the fusions that made it one, and its schedule is made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nanoloom.fusion.fusion_plan import FUSED, with_plan
from nanoloom.ir import mlir
from nanoloom.ir.loop_nest import read_nest
from nanoloom.ir.mlir import ir
from nanoloom.kernels.program import Kernel, Program
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.plan import Fusion
from nanoloom.nest.product_chain import chain_of
from nanoloom.schedule.choose import choose
from nanoloom.target import by_name
from tests.fusion.test_fuse_panels import small
from tests.fusion.test_fuse_producer import layer as product_behind_points
from tests.fusion.test_fuse_product_chain import below_the_top, first, sizes_of
from tests.kernels.test_fused_windows import ONE, RESNET, layer
from tests.vector.kernel_harness import program_of

TARGET = by_name("x86-64-v4")


def chain(b: int, m: int, n: int, k: int, f: int) -> Program:
    return program_of(below_the_top, *sizes_of((b, m, n, k, f)))


def windows() -> Program:
    weights = np.ones((2, 2, 1, 35), np.float32)
    shape = ((1, 40, 41), "float32")
    return program_of(layer(ONE, RESNET, weights), shape, target=small(TARGET))


def points() -> Program:
    case = (1, 31, 37, 71, 70)
    return program_of(product_behind_points(case), ((1, 31, 37, 71), "float32"))


def last(program: Program) -> Kernel:
    return list(program.kernels.values())[-1]


def test_a_plan_of_each_kind() -> None:
    """Rows between products, an image that windows read, and points of a product."""
    (between,) = last(chain(3, 20, 33, 13, 29)).nest.plan
    # A row of 33 numbers in each step of the second product's rows, 20 in 3 matrices.
    assert between == Fusion("point", "product_2", "d1", 33, 0, 7920, 132)
    (image,) = last(windows()).nest.plan
    assert (image.producer, image.consumer) == ("point", "reduction")
    assert image.footprint == 9 and image.recompute > 0  # windows of 3 x 3 overlap
    (front,) = last(points()).nest.plan
    assert (front.consumer, front.at) == ("product", "d0")
    assert (front.footprint, front.recompute) == (71, 0)
    assert front.bytes == 31 * 37 * front.step_bytes == 4 * 31 * 37 * 71
    assert last(program_of(first, *sizes_of((3, 20, 33, 13, 29))[:2])).nest.plan == ()


@pytest.mark.parametrize("seed", range(6))
def test_the_text_says_it(seed: int) -> None:
    """The plan that is read of a kernel's text is the one that it was cut with."""
    random = np.random.default_rng(seed)
    drawn = [int(n) for n in random.integers(2, (4, 40, 60, 30, 40))]
    for program in (chain(*drawn), windows(), points()):
        kernel = last(program)
        with mlir.context():
            module = ir.Module.parse(kernel.text)
            nest = with_plan(read_nest(module), module)
        assert kernel.text.count(FUSED) == len(kernel.nest.plan) == 1
        assert nest == kernel.nest


def without_plan(nest: LoopNest) -> LoopNest:
    return replace(nest, plan=())


@pytest.mark.parametrize("program", [chain(3, 20, 33, 13, 29), windows(), points()])
def test_a_schedule_is_made_of_the_plan(program: Program) -> None:
    """The same loops without the plan are not recognized: they are plain rows."""
    nest, target = last(program).nest, small(TARGET)
    assert choose(nest, target) != choose(without_plan(nest), target)
    assert chain_of(without_plan(nest)) is None
