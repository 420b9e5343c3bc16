"""ConvInteger and QLinearConv against 64-bit sums: every element exact."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nanoloom
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.convolution import contract
from nanoloom.linalg.products.integer_convolution import (
    contract_planes,
    contract_rows,
    in_groups,
    in_rows,
)
from nanoloom.schedule.choose import choose
from nanoloom.schedule.library.row_tasks import numbers
from nanoloom.target import by_name
from tests.drawn_cases import few_examples
from tests.guarded import Side
from tests.linalg.products.test_convolution import convolve
from tests.linalg.single import model_of, run_node
from tests.vector.assembly import count, loop_with
from tests.vector.kernel_harness import (
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)


def integers(r: np.random.Generator, kind: str, *shape: int) -> np.ndarray:
    limits = np.iinfo(kind)
    return r.integers(limits.min, limits.max, shape, kind, endpoint=True)


@given(
    st.sampled_from(["uint8", "int8"]),
    st.sampled_from(["uint8", "int8"]),
    st.sampled_from(["none", "scalar", "filters", "128"]),
    st.booleans(),
    st.sampled_from([(), (0,), (1,), (2,), (3,), (1, 2, 3)]),
)
@few_examples(15)
def test_conv_integer_is_exact(
    x_kind: str, w_kind: str, zeros: str, grouped: bool, constants: tuple[int, ...]
) -> None:
    r = np.random.default_rng(len(zeros))
    x = integers(r, x_kind, 2, 6, 7, 5)
    w = integers(r, w_kind, 4, 3 if grouped else 6, 3, 2)
    inputs = [x, w]
    x_zero, w_zero = np.zeros((), x.dtype), np.zeros((), w.dtype)
    if zeros != "none":
        x_zero = np.array(77, x.dtype)
        w_zero = integers(r, w_kind, *([4] if zeros == "filters" else []))
        if zeros == "128":
            w_zero = np.array(128 if w_kind == "uint8" else -128).astype(w.dtype)
        inputs += [x_zero, w_zero]
    got = run_node(
        "ConvInteger",
        inputs,
        constants=[i for i in constants if i < len(inputs)],
        group=2 if grouped else 1,
        pads=[1, 0, 2, 1],
        strides=[2, 1],
        version=10,
    )[0]
    case = {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 1]}
    filters = w_zero.astype(np.int64).reshape(-1, *(1,) * 3)
    right = convolve(
        x.astype(np.int64) - x_zero,
        w.astype(np.int64) - filters,
        2 if grouped else 1,
        case,
    )
    assert got.dtype == np.int32
    assert (got == right).all()


@given(st.sampled_from(["uint8", "int8"]), st.booleans(), st.booleans())
@few_examples(8)
def test_qlinear_conv_is_exact(kind: str, per_filter: bool, constant: bool) -> None:
    r = np.random.default_rng(5)
    x, w = integers(r, kind, 1, 3, 6, 7), integers(r, "int8", 4, 3, 3, 3)
    count = (4,) if per_filter else ()
    f32 = np.float32
    x_scale, y_scale = f32(0.03), f32(1.7)
    w_scale = (r.random(count) / 50 + 0.01).astype(f32)
    x_zero, y_zero = np.array(11, kind), np.array(100, kind)
    bias = r.integers(-5000, 5000, 4, np.int32)
    inputs = [
        x,
        np.array(x_scale),
        x_zero,
        w,
        np.array(w_scale),
        np.zeros(count, np.int8),
        np.array(y_scale),
        y_zero,
        bias,
    ]
    got = run_node(
        "QLinearConv",
        inputs,
        pads=[1, 1, 1, 1],
        strides=[2, 2],
        version=10,
        constants=range(1, 9) if constant else [],
    )[0]
    case = {"pads": [1, 1, 1, 1], "strides": [2, 2], "dilations": [1, 1]}
    centered = x.astype(np.int64) - int(x_zero)
    sums = convolve(centered, w.astype(np.int64), 1, case) + bias.reshape(-1, 1, 1)
    scale = np.asarray(x_scale * w_scale / y_scale, f32).reshape(-1, 1, 1)
    limits = np.iinfo(kind)
    right = np.round(sums.astype(f32) * scale) + f32(y_zero)
    assert (got == right.clip(limits.min, limits.max).astype(kind)).all()
    assert len(np.unique(got)) > 5


@pytest.mark.parametrize(
    ("image", "kernel", "strides", "dilations"),
    [
        ((3, 11, 13), (7, 7), [2, 2], [1, 1]),
        ((1, 9), (4,), [3], [1]),
        ((5, 6, 7), (3, 2), [1, 3], [2, 1]),
        ((2, 4, 5, 6), (2, 3, 3), [1, 1, 2], [1, 1, 1]),
        ((3, 8, 9), (2, 3), [1, 1], [1, 2]),  # taps lie apart
        ((3, 2, 3), (2, 3), [1, 1], [1, 1]),  # one window
    ],
    ids=str,
)
def test_few_channels(
    image: tuple[int, ...], kernel: Any, strides: list[int], dilations: list[int]
) -> None:
    """Taps side by side are one axis with the channels."""
    r = np.random.default_rng(7)
    x, w = integers(r, "uint8", 2, *image), integers(r, "int8", 5, image[0], *kernel)
    pads = [1, 0, 2][: len(kernel)] + [0, 2, 1][: len(kernel)]
    case = {"pads": pads, "strides": strides, "dilations": dilations}
    given: list[np.ndarray | None] = [x, w, np.array(3, np.uint8)]
    got = run_node("ConvInteger", given, constants=[1, 2], version=10, **case)[0]
    right = convolve(x.astype(np.int64) - 3, w.astype(np.int64), 1, case)
    assert (got == right).all() and (got != np.roll(right, 1, -1)).any()


def test_the_sum_over_a_row_of_taps_is_a_single_axis() -> None:
    def make(b: Any, x: Any) -> Any:
        return contract_rows(b, x, b.constant(w), window)

    window = Window((7, 7), (2, 2), (1, 1), (0, 0), (0, 0), (29, 29), (12, 12))
    x, w = ((1, 29, 29, 3), "uint8"), np.ones((8, 3, 7, 7), np.int8)
    (kernel,) = program_of(make, x).kernels.values()
    assert "arg0[2*d0 + d3, 6*d1 + d4], arg1[d2, d3, d4]" in str(kernel.nest)
    script = stage_text(program_of(make, x), "schedule", by_name("x86-64-v3"))
    assert "int8-pairs" in script
    assert in_rows(window, 3) and not in_rows(window, 4) and not in_rows(window, 33)
    assert not in_rows(replace(window, dilations=(1, 2)), 3)
    assert not in_rows(replace(window, kernel=(7, 1)), 3)


@pytest.mark.parametrize(
    ("image", "kernel", "strides", "dilations"),
    [
        ((3, 11, 60), (7, 7), (2, 2), (1, 1)),
        ((3, 9, 41), (3, 3), (1, 1), (2, 1)),
        ((2, 31), (7,), (3,), (1,)),
        ((1, 4, 5, 19), (2, 1, 9), (1, 2, 1), (1, 1, 1)),
    ],
    ids=str,
)
def test_planes(
    image: tuple[int, ...], kernel: Any, strides: Any, dilations: Any
) -> None:
    """Nothing is read behind an image that ends with its last group of pixels."""
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    places = zip(image[1:], spans, strides, strict=True)
    result = tuple((size - span) // s + 1 for size, span, s in places)
    none = (0,) * len(kernel)
    shape = (kernel, strides, dilations, none, none, image[1:], result)
    window = in_groups(Window(*shape))
    extents = (1, image[0], *window.reach())
    r = np.random.default_rng(9)
    x, w = integers(r, "uint8", *extents), integers(r, "int8", 17, image[0], *kernel)
    program = program_of(lambda b, x: contract_planes(b, x, b.constant(w), window), x)
    case = {"pads": [0] * 2 * len(kernel), "strides": strides, "dilations": dilations}
    wide = x.astype(np.int64), w.astype(np.int64)
    right = np.moveaxis(convolve(*wide, 1, case), 1, -1)
    right = right[tuple(slice(n) for n in (1, *result, 17))]
    for target in targets():
        run = executable(program, target)
        for side in Side:
            (got,) = run(x, order=backwards, side=side)
            assert (got == right).all() and (got != np.roll(right, 1, -1)).any()


def test_channels_of_planes_are_no_loop() -> None:
    """A group of every channel behind the other, in a round of the loop over rows."""
    whole = (29, 30)
    window = Window((7, 7), (2, 2), (1, 1), (0, 0), (0, 0), whole, (12, 12))
    x, w = ((1, 3, *whole), "uint8"), np.ones((32, 3, 7, 7), np.int8)
    program = program_of(
        lambda b, x: contract_planes(b, x, b.constant(w), in_groups(window)), x
    )
    target = by_name("x86-64-v4+avx512vnni")
    (kernel,) = program.kernels.values()
    found = re.search(r"Nanokernel\((\d+), (\d+)", str(choose(kernel.nest, target)))
    assert found is not None
    text = stage_text(program, "vector", target)
    assert text.count("vpdpbusd") == 3 * int(found[1]) * int(found[2])


def test_the_border_of_a_number_that_a_run_knows() -> None:
    """Parts of a tensor, as of a concatenation: no kernel goes over all of it."""
    r = np.random.default_rng(5)
    x, w = integers(r, "uint8", 1, 3, 9, 11), integers(r, "int8", 8, 3, 3, 3)
    arrays = x, w, np.array(7, np.uint8)
    model, _ = model_of("ConvInteger", arrays, {"pads": [1] * 4}, constants=(1,))
    nests = nanoloom.compile(model).nests().values()
    sizes = [prod(numbers(stage)) for nest in nests for stage in nest.stages]
    assert x.size in sizes and 11 * 13 * 3 not in sizes


@pytest.mark.parametrize("constants", [(), (2,), (1,), (1, 2)])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1]])
def test_one_window_over_more_than_it_reads(
    pads: list[int], constants: tuple[int, ...]
) -> None:
    """Strides so wide that only one window stands on an axis."""
    r = np.random.default_rng(5)
    x, w = integers(r, "int8", 3, 1, 4, 4), integers(r, "uint8", 1, 1, 2, 2)
    got = run_node(
        "ConvInteger",
        [x, w, np.array(3, np.int8)],
        constants=constants,
        strides=[4, 5],
        pads=pads,
        version=10,
    )[0]
    case = {"pads": pads, "strides": [4, 5], "dilations": [1, 1]}
    right = convolve(x.astype(np.int64) - 3, w.astype(np.int64), 1, case)
    assert got.shape == right.shape and (got == right).all()


@pytest.mark.parametrize(
    ("name", "multiply", "add"),
    [
        ("cascadelake", "vpdpwssd", 0),
        ("alderlake", "vpdpwssd", 0),
        ("skylake", "vpmaddwd", 1),
    ],
)
def test_a_channel_by_itself_is_summed_as_it_is_multiplied(
    name: str, multiply: str, add: int
) -> None:
    """Where an instruction does both, LLVM leaves it so: many sums are under way."""
    window = Window((3, 3), (1, 1), (1, 1), (0, 0), (0, 0), (16, 16), (14, 14))
    x, w = ((1, 16, 16, 64), "uint8"), np.ones((64, 1, 3, 3), np.int8)
    program = program_of(
        lambda b, x: contract(b, x, b.constant(w), window, 64, np.dtype(np.int32)), x
    )
    loop = loop_with(stage_text(program, "asm", by_name(name)), multiply)
    products = count(loop, multiply)
    assert products >= 36 and (count(loop, "vpaddd") >= products // 2) == bool(add)
