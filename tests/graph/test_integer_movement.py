"""Integers that are only moved between two quantizations are moved as integers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.integer_movement import RANGE
from tests.graph.models import operators, optimized, proto, shapes
from tests.linalg.harness import evaluate

TURNED = "Transpose<perm = [1, 0]>(d)"
WEIGHTS = """<float s = {0.3}, float t = {0.6}, float zero_scale = {0},
    float tiny = {1e-39}, uint8 z = {7}, uint8 w = {8}, int8 n = {7},
    int64[1] from = {1}, int64[1] to = {5}, int64[1] axis = {0},
    int64[2] shape = {-1, 3}, int64[4] pads = {1, 0, 2, 3}, float far = {-1e6},
    int64[2] parts = {4, 2}>"""


def text(body: str, x: str = "uint8[6, 4]", y: str = "uint8[N, M]") -> str:
    return f"g ({x} x) => ({y} y) {WEIGHTS} {{ {body} }}"


MOVES = {
    "Transpose": f"d = DequantizeLinear(x, s, z) m = {TURNED}",
    "Reshape": "d = DequantizeLinear(x, s, z) m = Reshape(d, shape)",
    "Slice": "d = DequantizeLinear(x, s, z) m = Slice(d, from, to, axis)",
    "Gather": "d = DequantizeLinear(x, s, z) m = Gather(d, from)",
    "Pad": "d = DequantizeLinear(x, s, z) m = Pad(d, pads)",
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_take_the_integers(name: str) -> None:
    model = text(f"{MOVES[name]} y = QuantizeLinear(m, s, z)")
    graph = optimized(model)
    assert operators(graph) == [name]
    x = np.random.default_rng(1).integers(0, 256, (6, 4), dtype=np.uint8)
    got = evaluate(proto(model), {"x": x})[0]
    (right,) = ReferenceEvaluator(proto(model)).run(None, {"x": x})
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, right)
    assert not (got == np.asarray(right) + 1).any()


CROPPED = 'coordinate_transformation_mode = "tf_crop_and_resize"'
RESIZES = {
    "nearest": ("Resize(d, none, larger)", ["Resize"]),
    "fewer": ("Resize(d, none, smaller)", ["Resize"]),
    "linear": (
        'Resize<mode = "linear">(d, none, larger)',
        ["DequantizeLinear", "Resize", "QuantizeLinear"],
    ),
    "with numbers around": (
        f"Resize<{CROPPED}, extrapolation_value = 0.9>(d, region, larger)",
        ["DequantizeLinear", "Resize", "QuantizeLinear"],
    ),
}


@pytest.mark.parametrize("name", RESIZES)
def test_nearest_neighbours_are_taken_as_integers(name: str) -> None:
    resize, wanted = RESIZES[name]
    more = """float[0] none = {}, float[2] larger = {1.5, 2.0},
        float[2] smaller = {0.5, 1.0}, float[4] region = {0.0, 0.5, 1.0, 2.0}>"""
    constants = WEIGHTS[:-1] + f", {more}"
    model = f"""g (uint8[6, 4] x) => (uint8[N, M] y) {constants} {{
        d = DequantizeLinear(x, s, z) m = {resize} y = QuantizeLinear(m, s, z) }}"""
    assert operators(optimized(model)) == wanted
    x = np.random.default_rng(4).integers(0, 256, (6, 4), dtype=np.uint8)
    got = evaluate(proto(model), {"x": x})[0]
    (right,) = ReferenceEvaluator(proto(model)).run(None, {"x": x})
    most = 0 if wanted == ["Resize"] else 1  # where what is between falls on a tie
    assert abs(got.astype(int) - right).max() <= most
    assert len(np.unique(got)) > 3


PADS = {
    "zero": ("Pad(d, pads)", ["Pad"]),
    "a number": ("Pad(d, pads, t)", ["Pad"]),
    "one that saturates": ("Pad(d, pads, far)", ["Pad"]),
    "its own": ('Pad<mode = "edge">(d, pads)', ["Pad"]),
    "not known": (
        "Pad(d, pads, v)", ["DequantizeLinear", "Pad", "QuantizeLinear"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PADS)
def test_what_is_around_is_quantized(name: str) -> None:
    pad, wanted = PADS[name]
    model = f"""g (uint8[6, 4] x, float v) => (uint8[9, 7] y) {WEIGHTS} {{
        d = DequantizeLinear(x, s, z) m = {pad} y = QuantizeLinear(m, s, z) }}"""
    assert operators(optimized(model)) == wanted
    x = np.random.default_rng(3).integers(0, 256, (6, 4), dtype=np.uint8)
    feeds = {"x": x, "v": np.float32(3.3)}
    got = evaluate(proto(model), feeds)[0]
    (right,) = ReferenceEvaluator(proto(model)).run(None, feeds)
    np.testing.assert_array_equal(got, right)
    assert len(np.unique(got)) > 3


def test_parts_are_slices() -> None:
    """The second one has another scale."""
    model = f"""g (uint8[6, 4] x) => (uint8[4, 4] y, uint8[2, 4] e) {WEIGHTS} {{
        d = DequantizeLinear(x, s, z) a, b = Split(d, parts)
        y = QuantizeLinear(a, s, z) e = QuantizeLinear(b, t, w) }}"""
    made = operators(optimized(model))
    assert made.count("Slice") == 2 and "Split" not in made
    x = np.random.default_rng(3).integers(0, 256, (6, 4), dtype=np.uint8)
    got = evaluate(proto(model), {"x": x})
    right = ReferenceEvaluator(proto(model)).run(None, {"x": x})
    for one, other in zip(got, right, strict=True):
        np.testing.assert_array_equal(one, other)
        assert len(np.unique(one)) > 3


@pytest.mark.parametrize("source", ["d", "f"])
def test_a_split_that_gives_floats_stays(source: str) -> None:
    model = f"""g (uint8[6, 4] x, float[6, 4] f) => (float[4, 4] y, float[2, 4] e)
        {WEIGHTS} {{ d = DequantizeLinear(x, s, z) a, b = Split({source}, parts)
        y = Exp(a) e = Exp(b) }}"""
    assert "Split" in operators(optimized(model))


def test_several_moves_in_their_order() -> None:
    graph = optimized(
        text(f"""d = DequantizeLinear(x, s, z) a = {TURNED}
        b = Reshape(a, shape) c = Slice(b, from, to, axis)
        y = QuantizeLinear(c, s, z)""")
    )
    assert operators(graph) == ["Transpose", "Reshape", "Slice"]
    assert shapes(graph)["y"] == (4, 3)


def test_without_a_move_nothing_is_left_between() -> None:
    graph = optimized(
        text("""d = DequantizeLinear(x, s, z) q = QuantizeLinear(d, s, z)
        y = Transpose(q)""")
    )
    assert operators(graph) == ["Transpose"]


def test_floats_that_others_read_stay() -> None:
    graph = optimized(
        f"""g (uint8[6, 4] x) => (uint8[4, 6] y, float[4, 6] e) {WEIGHTS} {{
        d = DequantizeLinear(x, s, z) m = {TURNED} y = QuantizeLinear(m, s, z)
        e = Exp(m) }}"""
    )
    assert sorted(operators(graph)) == [
        "DequantizeLinear",
        "Exp",
        "Transpose",
        "Transpose",
    ]


CONCAT = """g (uint8[3, 4] x, uint8[3, 5] b, float[3, 2] f) => (uint8[3, N] y)
    <float s = {0.3}, float t = {0.17}, uint8 z = {7}, uint8 w = {9}> {
    d = DequantizeLinear(x, s, z) e = DequantizeLinear(b, t, w) """
CONCATS = {
    "alike": ("Concat<axis = 1>(d, d)", "(m, s, z)", ["Concat"]),
    "two scales": ("Concat<axis = 1>(d, e)", "(m, s, z)", ["Table", "Concat"]),
    "a third scale": ("Concat<axis = 1>(d, d)", "(m, t, w)", ["Table", "Concat"]),
    "floats": ("Concat<axis = 1>(f, e)", "(m, t, w)", ["QuantizeLinear", "Concat"]),
}


@pytest.mark.parametrize("name", CONCATS)
def test_parts_are_quantized_in_front_of_a_concatenation(name: str) -> None:
    concat, how, wanted = CONCATS[name]
    model = f"{CONCAT} m = {concat} y = QuantizeLinear{how} }}"
    made = operators(optimized(model))
    assert sorted(set(made)) == sorted(wanted)
    rng = np.random.default_rng(2)
    feeds = {
        "x": rng.integers(0, 256, (3, 4), dtype=np.uint8),
        "b": rng.integers(0, 256, (3, 5), dtype=np.uint8),
        "f": rng.normal(0, 9, (3, 2)).astype(np.float32),
    }
    got = evaluate(proto(model), feeds)[0]
    (right,) = ReferenceEvaluator(proto(model)).run(None, feeds)
    np.testing.assert_array_equal(got, right)
    assert len(np.unique(got)) > 3


def test_floats_of_a_concatenation_that_others_read_stay() -> None:
    text = f"""{CONCAT} m = Concat<axis = 1>(d, e) a = QuantizeLinear(m, s, z)
        n = Exp(m) o = QuantizeLinear(n, s, z) y = Max(a, o) }}"""
    made = operators(optimized(text))
    assert made.count("Concat") == 1 and made.count("DequantizeLinear") == 2


REFUSED = {
    "another scale": ("DequantizeLinear(x, s, z)", "QuantizeLinear(m, t, z)"),
    "another zero point": ("DequantizeLinear(x, s, z)", "QuantizeLinear(m, s, w)"),
    "another type": ("DequantizeLinear(x, s, z)", "QuantizeLinear(m, s, n)"),
    "no number comes back": (
        "DequantizeLinear(x, tiny, z)",
        "QuantizeLinear(m, tiny, z)",
    ),
    "a zero": ("DequantizeLinear(x, zero_scale)", "QuantizeLinear(m, zero_scale)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stays(name: str) -> None:
    first, last = REFUSED[name]
    kind = "int8" if name == "another type" else "uint8"
    model = text(f"d = {first} m = {TURNED} y = {last}", y=f"{kind}[4, 6]")
    assert "QuantizeLinear" in operators(optimized(model))


def test_new_numbers_are_no_moves() -> None:
    model = text("""d = DequantizeLinear(x, s, z) m = Relu(d)
        y = QuantizeLinear(m, s, z)""")
    assert operators(optimized(model)) == ["Table"]


@pytest.mark.parametrize("power", range(-90, 90, 6))
def test_every_integer_comes_back(power: int) -> None:
    """(q - z) s / s in float32, for all q - z of 8 bits."""
    rng = np.random.default_rng(power + 90)
    scales = np.float32(2.0**power) * rng.uniform(1, 2, 200).astype(np.float32)
    assert (abs(scales) > RANGE[0]).all()
    whole = np.arange(-255, 256, dtype=np.float32)[:, None]
    assert (np.rint(whole * scales / scales) == whole).all()
    tiny = np.float32(1e-44)
    assert (np.rint(whole * (tiny * np.float32(0.5)) / tiny) != whole).any()
