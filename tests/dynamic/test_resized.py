"""Resize, Upsample and GridSample: one program, whatever the height and width."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache

HEAD = '<ir_version: 10, opset_import: ["" : {}]>'
TRANSFORMS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_crop_and_resize",
)  # fmt: skip
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
SCALES = (0.4, 0.5, 0.6, 0.7, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0)
IMAGES = ((5, 7), (1, 6), (7, 1), (1, 1), (9, 12), (16, 11))
# Extents: scales, known numbers, numbers computed from the image's.
EXTENTS = {
    "scales": ("", "s", "float[4] s = {{1, 1, {}, {}}}"),
    "sizes": ("", ", s", "int64[4] s = {{1, 2, 13, 6}}"),
    "shape": ("q = Shape(x) m = Mul(q, t) s = Add(m, o)", ", s",
              "int64[4] t = {{1, 1, 2, 1}}, int64[4] o = {{0, 0, 1, 3}}"),
}  # fmt: skip
EPS, SINGLE = 2.0**-52, 2.0**-24


def model(text: str, opset: int = 20) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{HEAD.format(opset)} g {text}")


def resizing(attributes: dict[str, object], extents: str, random: int) -> str:
    draw = np.random.default_rng(random)
    made, place, constants = EXTENTS[extents]
    given = constants.format(*draw.choice(SCALES, 2))
    words = [
        f'{name} = "{x}"' if isinstance(x, str) else f"{name} = {x}"
        for name, x in attributes.items()
    ]
    return f"""(double[1, 2, h, w] x) => (double[1, 2, a, b] y)
        <float[8] roi = {{0, 0, 0.1, -0.2, 1, 1, 0.9, 1.1}}, {given}>
        {{ {made} y = Resize<{", ".join(words)}>(x, roi, {place}) }}"""


def drawn_attributes(mode: str, draw: np.random.Generator) -> dict[str, object]:
    if mode == "nearest":
        return {"nearest_mode": str(draw.choice(ROUNDINGS))}
    return {
        "antialias": int(draw.integers(2)),
        "exclude_outside": int(draw.integers(2)),
        "cubic_coeff_a": float(draw.choice([-0.75, -0.5])),
    }


@pytest.mark.drawn
@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_any_size(tmp_path: Path, mode: str, transform: str, extents: str) -> None:
    """Against ONNX's reference, in float64: its weights of cubic are of f32."""
    number = TRANSFORMS.index(transform)
    draw = np.random.default_rng([number, len(mode), len(extents)])
    attributes: dict[str, object] = {
        "mode": mode,
        "coordinate_transformation_mode": transform,
        "extrapolation_value": 7.5,
        **drawn_attributes(mode, draw),
    }
    made = model(resizing(attributes, extents, number))
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    for image in IMAGES:
        x = draw.standard_normal((1, 2, *image))
        y = program({"x": x})["y"]
        assert not program.open.reason
        assert program.open.bound({"x": x.shape}, 1) is not None, image
        with warnings.catch_warnings(action="ignore"):
            right = np.asarray(ReferenceEvaluator(made).run(None, {"x": x}))[0]
        assert y.shape == right.shape
        # Weights, of which up to 16 are added, twice; none with the nearest.
        bound = {"nearest": 0.0, "linear": 64 * EPS, "cubic": 112 * SINGLE}[mode]
        assert (abs(y - right) <= bound * abs(right).max(initial=1)).all(), image
        assert y.size < 9 or not (abs(0 * y - right) <= bound).all()


