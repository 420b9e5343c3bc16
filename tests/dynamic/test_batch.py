"""Models that compute each row of a batch alone: compiled for one, run for each."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom import compile_open
from nanoloom.cache import Cache
from nanoloom.dynamic.batch_independence import require_rows
from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.sample_walk import Walks
from nanoloom.kernels import batch_loop
from nanoloom.kernels.program import Program
from nanoloom.linalg.operators import OPERATORS
from nanoloom.model.source import source_of

HEAD = '<ir_version: 10, opset_import: ["" : 20]>\n'
# Convolution, pooling, resizing, attention over pixels; a row of tokens in front.
IMAGES = """
g (float[batch, 3, 9, 7] x, float[1, 4, 1, 1] scale)
    => (float[batch, 5] y, float[heads, 12, 12] p, float[batch, 4, 10, 8] large)
{
    c0 = Conv<pads = [1, 1, 1, 1]>(x, w, bias)
    c1 = Relu(c0)
    c2 = Mul(c1, scale)
    pooled = MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(c2)
    scales = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()
    large = Resize<mode = "nearest">(pooled, , scales)
    cut0 = Constant<value = int64[1] {0}>()
    cut3 = Constant<value = int64[1] {3}>()
    cut2 = Constant<value = int64[1] {2}>()
    few = Slice(pooled, cut0, cut3, cut2)
    shape = Shape(few)
    one = Constant<value = int64[1] {1}>()
    batch1 = Gather<axis = 0>(shape, cut0)
    heads = Constant<value = int64[3] {2, 2, 12}>()
    split = Concat<axis = 0>(batch1, heads)
    q = Reshape(few, split)
    minus = Constant<value = int64[1] {-1}>()
    folded = Constant<value = int64[3] {-1, 2, 12}>()
    q3 = Reshape(q, folded)
    k3 = Transpose<perm = [0, 2, 1]>(q3)
    qk = MatMul(k3, q3)
    p = Softmax<axis = -1>(qk)
    o = MatMul(q3, p)
    whole = Constant<value = int64[3] {-1, 4, 12}>()
    o4 = Reshape(o, whole)
    tokens = Concat<axis = 0>(batch1, cut4, cut1)
    first0 = ConstantOfShape<value = float[1] {0.5}>(tokens)
    joined = Concat<axis = 2>(first0, o4)
    flat = Flatten(joined)
    y = Gemm<transB = 1>(flat, v)
}
"""


def images() -> onnx.ModelProto:
    model = parser.parse_model(HEAD + IMAGES)
    random = np.random.default_rng(3)
    for name, shape in (("w", (4, 3, 3, 3)), ("bias", (4,)), ("v", (5, 52))):
        array = random.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for name, number in (("cut4", 4), ("cut1", 1)):
        array = np.array([number], np.int64)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def inputs(batch: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(batch)
    x = random.standard_normal((batch, 3, 9, 7)).astype(np.float32)
    return {"x": x, "scale": random.standard_normal((1, 4, 1, 1)).astype(np.float32)}


def require_right(made: dict[str, np.ndarray], batch: int) -> None:
    """Sums of at most 52 products of numbers of about 10."""
    wanted = ReferenceEvaluator(images()).run(None, inputs(batch))
    for array, right in zip(made.values(), wanted, strict=True):
        assert array.shape == right.shape
        assert np.abs(array - right).max() <= 52 * 2e-6 * max(1, np.abs(right).max())
        assert np.abs(right).max() > 0.1
        if batch > 1:  # rows that change places are seen
            turned = np.abs(array[::-1] - right).max()
            assert turned > 52 * 2e-6 * max(1, np.abs(right).max())


@pytest.mark.parametrize("threads", [1, 2])
def test_any_batch(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = nanoloom.compile(images(), threads=threads, cache=Cache(tmp_path))
    require_right(program(inputs(2)), 2)
    monkeypatch.delattr(compile_open, "compile_open")
    for batch in (1, 5, 3):
        require_right(program(inputs(batch)), batch)
    assert not program.open.reason
    assert (
        program({"x": inputs(2)["x"][:0], "scale": inputs(2)["scale"]})["y"].size == 0
    )


def test_saved_with_bounds(tmp_path: Path) -> None:
    program = nanoloom.compile(images(), dims={"batch": (1, 4)}, cache=Cache(tmp_path))
    loaded = nanoloom.load(program.save(tmp_path / "images.so"))
    assert loaded.inputs[0].shape == ("batch", 3, 9, 7)
    assert loaded.outputs[1].shape == ("2 * batch", 12, 12)
    for batch in (4, 1):
        require_right(loaded(inputs(batch)), batch)
    with pytest.raises(nanoloom.Error, match="batch is 5, at most 4 was compiled for"):
        loaded(inputs(5))


@pytest.mark.parametrize("seed", range(3))
def test_parts_change_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Wherever the loop over rows ends and begins again; what is handed on is kept."""
    cuts = list[int]()

    def drawn(program: Program, caches: object) -> list[range]:
        draw, among = random.Random(seed), range(1, len(program.calls))
        cuts[:] = sorted(draw.sample(among, draw.choice((2, len(among)))))
        return [range(a, b) for a, b in pairwise((0, *cuts, len(program.calls)))]

    whole = nanoloom.compile(images(), threads=1, cache=Cache(tmp_path))(inputs(5))
    require_right(whole, 5)
    monkeypatch.setattr(batch_loop, "row_parts", drawn)
    cut = nanoloom.compile(images(), threads=2, cache=Cache(tmp_path / "cut"))
    for batch in (1, 5, 3):
        made = cut(inputs(5) | {"x": inputs(5)["x"][:batch]})
        for name, array in made.items():
            right = whole[name]
            assert (array == right[: len(right) * batch // 5]).all(), (name, cuts)
    loaded = nanoloom.load(cut.save(tmp_path / "images.so"))
    assert all((x == whole[name]).all() for name, x in loaded(inputs(5)).items())
    assert cuts


MIXED = {
    "ReduceMean over the batch": "m = ReduceMean<keepdims = 1>(x, zero) y = Sub(x, m)",
    "Softmax over the batch": "y = Softmax<axis = 0>(x)",
    "a transposed batch": "t = Transpose<perm = [1, 0]>(x) y = MatMul(x, t)",
    "a sum of all": "s = ReduceSum<keepdims = 0>(x) y = Add(x, s)",
    "CumSum along the batch": "y = CumSum(x, first)",
    "the number of rows": "n = Shape(x) f = Cast<to = 1>(n) y = Mul(x, f)",
    "a reversed batch": "y = Slice(x, last, before, zero, back)",
    "a gathered batch": "y = Gather<axis = 0>(x, rows)",
    "a resized batch": 'y = Resize<mode = "linear">(x, , twice)',
    "rows behind each other": "y = Concat<axis = 0>(x, x)",
    "a scale of all": "q, s, z = DynamicQuantizeLinear(x) y = Cast<to = 1>(q)",
    "statistics of all": "y = MeanVarianceNormalization<axes = [0, 1]>(x)",
    "a body": """
        s = If(true) <
            then_branch = a () => (float[1] s1) { s1 = ReduceMax<keepdims = 0>(x) },
            else_branch = b () => (float[1] s2) { s2 = Identity(word) }
        >
        y = Add(x, s)
    """,
}


@pytest.mark.parametrize("name", MIXED)
def test_rows_that_depend_on_each_other(name: str) -> None:
    text = f"""g (float[batch, 2] x) => (float[rows, columns] y)
        <int64[1] zero = {{0}}, int64 first = {{0}}, int64[1] last = {{-1}},
         int64[1] before = {{-1000}}, int64[1] back = {{-1}}, int64[2] rows = {{0, 0}},
         bool true = {{1}}, float[1] word = {{2}}, float[2] twice = {{2, 1}}>
        {{ {MIXED[name]} }}"""
    model = parser.parse_model(HEAD + text)
    with pytest.raises(NotDynamic):
        walk(model)


def walk(model: onnx.ModelProto) -> None:
    source = source_of(model, Cache.temporary())
    walks = Walks(lambda s: source.bound({"x": (s["n"], 2)}, {}), OPERATORS.keys())
    require_rows(walks, "n", [x.name for x in model.graph.output])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("y = Constant<value = float[1, 2] {1, 2}>()", "output y is not of rows"),
        ("t = Transpose<perm = [1, 0]>(x) y = Relu(t)", "the batch in another axis"),
    ],
)
def test_outputs_that_are_no_rows(body: str, said: str) -> None:
    text = f"g (float[batch, 2] x) => (float[rows, columns] y) {{ {body} }}"
    with pytest.raises(NotDynamic, match=said):
        walk(parser.parse_model(HEAD + text))


def test_rows_alone_are_taken() -> None:
    text = "g (float[batch, 2] x) => (float[batch, 2] y) { y = Softmax<axis = 1>(x) }"
    walk(parser.parse_model(HEAD + text))


LESS_THAN_A_MULTIPLE = """
    shape = Shape(x)
    width = Gather<axis = 0>(shape, one)
    left = Mod(width, three)
    pads = Concat<axis = 0>(zero, zero, zero, NUMBER)
    y = Pad(x, pads)
"""


@pytest.mark.parametrize("number", ["left", "rows"])
def test_numbers_of_another_dimension_are_no_batch(number: str) -> None:
    """As many columns as a width wants; those that a batch wants are refused."""
    body = LESS_THAN_A_MULTIPLE.replace("NUMBER", number)
    text = f"""g (float[batch, 2] x) => (float[batch, columns] y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] three = {{3}}>
        {{ rows = Shape<end = 1>(x) {body} }}"""
    model = parser.parse_model(HEAD + text)
    if number == "left":
        walk(model)
        return
    with pytest.raises(NotDynamic, match="the batch in another axis"):
        walk(model)
