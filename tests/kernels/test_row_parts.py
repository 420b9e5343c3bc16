"""Which calls the loop over the rows of a batch goes round, by what caches hold."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from nanoloom.cache import Cache as Folder
from nanoloom.compiler import partition_model
from nanoloom.kernels.program import Program
from nanoloom.kernels.row_parts import crossing, row_parts, weight_bytes
from nanoloom.model.source import source_of
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.target import by_name
from nanoloom.target.facts import Cache

KIB = 1 << 10
WEIGHT = 25 * KIB  # bytes: 5x5 taps of 16 channels in, 16 out


def chain(side: int) -> Program:
    """Three convolutions of one image of 16 channels, each with its weight."""
    model = onnx.parser.parse_model(f"""
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[batch, 16, {side}, {side}] x) => (float[batch, 16, {side}, {side}] y)
    {{
        a = Conv<pads = [2, 2, 2, 2]>(x, w0)
        b = Conv<pads = [2, 2, 2, 2]>(a, w1)
        y = Conv<pads = [2, 2, 2, 2]>(b, w2)
    }}""")
    random = np.random.default_rng(0)
    for i in range(3):
        array = random.standard_normal((16, 16, 5, 5), np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, f"w{i}"))
    bound = source_of(model, Folder.temporary()).bound({"x": (1, 16, side, side)}, {})
    return partition_model(bound, CompileOptions(by_name("znver4")), Report())


@pytest.mark.parametrize(
    ("side", "caches", "products"),
    [
        (3, Cache(1 * KIB, 8 * WEIGHT), [3]),  # half of it holds all three
        (3, Cache(1 * KIB, 5 * WEIGHT), [1, 2]),
        (3, Cache(1 * KIB, 3 * WEIGHT), [1, 1, 1]),
        (3, Cache(1 * KIB, 1 * WEIGHT), [3]),  # none: nothing is saved
        (3, Cache(1 * KIB, 1 * WEIGHT, 5 * WEIGHT), [1, 2]),
        (3, Cache(1 * KIB, 3 * WEIGHT, 8 * WEIGHT), [1, 1, 1]),
        # What goes by is more than a cache holds, or more to hand on than weights are.
        (40, Cache(1 * KIB, 5 * WEIGHT), [3]),
        (15, Cache(1 * KIB, 3 * WEIGHT), [3]),
    ],
)
def test_parts(side: int, caches: Cache, products: list[int]) -> None:
    program = chain(side)
    parts = row_parts(program, caches)
    assert [call for part in parts for call in part] == [*range(len(program.calls))]
    heavy = [weight_bytes(program, call) >= WEIGHT for call in program.calls]
    assert sum(heavy) == 3
    assert sorted(sum(heavy[i] for i in x) for x in parts) == products
    assert bool(crossing(program, parts)) == (len(parts) > 1)
