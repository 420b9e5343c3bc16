"""Resize against ONNX's reference in float64, for every mode and transformation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from nanoloom.compiler import Report, partition_model
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.linalg.movement.sampling import Axis, coordinates, cubic, linear, taps
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.drawn_cases import few_examples
from tests.linalg.bounds import sample
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import model_of, run_node

TRANSFORMS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_crop_and_resize",
)  # fmt: skip
few = few_examples(12)
Scales = list[float]
scales = st.lists(
    st.sampled_from([0.4, 0.6, 1.0, 1.7, 2.0, 3.0]), min_size=2, max_size=2
)


def inputs_of(
    x: np.ndarray, factors: Scales, use_sizes: bool
) -> tuple[list[np.ndarray | None], list[int]]:
    """X, roi, and scales or sizes of the last two axes; all but X are constants."""
    roi = np.array([0.1, -0.2, 0.9, 1.1], np.float32)
    if use_sizes:
        pairs = zip(x.shape[-2:], factors, strict=True)
        sizes = np.array([max(int(s * f), 1) for s, f in pairs], np.int64)
        return [x, roi, None, sizes], [1, 3]
    return [x, roi, np.array(factors, np.float32)], [1, 2]


def check(
    x: np.ndarray, factors: Scales, use_sizes: bool, attributes: dict[str, Any]
) -> None:
    """Within what rounding the weights and the sums to f32 can do; zeros fail."""
    inputs, constants = inputs_of(x, factors, use_sizes)
    attributes = {"axes": [2, 3], "extrapolation_value": 0.5, **attributes}
    got = run_node("Resize", inputs, constants=constants, **attributes)[0]
    wide = [x.astype(np.float64), *inputs[1:]]
    model, feeds = model_of("Resize", wide, attributes)
    right = ReferenceEvaluator(model).run(None, feeds)[0]
    assert (got.dtype, got.shape) == (x.dtype, right.shape)
    if attributes["mode"] == "nearest":
        same(got, right.astype(x.dtype))
        return
    most = 12  # taps of one axis; their weights' sizes add up to less than 2
    bound = 2 * (most + 2) * 2.0**-24 * 4 * abs(x).max()
    assert (abs(got - right) <= bound).all()
    assert not (abs(0 * got - right) <= bound).all()


@few
@given(
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(TRANSFORMS),
    scales,
    st.booleans(),
    st.booleans(),
)
def test_modes(
    mode: str, transform: str, factors: Scales, use_sizes: bool, exclude: bool
) -> None:
    x = sample(1, (1, 2, 5, 7), "float32")
    check(
        x,
        factors,
        use_sizes,
        {
            "mode": mode,
            "coordinate_transformation_mode": transform,
            "exclude_outside": int(exclude and mode == "cubic"),
        },
    )


@few
@given(st.sampled_from(["linear", "cubic"]), scales, st.booleans())
def test_antialias(mode: str, factors: Scales, exclude: bool) -> None:
    x = sample(2, (2, 1, 9, 7), "float32")
    check(
        x,
        factors,
        False,
        {
            "mode": mode,
            "antialias": 1,
            "exclude_outside": int(exclude),
        },
    )


@pytest.mark.drawn
@pytest.mark.parametrize(
    "rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
)
@pytest.mark.parametrize("name", ["int8", "bool", "float64", "bfloat16", "uint16"])
def test_nearest(rounding: str, name: str) -> None:
    x = sample(3, (2, 1, 5, 3), name)
    inputs, constants = inputs_of(x, [1.5, 2.0], False)
    got = run_node(
        "Resize",
        inputs,
        constants=constants,
        axes=[2, 3],
        mode="nearest",
        nearest_mode=rounding,
        coordinate_transformation_mode="asymmetric",
    )[0]
    step = np.arange(7) / 1.5
    rows = {
        "round_prefer_floor": np.ceil(step - 0.5),
        "floor": np.floor(step),
        "round_prefer_ceil": np.floor(step + 0.5),
        "ceil": np.ceil(step),
    }[rounding]
    columns = np.arange(6) / 2
    other = {
        "round_prefer_floor": np.ceil(columns - 0.5),
        "floor": np.floor(columns),
        "round_prefer_ceil": np.floor(columns + 0.5),
        "ceil": np.ceil(columns),
    }[rounding]
    at = [np.minimum(v, s - 1).astype(int) for v, s in ((rows, 5), (other, 3))]
    same(got, x[:, :, at[0]][:, :, :, at[1]])


@pytest.mark.parametrize("name", ["uint8", "int32", "int8", "float16"])
def test_linear_of_other_types_is_rounded_once(name: str) -> None:
    x = sample(4, (1, 1, 5, 3), name, -100, 100)
    inputs, constants = inputs_of(x, [2.0, 1.0], False)
    got = run_node("Resize", inputs, constants=constants, axes=[2, 3], mode="linear")[0]
    at = np.clip((np.arange(10) + 0.5) / 2 - 0.5, 0, 4)
    low = np.minimum(np.floor(at).astype(int), 3)
    part = (at - low)[:, None]
    wide = x.astype(np.float64)
    exact = wide[:, :, low] * (1 - part) + wide[:, :, low + 1] * part
    if x.dtype.kind != "f":
        exact = np.rint(exact)
    same(got, exact.astype(x.dtype))


@pytest.mark.parametrize("seed", range(4))
def test_whole_repeats_are_one_pass(seed: int) -> None:
    """Drawn: each element as often as whole factors say, along all axes in one kernel;
    an axis of another factor beside them is gathered in front of it."""
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(3, 9, 4 + seed % 2))
    whole = [1, 1, *(float(n) for n in random.integers(2, 5, len(shape) - 2))]
    mixed = [1, 1, 1.5, *whole[3:]]
    x = sample(seed, shape, ["float32", "int8", "float16", "bool"][seed])
    words: dict[str, Any] = {"mode": "nearest", "nearest_mode": "floor"}
    words["coordinate_transformation_mode"] = "asymmetric"
    for factors, most in ((whole, 1), (mixed, 2)):
        inputs, wanted = [x, None, np.array(factors, np.float32)], x
        for axis, (size, times) in enumerate(zip(shape, factors, strict=True)):
            at = np.floor(np.arange(int(size * times)) / times).astype(int)
            wanted = wanted.take(at, axis)
        same(run_node("Resize", inputs, constants=[2], **words)[0], wanted)
        model, _ = model_of("Resize", inputs, words, constants=[2])
        target = CompileOptions(by_name("x86-64-v3"))
        assert len(partition_model(load(model), target, Report()).calls) <= most


def test_upsample() -> None:
    x = sample(5, (1, 1, 3, 5), "float32")
    factors = np.array([1, 1, 2, 3], np.float32)
    got = run_node("Upsample", [x, factors], constants=[1], version=9)[0]
    same(got, x.repeat(2, 2).repeat(3, 3))


def test_old_versions() -> None:
    x = sample(8, (1, 1, 3, 4), "float32")
    roi, factors = np.zeros(0, np.float32), np.array([1, 1, 2, 0.5], np.float32)
    middle = x.repeat(2, 2)[..., 1::2]
    got = run_node(
        "Resize",
        [x, roi, factors],
        constants=[1, 2],
        version=11,
        coordinate_transformation_mode="tf_half_pixel_for_nn",
        nearest_mode="floor",
    )[0]
    same(got, middle)
    got = run_node("Resize", [x, factors], constants=[1], version=10)[0]
    same(got, x.repeat(2, 2)[..., ::2])
    got = run_node("Upsample", [x], version=7, scales=[1.0, 1.0, 2.0, 1.0])[0]
    same(got, x.repeat(2, 2))


def test_oldest_nearest_of_onnx() -> None:
    """The test of its 1.5: the next element on axes that shrink."""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    factors = np.array([1, 1, 0.6, 0.6], np.float32)
    got = run_node("Resize", [x, factors], constants=[1], version=10)[0]
    assert got.tolist() == [[[[1, 3]]]]


@few_examples(40)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 20))
def test_oldest_nearest(size: int, times: int, parts: int) -> None:
    """Element ceil(i / scale) where it shrinks, floor(i / scale) elsewhere; in f32."""
    x, scale = np.arange(size, dtype=np.float32), np.float32(times / parts)
    count = int(size * float(scale))
    if not count:
        return
    factors = np.array([scale], np.float32)
    got = run_node("Resize", [x, factors], constants=[1], version=10)[0]
    # The scale and its quotients are f32: 65 / (13 / 3) is a little less than 15.
    places = np.arange(count, dtype=np.float32) / scale
    chosen = (np.ceil(places) if scale < 1 else np.floor(places)).astype(int).tolist()
    assert got.tolist() == [min(c, size - 1) for c in chosen]


@pytest.mark.parametrize(
    ("policy", "shape"), [("not_larger", (3, 6)), ("not_smaller", (4, 7))]
)
def test_aspect_ratio(policy: str, shape: tuple[int, int]) -> None:
    x = sample(6, (1, 1, 4, 7), "float32")
    sizes = np.array([3, 7], np.int64)
    inputs = [x, None, None, sizes]
    attributes = {"axes": [2, 3], "mode": "linear", "keep_aspect_ratio_policy": policy}
    if policy == "not_larger":
        sizes[:] = 3, 6
    got = run_node("Resize", inputs, constants=[3], **attributes)[0]
    model, feeds = model_of("Resize", [x.astype(np.float64), *inputs[1:]], attributes)
    right = ReferenceEvaluator(model).run(None, feeds)[0]
    assert got.shape == right.shape
    assert (abs(got - right) <= 32 * 2.0**-24 * abs(x).max()).all()


@pytest.mark.parametrize("scale", [0.3, 0.7, 1.5, 2.0])
@pytest.mark.parametrize("weight", [linear, cubic(-0.5)])
def test_weights_add_up_to_one(scale: float, weight: Any) -> None:
    axis = Axis(9, int(9 * scale), scale)
    at = coordinates(axis, "half_pixel")
    assert at is not None
    for flags in ((False, False), (True, False), (False, True)):
        made = taps(axis, at, weight, 1 if weight is linear else 2, *flags)
        np.testing.assert_allclose(made.weights.sum(axis=1), 1, rtol=1e-12)


def test_unknown_mode() -> None:
    x = sample(7, (1, 1, 3, 3), "float32")
    inputs, constants = inputs_of(x, [2.0, 2.0], False)
    with pytest.raises(Error, match="lanczos"):
        run_node("Resize", inputs, constants=constants, axes=[2, 3], mode="lanczos")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_one_element_is_the_first(mode: str) -> None:
    """pytorch_half_pixel reads at 0 then; ONNX's reference at -0.5."""
    x = sample(3, (1, 2, 5, 7), "float32")
    got = run_node(
        "Resize",
        [x, None, None, np.array([1, 2, 1, 7])],
        constants=[3],
        mode=mode,
        coordinate_transformation_mode="pytorch_half_pixel",
    )[0]
    np.testing.assert_array_equal(got, x[:, :, :1])
