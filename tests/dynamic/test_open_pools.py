"""Blocks of pools for images of any height and width, drawn: each compiled once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.inspect.dynamic_sizes import dynamic_sizes
from tests.dynamic.compared import session
from tests.vector.kernel_harness import shared_cache

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
CHANNELS = 4
SIZES = ((23, 18, 13), (16, 31, 13))
VOLUMES = ((5, 9, 13), (12, 6, 7))  # of three open sides
EPSILON = float(np.finfo(np.float32).eps)


def drawn(seed: int) -> str:
    """A block: a convolution, a pool, another convolution or none, an average.

    One to three axes, each with pads of its own.  Where the seed is odd, all are sizes;
    otherwise the third one is 13.
    """
    random = np.random.default_rng(seed)
    rank = 1 + seed // 3 % 3
    kernel, stride, dilation = random.integers(1, 4, (3, rank)).clip(1, [[3], [3], [2]])
    pads = random.integers(0, kernel, (2, rank))  # no window lies beyond the image
    ceil, counted = (int(n) for n in random.integers(0, 2, 2))
    pool = ("AveragePool", "AveragePool", "MaxPool")[seed % 3]
    counts = f"count_include_pad = {counted}," if pool == "AveragePool" else ""
    own = int(random.integers(0, 2))
    first = f"c = Conv<pads = {[own] * 2 * rank}>(x, w) r = Relu(c)"
    middle = f"""p = {pool}<kernel_shape = {kernel.tolist()}, {counts}
        strides = {stride.tolist()}, dilations = {dilation.tolist()},
        pads = {pads.reshape(-1).tolist()}, ceil_mode = {ceil}>(r)"""
    last = ("y = Relu(p)", "y = GlobalAveragePool(p)", "d = Conv(p, w) y = Relu(d)")
    body = f"{first} {middle} {last[int(random.integers(0, 3))]}"
    weight = random.integers(-4, 5, CHANNELS * CHANNELS * 3**rank) / 4
    numbers = ", ".join(map(str, weight))
    third, batch = ("k_", "n") if seed % 2 else ("13", "1")
    given, made = ["h", "w_", third][:rank], ["c_", "d_", "e_"][:rank]
    filters = ", ".join(["3"] * rank)
    given = [batch if rank == 3 else "1", str(CHANNELS), *given]
    return f"""block (float[{", ".join(given)}] x)
        => (float[a, b, {", ".join(made)}] y)
    <float[{CHANNELS}, {CHANNELS}, {filters}] w = {{{numbers}}}> {{ {body} }}"""


# 15, 17: parts of volumes begin behind borders of planes.  102: a task reads one column
# of the product; 116, 137: a border is around it; 234: of an end of rows that is
# computed from a size.
@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize("seed", [*range(9), 15, 17, 102, 116, 137, 234])
def test_pools(seed: int) -> None:
    """Whole numbers: sums are exact, and what divides them rounds a few times.

    As ONNX Runtime has it: with ceil_mode ONNX's reference counts other taps.
    """
    model = onnx.parser.parse_model(f"{HEAD}\n{drawn(seed)}")
    program = nanoloom.compile(model, threads=1, cache=shared_cache(), exact_conv=True)
    rank, peer = 1 + seed // 3 % 3, session(model)
    volumes = rank == 3 and bool(seed % 2)
    for sides in VOLUMES if volumes else SIZES:
        shape = (1 + volumes, CHANNELS, *sides[:rank])
        x = np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)
        want = peer.run(None, {"x": x})[0]
        got = program({"x": x})["y"]
        bound = 64 * EPSILON * max(float(abs(want).max()), 1)
        assert got.shape == want.shape
        assert (abs(got - want) <= bound).all()
        assert not (abs(0 * got - want) <= bound).all()
    assert not program.open.reason
    assert len(program.variants) == len(SIZES)


def test_rows_of_strides_have_room() -> None:
    """A window of one row reads 3 n - 2 rows for n: no more than 3 n."""
    text = f"""block (float[1, {CHANNELS}, h, w_, 11] x) => (float[a, b, c, d, e] y)
        {{ r = Relu(x) p = AveragePool<kernel_shape = [2, 1, 1], strides = [3, 3, 1]>(r)
        y = GlobalAveragePool(p) }}"""
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    for *sides, _ in SIZES:
        shape = (1, CHANNELS, *sides, 11)
        x = np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)
        want = np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])
        assert np.allclose(program({"x": x})["y"], want, 0, 64 * EPSILON)
        assert abs(want).max() > 64 * EPSILON
    assert not program.open.reason


def test_averages_of_what_convolutions_make() -> None:
    """A task has room for all that it averages, of as many pixels as there are."""
    weights = np.random.default_rng(0).integers(-4, 5, 8 * 3 * 9) / 4
    text = f"""block (float[n, 3, h, w_] x) => (float[a, b, c, d] y)
        <float[8, 3, 3, 3] w = {{{", ".join(map(str, weights))}}}>
        {{ c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w) r = Relu(c)
        y = GlobalAveragePool(r) }}"""
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    peer = session(model)
    for sides in ((1, 3), (23, 18), (910, 790)):
        shape = (2, 3, *sides)
        x = np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)
        want = peer.run(None, {"x": x})[0]
        bound = 64 * EPSILON * float(abs(want).max())
        assert (abs(program({"x": x})["y"] - want) <= bound).all()
        assert not (abs(0 * want - want) <= bound).all()
    assert not program.open.reason


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
    for height, width, _ in SIZES:
        x = np.zeros((1, CHANNELS, height, width), np.float32)
        want = np.multiply.outer(np.arange(height - 3) + 0.5, np.arange(width))
        assert np.array_equal(program({"x": x})["y"], want)
    assert not program.open.reason


@pytest.mark.parametrize("text", [RANGES, drawn(4), drawn(7)])
def test_check_and_the_program_agree(text: str) -> None:
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    height, width, _ = SIZES[0]
    third = (5,) * (text == drawn(7))
    program({"x": np.zeros((1, CHANNELS, height, width, *third), np.float32)})
    assert dynamic_sizes(model, {}, shared_cache()).why == program.open.reason == ""
