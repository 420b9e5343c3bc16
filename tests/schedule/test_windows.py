"""Windows over channels: pixels side by side, the same numbers at every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.notation import (
    Buffer,
    Computation,
    axes,
    computation,
    exp,
    maximum,
    minimum,
)
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ComputeAt, UnrollAndJam
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample
from tests.linalg.single import model_of
from tests.notation.programs import kernels
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    backwards,
    executable,
    shared_cache,
    stage_text,
    targets,
)


def depthwise(
    x: np.ndarray, w: np.ndarray, known: bool, **attributes: Any
) -> np.ndarray:
    """What the compiled convolution gives; known: its weights, while compiling."""
    constants = (1,) if known else ()
    model, feeds = model_of("Conv", [x, w], attributes, constants=constants)
    cache = shared_cache()
    (made,) = nanoloom.compile(model, threads=2, cache=cache)(feeds).values()
    return made


def pixelwise(
    high: int, wide: int, window: int = 3, channels: int = 96, silu: bool = False
) -> Computation:
    """A depthwise convolution with bias and an activation: up to 6, or SiLU."""
    y, x, c, u, v = axes("y x c u v")
    image = Buffer("image", (high + window - 1, wide + window - 1, channels))
    weights = Buffer("weights", (window, window, channels))
    bias, sums = Buffer("bias", (channels,)), Buffer("sums", (high, wide, channels))
    made = Buffer("made")
    sums[y, x, c] += weights[u, v, c] * image[y + u, x + v, c]
    biased = sums[y, x, c] + bias[c]
    made[y, x, c] = (
        biased / (exp(-biased) + 1) if silu else minimum(maximum(biased, 0), 6)
    )
    return computation(made)


@pytest.mark.parametrize(
    ("name", "high", "wide", "rows", "pixels"),
    [
        ("x86-64-v3", 56, 56, 2, 4),
        ("x86-64-v3", 7, 7, 2, 4),
        ("x86-64-v3", 5, 9, 2, 3),
        ("x86-64-v4", 56, 56, 2, 8),
        ("x86-64-v4", 3, 3, 2, 3),
        ("apple-m1", 14, 14, 2, 7),
        ("neoverse-v1", 14, 14, 2, 4),
    ],
)
def test_pixels_at_once(
    name: str, high: int, wide: int, rows: int, pixels: int
) -> None:
    (kernel,) = kernels(pixelwise(high, wide)).kernels.values()
    schedule = choose(kernel.nest, by_name(name))
    counts = [w.count for w in schedule.directives if isinstance(w, UnrollAndJam)]
    assert counts[:2] == [rows, pixels]


@pytest.mark.parametrize(("window", "most"), [(3, 16), (6, 4)])
def test_pixels_that_share_nothing_are_no_more_than_are_written_out(
    window: int, most: int
) -> None:
    """Each tap is a plane of its own, as in Col2Im: 16 pixels of 36 are 576 loads."""
    x, y, u, v = axes("x y u v")
    planes = Buffer("planes", (window, window, 40, 40))
    made = Buffer("made", (32, 32))
    made[y, x] += planes[u, v, y + u, x + v]
    (kernel,) = kernels(computation(made)).kernels.values()
    schedule = choose(kernel.nest, by_name("x86-64-v4"))
    counts = [w.count for w in schedule.directives if isinstance(w, UnrollAndJam)]
    assert counts[:1] == [most]


@pytest.mark.parametrize("silu", [False, True])
def test_functions_are_a_loop_of_their_own(silu: bool) -> None:
    """What an exp works on would take the registers of the sums."""
    (kernel,) = kernels(pixelwise(14, 14, silu=silu)).kernels.values()
    words = choose(kernel.nest, by_name("x86-64-v3")).directives
    assert any(isinstance(word, ComputeAt) for word in words) is not silu


@pytest.mark.parametrize(
    ("name", "product"),
    [("x86-64-v3", "vfmadd"), ("x86-64-v4", "vfmadd"), ("neoverse-v1", "fmla"),
     ("apple-m1", "fmla")],
)  # fmt: skip
def test_the_inner_loop_reads_what_neighbours_share_once(
    name: str, product: str
) -> None:
    """Of 4 rows of pixels, and each weight for the rows of a block that use it; the
    results are written once, and no vector is spilled."""
    target = by_name(name)
    unit = target.vector
    points = unit.registers // (4 if unit.scalable else 2)
    text = stage_text(kernels(pixelwise(12, 32)), "asm", target)
    loop = loop_with(text, product)
    products = count(loop, "vfmadd") + count(loop, "fmla") + count(loop, "fmad")
    assert products == 9 * points
    assert len(touches_stack(loop)) <= 2 * unit.scalable  # some of the addresses
    read = 4 * (points // 2 + 2) + 2 * 9 + 1
    assert len(loop) <= products + read + points * 6 + 20


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize(
    ("high", "wide", "window", "channels"), [(5, 9, 3, 13), (7, 7, 5, 40), (3, 1, 3, 8)]
)
def test_what_follows_is_computed_from_registers(
    target: Target, high: int, wide: int, window: int, channels: int
) -> None:
    """Bias and activation, of sizes that tiles do not divide."""
    made = pixelwise(high, wide, window, channels)
    shapes = {
        "image": (high + window - 1, wide + window - 1, channels),
        "weights": (window, window, channels),
        "bias": (channels,),
    }
    arrays = {n: sample(len(n), shape, "float32") for n, shape in shapes.items()}
    given = [arrays[buffer.name] for buffer in made.inputs]
    (got,) = executable(kernels(made), target)(*given, order=backwards)
    x, w = arrays["image"].transpose(2, 0, 1)[None], arrays["weights"]
    exact, size = windows(x, w.transpose(2, 0, 1), 0, 1, 1)
    bias = arrays["bias"].astype(np.float64)
    sums = exact[0].transpose(1, 2, 0) + bias
    size = size[0].transpose(1, 2, 0) + abs(bias)
    check(got, np.clip(sums, 0, 6), window * window + 2, size)


CASES = [
    (13, 9, 3, 1, 1),
    (33, 19, 3, 2, 1),
    (5, 23, 5, 1, 2),
    (17, 8, 7, 1, 1),
    (16, 1, 1, 1, 1),
    (40, 37, 3, 1, 3),
]


@pytest.mark.drawn
@pytest.mark.parametrize("known", [False, True], ids=["input", "weight"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_depthwise_convolution(case: tuple[int, ...], known: bool) -> None:
    channels, size, kernel, stride, dilation = case
    random = np.random.default_rng(channels)
    x = random.standard_normal((2, channels, size, size + 2)).astype(np.float32)
    w = random.standard_normal((channels, 1, kernel, kernel)).astype(np.float32)
    pad = kernel // 2 * dilation
    steps = {"strides": [stride] * 2, "dilations": [dilation] * 2}
    got = depthwise(x, w, known, group=channels, pads=[pad] * 4, **steps)
    exact, magnitude = windows(x, w[:, 0], pad, stride, dilation)
    bound = (kernel * kernel + 2) * np.finfo(np.float32).eps * magnitude
    assert got.shape == exact.shape
    assert (abs(got - exact) <= bound).all()
    assert not (abs(0 * got - exact) <= bound).all()


@pytest.mark.parametrize("window", [3, 5])
def test_a_function_behind_the_windows_of_a_single_channel(window: int) -> None:
    """As of attention over pixels: vectors are of these, and what follows is a loop."""
    x, w = (
        sample(1, (2, 1, 11, 14), "float32"),
        sample(2, (1, 1, window, window), "float32"),
    )
    pad = window // 2
    model, feeds = model_of("Conv", [x, w], {"pads": [pad] * 4}, constants=(1,))
    node = onnx.helper.make_node("Sigmoid", ["y0"], ["made"])
    model.graph.node.append(node)
    model.graph.output[0].name = "made"
    (made,) = nanoloom.compile(model, cache=shared_cache())(feeds).values()
    exact, magnitude = windows(x, w[:, 0], pad, 1, 1)
    bound = (window * window + 8) * np.finfo(np.float32).eps * (magnitude + 1)
    assert (abs(made - 1 / (1 + np.exp(-exact))) <= bound).all()
    assert exact.std() > 0.1


def test_pixels_without_rows() -> None:
    """Regions by bins: no axis before them to be tasks, so they are no window."""
    x = np.arange(18, dtype=np.float32).reshape(2, 1, 3, 3)
    regions = np.array([[0, 0, 0, 2, 1], [1, 1, 1, 1, 1]], np.float32)
    model, feeds = model_of("MaxRoiPool", [x, regions], {"pooled_shape": [1, 1]})
    (made,) = nanoloom.compile(model, cache=shared_cache())(feeds).values()
    assert made.ravel().tolist() == [5, 13]


def windows(
    x: np.ndarray, w: np.ndarray, pad: int, stride: int, dilation: int
) -> tuple[np.ndarray, np.ndarray]:
    """The sums in float64, and those of the magnitudes."""
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    reach = (w.shape[-1] - 1) * dilation
    rows, columns = (s - reach for s in wide.shape[2:])
    exact: Any = 0.0
    magnitude: Any = 0.0
    for i in range(w.shape[1]):
        for j in range(w.shape[2]):
            top, left = i * dilation, j * dilation
            part = wide[:, :, top : top + rows : stride, left : left + columns : stride]
            exact = exact + part * w[:, i, j, None, None]
            magnitude = magnitude + abs(part) * abs(w[:, i, j, None, None])
    return exact, magnitude
