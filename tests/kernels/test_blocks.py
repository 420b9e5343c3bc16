"""Blocks of real networks, drawn at sizes that nobody chose: compiled, and right."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import nanoloom
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import this_machine
from tests.models.blocks import BLOCKS, block
from tests.vector.kernel_harness import shared_cache

# A block is at most eight layers deep, and none makes an error larger than its sums'.
BOUND = 2.0**-16
LEVELS = ("x86-64-v3", "x86-64-v4")
SEEDS = range(2)  # python -m tests.fuzz.blocks draws more
FOUND = [  # once did not compile: kind, seed, sizes
    ("c2f", 0, (1, 128, 4, 4)),
    ("c2f", 1, (1, 256, 3, 5)),
    ("spp", 0, (2, 40, 20, 1)),
]


def levels() -> list[str]:
    """Those that this machine can run."""
    return [n for n in LEVELS if by_name(n).extensions <= this_machine().extensions]


def differs(
    kind: str, seed: int, level: str, sizes: tuple[int, ...] | None = None
) -> tuple[float, float]:
    """How far a block is from ONNX Runtime's result, and how far zeros would be, both
    as parts of the largest number in it."""
    rng = np.random.default_rng([seed, list(BLOCKS).index(kind)])
    model = block(kind, rng, sizes)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = rng.standard_normal(shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (right,) = session.run(None, {"x": x})
    program = nanoloom.compile(
        model, cache=shared_cache(), options=CompileOptions(by_name(level))
    )
    got, largest = program({"x": x})["y"], float(abs(right).max())
    assert got.shape == right.shape
    return float(abs(got - right).max()) / largest, largest


@pytest.mark.drawn
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block(kind: str, seed: int) -> None:
    known = levels()
    error, largest = differs(kind, seed, known[seed % len(known)])
    assert error < BOUND < largest


@pytest.mark.drawn(one_in=3, kind=lambda kind, seed, sizes: kind)
@pytest.mark.parametrize(("kind", "seed", "sizes"), FOUND)
def test_blocks_that_did_not_compile(
    kind: str, seed: int, sizes: tuple[int, ...]
) -> None:
    for level in levels():
        error, largest = differs(kind, seed, level, sizes)
        assert error < BOUND < largest
