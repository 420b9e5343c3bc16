"""Blocks of pools for images of any height and width, drawn: each compiled once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.inspect.dynamic_sizes import dynamic_sizes
from tests.vector.kernel_harness import shared_cache

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
CHANNELS = 4
SIZES = ((23, 18), (16, 31))
EPSILON = float(np.finfo(np.float32).eps)


def drawn(seed: int) -> str:
    """A block: a convolution, a pool, another convolution or none, an average."""
    random = np.random.default_rng(seed)
    kernel, stride, dilation = (int(random.integers(1, n)) for n in (4, 4, 3))
    span = (kernel - 1) * dilation + 1
    pad = int(random.integers(0, min(kernel, span) // 2 + 1))
    ceil, counted = (int(n) for n in random.integers(0, 2, 2))
    pool = ("AveragePool", "AveragePool", "MaxPool")[seed % 3]
    if ceil:
        dilation = 1  # ONNX's reference counts other taps than runtimes do
    counts = f"count_include_pad = {counted}," if pool == "AveragePool" else ""
    own = int(random.integers(0, 2))
    first = f"c = Conv<pads = [{own}, {own}, {own}, {own}]>(x, w) r = Relu(c)"
    middle = f"""p = {pool}<kernel_shape = [{kernel}, {kernel}], {counts}
        strides = [{stride}, {stride}], dilations = [{dilation}, {dilation}],
        pads = [{pad}, {pad}, {pad}, {pad}], ceil_mode = {ceil}>(r)"""
    last = ("y = Relu(p)", "y = GlobalAveragePool(p)", "d = Conv(p, w) y = Relu(d)")
    body = f"{first} {middle} {last[int(random.integers(0, 3))]}"
    weight = random.integers(-4, 5, CHANNELS * CHANNELS * 9) / 4
    numbers = ", ".join(map(str, weight))
    return f"""block (float[1, {CHANNELS}, h, w_] x) => (float[a, b, c_, d_] y)
    <float[{CHANNELS}, {CHANNELS}, 3, 3] w = {{{numbers}}}> {{ {body} }}"""


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(9))
def test_pools(seed: int) -> None:
    """Whole numbers: sums are exact, and what divides them rounds a few times."""
    model = onnx.parser.parse_model(f"{HEAD}\n{drawn(seed)}")
    program = nanoloom.compile(model, threads=1, cache=shared_cache(), exact_conv=True)
    for height, width in SIZES:
        shape = (1, CHANNELS, height, width)
        x = np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)
        want = np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])
        got = program({"x": x})["y"]
        bound = 64 * EPSILON * max(float(abs(want).max()), 1)
        assert got.shape == want.shape
        assert (abs(got - want) <= bound).all()
        assert not (abs(0 * got - want) <= bound).all()
    assert not program.open.reason
    assert len(program.variants) == len(SIZES)


RANGES = f"""ranges (float[1, {CHANNELS}, h, w_] x) => (float[a, b] y)
{{
  s = Shape(x)
  two = Constant<value_int = 2>()
  three = Constant<value_int = 3>()
  zero = Constant<value_float = 0.0>()
  one = Constant<value_float = 1.0>()
  half = Constant<value_float = 0.5>()
  h_ = Gather(s, two)
  less = Sub(h_, three)
  v_ = Gather(s, three)
  height = Cast<to = 1>(less)
  width = Cast<to = 1>(v_)
  rows_ = Range(zero, height, one)
  rows = Add(rows_, half)
  columns = Range(zero, width, one)
  last = Constant<value_ints = [-1]>()
  tall = Unsqueeze(rows, last)
  y = Mul(tall, columns)
}}"""


def test_a_range_of_floats() -> None:
    """As detectors make places of their cells."""
    model = onnx.parser.parse_model(f"{HEAD}\n{RANGES}")
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    for height, width in SIZES:
        x = np.zeros((1, CHANNELS, height, width), np.float32)
        want = np.multiply.outer(np.arange(height - 3) + 0.5, np.arange(width))
        assert np.array_equal(program({"x": x})["y"], want)
    assert not program.open.reason


@pytest.mark.parametrize("text", [RANGES, drawn(1), drawn(4)])
def test_check_and_the_program_agree(text: str) -> None:
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    height, width = SIZES[0]
    program({"x": np.zeros((1, CHANNELS, height, width), np.float32)})
    assert dynamic_sizes(model, {}, shared_cache()).why == program.open.reason == ""