@pytest.mark.drawn
@pytest.mark.parametrize(
    "words",
    ['mode = "linear"', 'mode = "cubic", exclude_outside = 1',
     'mode = "linear", antialias = 1', 'mode = "nearest", nearest_mode = "ceil"'],
)  # fmt: skip
@pytest.mark.parametrize("scale", [0.7, 1.5])
def test_the_same_bits(tmp_path: Path, words: str, scale: float) -> None:
    """As the program of one size has them, whose tables are constants."""
    text = f"""(float[1, 2, h, 9] x) => (float[1, 2, a, 9] y)
        <float[4] s = {{1, 1, {scale}, 1}}> {{ y = Resize<{words}>(x, , s) }}"""
    cache = Cache(tmp_path)
    program = nanoloom.compile(model(text), threads=1, cache=cache)
    for height in (3, 24):
        one = nanoloom.compile(model(text), dims={"h": height}, threads=1, cache=cache)
        x = np.random.default_rng(height).standard_normal((1, 2, height, 9))
        x = x.astype(np.float32)
        y = program({"x": x})["y"]
        np.testing.assert_array_equal(y, one({"x": x})["y"])
        assert y.any() and not program.open.reason


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(tmp_path: Path, mode: str) -> None:
    text = f"""(float[n, 2, h, w] x) => (float[n, 2, a, b] y)
        <float[4] s = {{1, 1, 1.5, 2}}> {{ y = Upsample<mode = "{mode}">(x, s) }}"""
    made = model(text, opset=9)
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    for batch, height, width in ((1, 5, 3), (2, 1, 1), (3, 8, 11)):
        x = np.random.default_rng(width).standard_normal((batch, 2, height, width))
        x = x.astype(np.float32)
        y = program({"x": x})["y"]
        assert not program.open.reason
        places = [np.arange(int(n * s)) / s for n, s in ((height, 1.5), (width, 2))]
        right = x.astype(np.float64)
        for axis, at in enumerate(places, 2):
            low = np.floor(at).astype(int)
            high = np.minimum(low + 1, x.shape[axis] - 1)
            share = (at - low).reshape(-1, *[1] * (3 - axis))
            share = share * (mode == "linear")
            near, far = (np.take(right, n, axis) for n in (low, high))
            right = near * (1 - share) + far * share
        assert (abs(y - right) <= 8 * SINGLE * abs(x).max()).all()
        assert abs(right).max() > 0.1


@pytest.mark.drawn
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_grid(tmp_path: Path, mode: str, padding: str, align: int) -> None:
    """The bits of a program for one size, whatever the image's and the grid's."""
    text = f"""(float[1, 2, h, w] x, float[1, n, m, 2] grid) => (float[1, 2, n, m] y)
        {{ y = GridSample<mode = "{mode}", padding_mode = "{padding}",
        align_corners = {align}>(x, grid) }}"""
    cache, draw = Cache(tmp_path), np.random.default_rng(align)
    program = nanoloom.compile(model(text), threads=1, cache=cache)
    for h, w, n, m in ((5, 7, 3, 4), (1, 1, 2, 1), (1, 6, 7, 3)):
        x = draw.standard_normal((1, 2, h, w)).astype(np.float32)
        feeds = {"x": x, "grid": draw.uniform(-1.6, 1.6, (1, n, m, 2)).astype("f")}
        y = program(feeds)["y"]
        assert not program.open.reason
        dims = {"h": h, "w": w, "n": n, "m": m}
        one = nanoloom.compile(model(text), dims=dims, threads=1, cache=cache)
        np.testing.assert_array_equal(y, one(feeds)["y"])
        assert y.any()


@pytest.mark.parametrize(
    ("words", "constants", "inputs", "reason"),
    [
        ('axes = [2, 3], keep_aspect_ratio_policy = "not_larger"',
         "int64[2] s = {9, 9}", "x, , , s",
         "not_larger: one axis decides about the extents of all, and h and w are open"),
        ('axes = [2], mode = "linear", antialias = 1', "int64[1] k = {-50}", "x, , , s",
         "axis 2: antialias takes as many taps as a quotient of sizes says"),
    ],
)  # fmt: skip
def test_what_stays_a_variant(
    tmp_path: Path, words: str, constants: str, inputs: str, reason: str
) -> None:
    """It says why, and what to do, and is computed."""
    made = "q = Shape<start = 3>(x) s = Add(q, k)" if "k =" in constants else ""
    text = f"""(float[1, 2, h, w] x) => (float[1, 2, a, b] y)
        <{constants}> {{ {made} y = Resize<{words}>({inputs}) }}"""
    program = nanoloom.compile(model(text), threads=1, cache=Cache(tmp_path))
    x = np.ones((1, 2, 6, 60), np.float32)
    assert (program({"x": x})["y"] == 1).all()
    assert reason in program.open.reason and "(--dim h=N" in program.open.reason


def test_a_library(tmp_path: Path) -> None:
    """A floor of a multiple of a size is evaluated in C."""
    text = """(float[1, 2, h, w] x) => (float[1, 2, a, b] y)
        <float[4] s = {1, 1, 1.5, 0.7}> { r = Resize<mode = "linear">(x, , s)
        y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r) }"""
    program = nanoloom.compile(model(text), threads=1, cache=Cache(tmp_path))
    loaded = nanoloom.load(program.save(tmp_path / "resize.so"), threads=1)
    for height, width in ((5, 9), (40, 33)):
        x = np.random.default_rng(1).standard_normal((1, 2, height, width))
        x = x.astype(np.float32)
        y = loaded({"x": x})["y"]
        # Floor of the double product with the f32 next to 0.7, which is less.
        wide = int(width * float(np.float32(0.7)))
        assert y.shape == (1, 2, height * 3 // 2 // 2, wide // 2)
        np.testing.assert_array_equal(y, program({"x": x})["y"])
