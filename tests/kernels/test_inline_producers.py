"""What is made point by point for a pool alone is made where the pool reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest

import nanoloom
from nanoloom.kernels.program import Program
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.reductions.pooling import pool
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample, within
from tests.vector.kernel_harness import (
    Array,
    Make,
    at_once,
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
SHAPE = (2, 13, 11, 37)  # images, height, width, channels
# type, and a window: extents, steps, dilations; all of an image without one
APART = [
    ("float32", (2, 2), (2, 2), (1, 1)),
    ("float32", (2, 3), (4, 3), (1, 1)),
    ("float32", (2, 2), (3, 4), (2, 3)),
    ("float32", (3, 1), (3, 1), (1, 1)),
    ("float16", (2, 2), (2, 2), (1, 1)),
    ("bfloat16", (3, 3), (3, 3), (1, 1)),
    ("float32", (), (), ()),
    ("bfloat16", (), (), ()),
]
OVER = [((3, 3), (2, 2), (1, 1)), ((2, 2), (2, 2), (2, 1)), ((2, 2), (2, 1), (1, 1))]
FOLDS: dict[str, tuple[float, Any]] = {
    "sum": (0, lambda s, x: s + x),
    "max": (-np.inf, lambda s, x: s.maximum(x)),
}
Steps = tuple[int, ...]
Case = tuple[str, Steps, Steps, Steps]


def window_of(kernel: Steps, strides: Steps, dilations: Steps) -> Window:
    """Within the image: nothing is padded."""
    size = SHAPE[1:3]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    made = [
        (n - span) // s + 1 for n, span, s in zip(size, spans, strides, strict=True)
    ]
    return Window(kernel, strides, dilations, (0, 0), (0, 0), size, tuple(made))


def pooled(case: Case, fold: str, b: Any, x: Any) -> Any:
    start, body = FOLDS[fold]
    _, kernel, strides, dilations = case
    if kernel:
        return pool(b, x, window_of(kernel, strides, dilations), start, body)
    return b.reduce(body, x, [1, 2], start)


def normalized(b: Any, x: Any) -> Any:
    """With constants for each channel, then clipped twice: read by two operations."""
    factor, shift = (b.constant(sample(i, SHAPE[3:], str(x.dtype))) for i in (1, 2))
    made = b.elementwise(lambda s, f, c: s * f + c, x, factor, shift)
    clipped = b.elementwise(lambda s: s.maximum(0), made)
    return b.elementwise(lambda s, t: s + t * 0.5, clipped, made)


def block(case: Case, fold: str, *, twice: bool = False) -> Make:
    """twice: what the pool reads is a result, too, which keeps it in memory."""

    def make(b: Any, x: Any) -> Any:
        made = normalized(b, x)
        y = pooled(case, fold, b, made)
        return [y, made] if twice else y

    return make


def kernels(program: Program) -> list[str]:
    return [name.split("_")[0] for name in program.kernels]


def numbers(kind: str) -> Array:
    """With a NaN, infinities and both zeros among them."""
    x = sample(3, SHAPE, kind)
    x[0, 0, 0, 6], x[1, 1, 1, 7], x[1, 1, 1, 8] = np.nan, np.inf, -np.inf
    x[0, 0, :, 0] = -0.0
    return x


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("case", APART, ids=str)
def test_the_bits_are_those_of_a_pass(case: Case, fold: str, target: Target) -> None:
    """One kernel of a pool; tasks in any order make the same."""
    x = numbers(case[0])
    alone, both = (program_of(block(case, fold, twice=t), x) for t in (False, True))
    assert kernels(alone)[0] == "reduction"
    assert len(alone.calls) < len(both.calls)
    made = executable(alone, target)
    (got,), (again,) = (made(x, order=order) for order in (at_once, backwards))
    expected, image = executable(both, target)(x)
    assert got.tobytes() == again.tobytes() == expected.tobytes()
    assert np.isnan(got.astype(np.float32)).any() and image.shape == SHAPE
    assert got.tobytes() != np.roll(expected, 1, -1).tobytes()


@pytest.mark.parametrize("way", OVER, ids=str)
def test_windows_that_overlap_read_what_is_in_memory(way: tuple[Any, ...]) -> None:
    case = ("float32", *way)
    assert "elementwise" in kernels(program_of(block(case, "max"), (SHAPE, "float32")))


def test_a_function_and_a_product_stay_what_they_are() -> None:
    """An exp has a loop of its own; a sum of products would round once for both."""

    def functions(b: Any, x: Any) -> Any:
        made = b.elementwise(lambda s: s.math("exp"), x)
        return pooled(APART[0], "sum", b, made)

    def gated(b: Any, x: Any, gate: Any) -> Any:
        made = b.elementwise(lambda s, t: s * t, x, gate)
        return b.reduce(lambda s, t: s + t, made, [1, 2], 0)

    kind = (SHAPE, "float32")
    assert "elementwise" in kernels(program_of(functions, kind))
    assert kernels(program_of(gated, kind, kind)) == ["elementwise", "reduction"]


@pytest.mark.drawn(one_in=2)
@TARGETS
@pytest.mark.parametrize("order", [(0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2)], ids=str)
@pytest.mark.parametrize("kind", ["float32", "float16", "int32"])
def test_another_order_of_axes(
    kind: str, order: tuple[int, ...], target: Target
) -> None:
    """The copy makes what it turns, of one image and numbers of its channels."""
    factor = sample(1, SHAPE[3:], kind)

    def make(b: Any, x: Any) -> Any:
        made = b.elementwise(lambda s, f: (s * f).maximum(0), x, b.constant(factor))
        return b.transpose(b.elementwise(lambda s: s + 1, made), order)

    x = sample(2, SHAPE, kind)
    program = program_of(make, x)
    assert kernels(program) == ["elementwise"]
    (got,) = executable(program, target)(x, order=backwards)
    exact = np.maximum(x * factor, 0).astype(kind) + np.ones((), kind)
    assert got.tobytes() == exact.transpose(order).tobytes()


def test_two_images_are_turned_when_they_are_one() -> None:
    """Their sum is one image to turn; and a function has a loop of its own."""

    def added(b: Any, x: Any, y: Any) -> Any:
        return b.transpose(b.elementwise(lambda s, t: s + t, x, y), (0, 3, 1, 2))

    def functions(b: Any, x: Any) -> Any:
        made = b.elementwise(lambda s: s.math("exp"), x)
        return b.transpose(made, (0, 3, 1, 2))

    kind = (SHAPE, "float32")
    for program in (program_of(added, kind, kind), program_of(functions, kind)):
        assert kernels(program) == ["elementwise", "elementwise"]


def test_an_image_of_equal_pixels_stays_one() -> None:
    """Numbers of the channels alone do not say how large it is."""

    def make(b: Any, x: Any) -> Any:
        made = b.broadcast_to(x, (5, 3, *SHAPE[3:]))
        return b.reduce(lambda s, t: s + t, made, [0, 1], 0)

    x = sample(1, SHAPE[3:], "float32")
    (got,) = executable(program_of(make, x), targets()[0])(x)
    assert within(got, 15 * x[None, None], 16, 15 * abs(x))


def test_the_loops() -> None:
    """No memory beside the sums: a number is normalized in registers."""
    shape = (1, 56, 56, 256)

    def make(b: Any, x: Any) -> Any:
        scale = b.constant(sample(1, shape[3:], "float32"))
        made = b.elementwise(lambda s, t: (s * t).maximum(0), x, scale)
        window = Window((2, 2), (2, 2), (1, 1), (0, 0), (0, 0), (56, 56), (28, 28))
        return pool(b, made, window, *FOLDS["sum"])

    program = program_of(make, (shape, "float32"))
    assert len(program.calls) == 1
    text = stage_text(program, "vector", by_name("x86-64-v4"))
    assert "memref.alloc" not in text


MODEL = """
    <ir_version: 8, opset_import: ["" : 19]>
    g (float[batch, 6, height, width] x, float[5, 6, 1, 1] w, float[5] scale,
       float[5] shift, float[5] mean, float[5] variance) => (y, z)
    {
        made = Conv(x, w)
        joined = Relu(made)
        z = Sin(joined)
        n = BatchNormalization(joined, scale, shift, mean, variance)
        r = Relu(n)
        y = POOL(r)
    }
    """
POOLS = [
    "AveragePool<kernel_shape = [2, 2], strides = [2, 2]>",
    "AveragePool<kernel_shape = [2, 2], strides = [2, 3], ceil_mode = 1>",
    "AveragePool<kernel_shape = [2, 3], strides = [2, 3], pads = [1, 0, 1, 1]>",
    "AveragePool<kernel_shape = [2, 2], strides = [2, 2], pads = [1, 1, 0, 0],"
    " count_include_pad = 1>",
    "MaxPool<kernel_shape = [2, 2], strides = [3, 2], pads = [1, 1, 1, 1]>",
    "MaxPool<kernel_shape = [2, 2], strides = [4, 3], dilations = [3, 2]>",
    "GlobalAveragePool",
    "GlobalMaxPool",
]


@pytest.mark.drawn(one_in=2, kind=lambda way: way.partition("<")[0])
@pytest.mark.parametrize("way", POOLS, ids=lambda text: text[:60])
def test_a_border_is_not_normalized(way: str) -> None:
    """Models whose sizes are known, or are not: what is padded counts as it did."""
    model = onnx.parser.parse_model(MODEL.replace("POOL", way))
    dims = {"batch": 2, "height": 11, "width": 8}
    shapes = {"x": (2, 6, 11, 8), "w": (5, 6, 1, 1)}
    names = [i.name for i in model.graph.input]
    given = {n: sample(i, shapes.get(n, (5,)), "float32") for i, n in enumerate(names)}
    given["variance"] = abs(given["variance"]) + 0.5
    given["shift"] = given["shift"] + 3  # what is not padded would be seen
    evaluated = onnx.reference.ReferenceEvaluator(model).run(["y"], given)
    (exact,) = map(np.asarray, evaluated)
    bounds: dict[str, int | tuple[int, int]] = dict.fromkeys(
        ("height", "width"), (1, 40)
    )
    for sizes in (dims, bounds | {"batch": 2}):
        program = nanoloom.compile(model, threads=1, dims=sizes)
        got = program(given)["y"]
        assert got.shape == exact.shape
        assert within(got, exact, 40, abs(exact).max() + 10)
        assert not within(np.roll(got, 1, 2 if got.shape[2] > 1 else 1), exact, 40, 10)
