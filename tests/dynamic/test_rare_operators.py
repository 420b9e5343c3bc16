"""Operators that few models have: one program for all sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache

SINGLE = 2.0**-24
IMAGES = ((1, 5, 7), (2, 1, 6), (3, 8, 1), (1, 1, 1), (2, 9, 12), (1, 33, 31))
DIVIDED = ("affine corners", "deformed", "deformed apart")  # reference: 0 / 0 for 1
ONES = ", ".join(["0.5"] * 24)
# The text of a model, and how many numbers of at most 1 an element is a sum of.
MODELS = {
    "crop": (
        """(float[n, 2, h, w] x) => (float[n, 2, a, b] y) <int64[2] s = {6, 9}>
        { y = CenterCropPad<axes = [2, 3]>(x, s) }""",
        0,
    ),
    "crop to a size": (
        """(float[n, 2, h, w] x) => (float[n, w, h, b] y) <int64[3] p = {0, 3, 2}>
        { t = Transpose<perm = [0, 3, 2, 1]>(x) s = Shape<end = 3, start = 2>(x)
        y = CenterCropPad<axes = [3]>(t, s) }""",
        0,
    ),
    "affine": (
        """(float[n, 2, h, w] x) => (float[n, h, w, 2] y)
        <float[1, 2, 3] t = {0.5, -0.25, 0.125, 0.3, 0.7, -0.9}>
        { n = Shape<end = 1>(x) f = Constant<value_ints = [2, 3]>()
        m = Concat<axis = 0>(n, f) many = Expand(t, m) s = Shape(x)
        y = AffineGrid(many, s) }""",
        4,
    ),
    "affine corners": (
        """(float[n, 2, h, w] x) => (float[n, h, w, h, 3] y)
        <float[1, 3, 4] t = {0.5, -0.2, 0.1, 0.3, 0.7, -0.9, 1, 0, 0.2, -0.4, 0.6, 1}>
        { n = Shape<end = 1>(x) f = Constant<value_ints = [3, 4]>()
        m = Concat<axis = 0>(n, f) many = Expand(t, m) s = Shape(x)
        h = Shape<start = 2, end = 3>(x) q = Concat<axis = 0>(s, h)
        y = AffineGrid<align_corners = 1>(many, q) }""",
        5,
    ),
    "unpool": (
        """(float[n, 2, h, w] x) => (float[n, 2, a, b] y)
        { g = Concat<axis = 2>(x, x) k = Concat<axis = 3>(g, g)
        p, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(k)
        y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(p, i) }""",
        0,
    ),
    "unpool to a shape": (
        """(float[n, 2, h, w] x, int64[n, 2, h, w] places) => (float[n, 2, a, b] y)
        <int64[4] times = {1, 1, 2, 2}, int64[4] more = {0, 0, 3, 0}>
        { q = Shape(x) t = Mul(q, times) s = Add(t, more)
        y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, places, s) }""",
        0,
    ),
    "blocks": (
        """(float[n, 2, h, w] x) => (float[n, 1, h, w] y)
        <int64[2] k = {2, 1}, int64[3] t = {0, 2, -1}>
        { c = AveragePool<kernel_shape = [2, 1], pads = [1, 0, 1, 0],
        count_include_pad = 1>(x) q = Reshape(c, t) s = Shape<start = 2>(x)
        y = Col2Im<pads = [1, 0, 1, 0]>(q, s, k) }""",
        8,
    ),
    "blocks apart": (
        """(float[n, 2, h, w] x) => (float[n, 1, h, w] y)
        <int64[2] k = {3, 2}, int64[3] t = {0, 6, -1}>
        { c = AveragePool<kernel_shape = [3, 2], pads = [1, 1, 1, 0], strides = [2, 1],
        count_include_pad = 1>(x) d = Concat<axis = 1>(c, c, c) q = Reshape(d, t)
        s = Shape<start = 2>(x)
        y = Col2Im<pads = [1, 1, 1, 0], strides = [2, 1]>(q, s, k) }""",
        24,
    ),
    "deformed": (
        f"""(float[n, 2, h, w] x, float[n, 12, h, w] o) => (float[n, 2, h, w] y)
        <float[2, 2, 3, 2] f = {{{ONES}}}> {{ y = DeformConv<pads = [1, 1, 1, 0]>
        (x, f, o) }}""",
        48,
    ),
    "deformed apart": (
        f"""(float[n, 2, h, w] x) => (float[n, 2, a, b] y)
        <float[2, 2, 3, 2] f = {{{ONES}}}> {{ c = AveragePool<kernel_shape = [3, 2],
        pads = [1, 1, 1, 0], strides = [2, 2], count_include_pad = 1>(x) d = Sin(c)
        o = Concat<axis = 1>(c, d, d, c, d, c) m = Concat<axis = 1>(d, c, d)
        y = DeformConv<pads = [1, 1, 1, 0], strides = [2, 2]>(x, f, o, , m) }}""",
        48,
    ),
}


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 22]> g {text}'
    )


def first(reference: ReferenceEvaluator, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(next(iter(reference.run(None, dict(feeds)))))


def given(model: onnx.ModelProto, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Seeded floats from -1 to 1; places are all different."""
    random = np.random.default_rng(sum(dims.values()))
    made: dict[str, np.ndarray] = {}
    for x in model.graph.input:
        kind = x.type.tensor_type
        shape = [d.dim_value or dims[d.dim_param] for d in kind.shape.dim]
        if kind.elem_type == onnx.TensorProto.INT64:
            count = int(np.prod(shape))
            made[x.name] = random.permutation(4 * count)[:count].reshape(shape)
        else:
            made[x.name] = random.uniform(-1, 1, shape).astype(np.float32)
    return made


