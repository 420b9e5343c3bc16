"""Windows that go along a text word by word: one program for any length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.inspect.dynamic_sizes import dynamic_sizes
from tests.dynamic.models import wanted

# A layer of an encoder that mixes neighbouring words, as DeBERTa has one.
LAYER = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, length, 12] x, float[batch, length, 1] mask)
    => (float[batch, length, 12] y)
{
    turned = Transpose<perm = [0, 2, 1]>(x)
    near = Conv<kernel_shape = [3], pads = [1, 1], GROUP>(turned, w, b)
    rows = Transpose<perm = [0, 2, 1]>(near)
    seen = Mul(rows, mask)
    made = Tanh(seen)
    sum = Add(made, x)
    y = LayerNormalization<axis = -1>(sum, scale, shift)
}
"""
# Sums of 37 products of numbers below 12, normalized; tanh and what it is added to.
BOUND = 60 * np.finfo(np.float32).eps * 12


def layer(group: int) -> onnx.ModelProto:
    model = parser.parse_model(LAYER.replace("GROUP", f"group = {group}"))
    random = np.random.default_rng(group)
    shapes = {"w": (12, 12 // group, 3), "b": (12,), "scale": (12,), "shift": (12,)}
    for name, shape in shapes.items():
        array = random.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


@pytest.mark.parametrize("group", [1, 3, 12])
def test_any_length(tmp_path: Path, group: int) -> None:
    model = layer(group)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    random = np.random.default_rng(3)
    for batch, length in ((1, 7), (3, 40), (2, 1), (1, 131), (5, 33)):
        x = random.standard_normal((batch, length, 12)).astype(np.float32)
        mask = (random.random((batch, length, 1)) < 0.8).astype(np.float32)
        given = {"x": x, "mask": mask}
        got, right = program(given)["y"], wanted(model, given)["y"]
        assert (abs(got - right) <= BOUND).all()
        assert not (abs(np.roll(got, 1, 2) - right) <= BOUND).all()
        assert program.open.bound({n: a.shape for n, a in given.items()}, 1) is not None
    assert not program.open.reason


def test_every_other_word(tmp_path: Path) -> None:
    """Their number is rounded: a floor of the length, whichever axis that is."""
    text = LAYER.replace("pads = [1, 1]", "pads = [1, 1], strides = [2]")
    text = text[: text.index("seen =")].replace("rows =", "y =") + "}"
    text = text.replace("length, 12] y", "half, 12] y")
    text = text.replace(", float[batch, length, 1] mask", "")
    model = parser.parse_model(text.replace("GROUP", "group = 1"))
    model.graph.initializer.extend(layer(1).graph.initializer[:2])
    cache = Cache(tmp_path)
    assert dynamic_sizes(model, {}, cache).why == ""
    program = nanoloom.compile(model, threads=1, cache=cache)
    for batch, length in ((1, 7), (3, 40), (2, 1), (1, 131)):
        x = np.random.default_rng(length).standard_normal((batch, length, 12))
        given = {"x": x.astype(np.float32)}
        got, right = program(given)["y"], wanted(model, given)["y"]
        assert got.shape == right.shape == (batch, (length + 1) // 2, 12)
        # Sums of 37 products of numbers below 4.
        bound = 40 * np.finfo(np.float32).eps * 37 * 16
        assert (abs(got - right) <= bound).all()
        assert not (abs(np.roll(got, 1, 2) - right) <= bound).all()
        assert program.open.bound({"x": x.shape}, 1) is not None
    assert not program.open.reason


# A text of 50 words at most beside pictures, each with a batch of its own.
PAIRED = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64[a, length] words, float[c, length] mask, float[b, 3, 8, 8] x)
    => (float[a, b] y, float[c] count)
{
    shape = Shape(words)
    zero = Constant<value = int64[1] {0}>()
    one = Constant<value = int64[1] {1}>()
    two = Constant<value = int64[1] {2}>()
    length1 = Slice(shape, one, two)
    places = Slice(positions, zero, length1, zero)
    named = Gather(table, words)
    given = Add(named, places)
    text = ReduceSum<keepdims = 0>(given, one)
    conv = Conv<strides = [4, 4]>(x, w)
    pooled = GlobalAveragePool(conv)
    image = Flatten(pooled)
    turned = Transpose<perm = [1, 0]>(image)
    y = MatMul(text, turned)
    count = ReduceSum<keepdims = 0>(mask, one)
}
"""


def test_short_texts_beside_pictures(tmp_path: Path) -> None:
    model, random = parser.parse_model(PAIRED), np.random.default_rng(7)
    shapes = {"w": (4, 3, 4, 4), "positions": (50, 4), "table": (9, 4)}
    for name, shape in shapes.items():
        array = random.integers(-2, 3, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for a, b, c, length in ((2, 3, 2, 7), (1, 1, 4, 50), (5, 2, 1, 1)):
        given = {
            "words": random.integers(0, 9, (a, length)),
            "mask": random.integers(0, 2, (c, length)).astype(np.float32),
            "x": random.integers(-2, 3, (b, 3, 8, 8)).astype(np.float32),
        }
        got, right = program(given), wanted(model, given)
        assert right["y"].any()
        assert all(np.array_equal(got[n], right[n]) for n in right)
    assert not program.open.reason


@pytest.mark.parametrize("pads", [(1, -1), (-2, 3), (-1, -3), (-3, 0)])
def test_words_moved_along(pads: tuple[int, int], tmp_path: Path) -> None:
    """A pad below 0 cuts: each word beside the one in front of it."""
    low, high = pads
    text = f"""
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[batch, length, 5] x) => (float[batch, other, 5] y)
    {{
        pads = Constant<value = int64[6] {{0, {low}, 0, 0, {high}, 0}}>()
        seven = Constant<value = float {{7.0}}>()
        twice = Add(x, x)
        y = Pad(twice, pads, seven)
    }}
    """
    model = parser.parse_model(text)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for batch, length in ((2, 7), (1, 4), (5, 130)):
        x = np.random.default_rng(length).random((batch, length, 5)).astype(np.float32)
        kept = 2 * x[:, max(-low, 0) : length - max(-high, 0)]
        wide = ((0, 0), (max(low, 0), max(high, 0)), (0, 0))
        right = np.pad(kept, wide, constant_values=7)
        assert np.array_equal(program({"x": x})["y"], right)
    assert not program.open.reason