@pytest.mark.parametrize("name", MODELS)
def test_any_size(tmp_path: Path, name: str) -> None:
    text, terms = MODELS[name]
    model, cache = parsed(text), Cache(tmp_path)
    program = nanoloom.compile(model, threads=1, cache=cache)
    reference = ReferenceEvaluator(model)
    for n, h, w in IMAGES:
        if 1 in (h, w) and name in DIVIDED:
            continue
        dims = {"n": n, "h": h, "w": w}
        x = given(model, dims)
        y = program(x)["y"]
        assert not program.open.reason
        shapes = {key: array.shape for key, array in x.items()}
        assert program.open.bound(shapes, 1) is not None, dims
        right = first(reference, x)
        assert y.shape == right.shape
        assert (abs(y - right) <= terms * SINGLE * max(terms, 1)).all(), dims
        assert y.any() == right.any() and (terms or abs(right).max() > 0)


def test_a_crop_that_sizes_decide(tmp_path: Path) -> None:
    """Of one axis to another's extent: it is cut in some images and grows in others."""
    text = """(float[h, w] x) => (float[w, w] y)
        { s = Shape<start = 1>(x) y = CenterCropPad<axes = [0]>(x, s) }"""
    program = nanoloom.compile(parsed(text), threads=1, cache=Cache(tmp_path))
    reference = ReferenceEvaluator(parsed(text))
    for h, w in ((7, 4), (4, 7), (5, 5), (1, 9), (9, 1), (40, 33)):
        x = np.random.default_rng(h).uniform(1, 2, (h, w)).astype(np.float32)
        np.testing.assert_array_equal(
            program({"x": x})["y"], first(reference, {"x": x})
        )
        assert not program.open.reason


def test_unpooled_to_less(tmp_path: Path) -> None:
    """What a given shape has no room for is left out."""
    text = """(float[n, 1, h, w] x, int64[n, 1, h, w] places) => (float[n, 1, a, b] y)
        <int64[4] times = {1, 1, 2, 2}, int64[4] less = {0, 0, 1, -2}>
        { q = Shape(x) t = Mul(q, times) s = Sub(t, less)
        y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, places, s) }"""
    model = parsed(text)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for n, h, w in ((1, 3, 2), (2, 1, 1), (1, 5, 7)):
        feeds = given(model, {"n": n, "h": h, "w": w})
        whole = np.zeros(n * 4 * h * w, np.float32)
        whole[feeds["places"].ravel()] = feeds["x"].ravel()
        right = np.pad(whole.reshape(n, 1, 2 * h, 2 * w), [(0, 0)] * 3 + [(0, 2)])
        np.testing.assert_array_equal(program(feeds)["y"], right[:, :, :-1])
        assert not program.open.reason and right.any()


@pytest.mark.drawn
@pytest.mark.parametrize("mode", ["TF", "TFIDF"])
@pytest.mark.parametrize("rank", [1, 2])
def test_grams(tmp_path: Path, mode: str, rank: int) -> None:
    """Texts of any length, also shorter than what is looked for."""
    shape = "n, l" if rank == 2 else "l"
    text = f"""(int64[{shape}] x) => (float[{shape[:-1]}k] y) {{{{ y = TfIdfVectorizer<
        mode = "{{}}", min_gram_length = 1, max_gram_length = 3, max_skip_count = 2,
        ngram_counts = [0, 2, 6], ngram_indexes = [4, 0, 1, 3, 2],
        pool_int64s = [1, 2, 2, 1, 0, 0, 1, 2, 1],
        weights = [0.5, 1.0, 2.0, 0.25, 3.0]>(x) }}}}"""
    model = parsed(text.format(mode))
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    reference = ReferenceEvaluator(parsed(text.format("TF")))
    random = np.random.default_rng(rank)
    for length in (1, 2, 3, 5, 8, 31, 100):
        x = random.integers(0, 3, (length,) if rank == 1 else (length % 5 + 1, length))
        right = first(reference, {"x": x})
        if mode == "TFIDF":
            right = right * np.array([1, 2, 3, 0.25, 0.5])  # by places
        y = program({"x": x})["y"]
        np.testing.assert_array_equal(y, right)
        assert not program.open.reason
        assert length < 8 or right.any()


def test_drawn_classes(tmp_path: Path) -> None:
    """The numbers of a program for one size, whatever the batch and the classes."""
    text = """(float[n, c] x) => (int64[n, k] y)
        { y = Multinomial<sample_size = 40, seed = 3.0, dtype = 7>(x) }"""
    cache = Cache(tmp_path)
    program = nanoloom.compile(parsed(text), threads=1, cache=cache)
    for n, c in ((1, 1), (3, 2), (2, 11), (5, 37)):
        dims = {"n": n, "c": c}
        x = np.random.default_rng(c).uniform(-1, 1, (n, c)).astype(np.float32)
        one = nanoloom.compile(parsed(text), dims=dims, threads=1, cache=cache)
        y = program({"x": x})["y"]
        np.testing.assert_array_equal(y, one({"x": x})["y"])
        assert not program.open.reason
        assert y.min() >= 0 and len(np.unique(y)) == min(c, len(np.unique(y)))
        assert y.max() >= c // 2


def test_more_batches_than_small_numbers(tmp_path: Path) -> None:
    """Each of four batches is told apart; of five the reason says what to do."""
    names = "abcd"
    inputs = ", ".join(f"float[{n}, 3, 2] x{n}" for n in names)
    outputs = ", ".join(f"float[{n}, 3, 2] y{n}" for n in names)
    nodes = " ".join(f"y{n} = Neg(x{n})" for n in names)
    model = parsed(f"({inputs}) => ({outputs}) {{ {nodes} }}")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for k in (1, 4):
        x = {f"x{n}": np.full((k + i, 3, 2), i, "f") for i, n in enumerate(names, 1)}
        y = program(x)
        assert all((y[f"y{n}"] == -x[f"x{n}"]).all() for n in names)
        assert not program.open.reason


@pytest.mark.drawn
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(
    "kind", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]
)
def test_losses(tmp_path: Path, kind: str, reduction: str) -> None:
    """Of any batch, classes and places; some targets are ignored."""
    text = f"""(float[n, c, l] x, int64[n, l] t) => (float[k] y) {{ y = {kind}
        <reduction = "{reduction}", ignore_index = 0>(x, t) }}"""
    model = parsed(text)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    reference = ReferenceEvaluator(model)
    random = np.random.default_rng(len(kind))
    for n, c, m in ((1, 2, 1), (2, 3, 5), (3, 7, 4), (1, 40, 33)):
        x = random.uniform(-1, 1, (n, c, m)).astype(np.float32)
        feeds = {"x": x, "t": random.integers(0, c, (n, m))}
        feeds["t"][0, 0] = 1
        y = program(feeds)["y"]
        assert not program.open.reason
        right = first(reference, feeds)
        # Sums of classes, and of all targets, each at most log(c) + 2.
        terms = (c + (n * m if reduction != "none" else 0)) * (np.log(c) + 2)
        assert y.shape == right.shape
        assert (abs(y - right) <= 4 * terms * SINGLE * max(n * m, 1)).all()
        assert abs(right).max() > 0.01


@pytest.mark.parametrize("way", ["exclusive = 1", "reverse = 1"])
def test_products_and_bits(tmp_path: Path, way: str) -> None:
    text = f"""(float[n, l] x) => (int32[n, l] y) <int64 one = {{1}}>
        {{ p = CumProd<{way}>(x, one) y = BitCast<to = 6>(p) }}"""
    model = onnx.parser.parse_model(
        f'<ir_version: 13, opset_import: ["" : 26]> g {text}'
    )
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for n, m in ((1, 1), (2, 5), (7, 3), (3, 40)):
        x = np.random.default_rng(m).choice(
            np.array([0.5, 1, 2, -1], np.float32), (n, m)
        )
        y = program({"x": x})["y"]
        assert not program.open.reason
        if "exclusive" in way:
            right = np.cumprod(np.pad(x, [(0, 0), (1, 0)], constant_values=1), 1)[
                :, :-1
            ]
        else:
            right = np.cumprod(x[:, ::-1], 1)[:, ::-1]
        np.testing.assert_array_equal(y.view(np.float32), right)


@pytest.mark.parametrize("opset", [12, 20])
def test_squeeze_without_axes(opset: int, tmp_path: Path) -> None:
    """Sizes of 1 go: those calls are compiled by themselves, all others are one."""
    text = "(float[a, 3, b, 1] x) => (float[c, 3, d] y) { y = Squeeze(x) }"
    head = f'<ir_version: 8, opset_import: ["" : {opset}]> m '
    program = nanoloom.compile(onnx.parser.parse_model(head + text), cache=tmp_path)
    assert program.open.reason == ""
    for a, b in ((8, 5), (2, 4), (3, 1), (1, 2), (1, 1)):
        x = np.random.default_rng(a).standard_normal((a, 3, b, 1), np.float32)
        (made,) = program({"x": x}).values()
        np.testing.assert_array_equal(made, x.squeeze())
