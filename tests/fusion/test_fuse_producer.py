"""What stands in front of a product alone is a part of its kernel, block by block."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx.numpy_helper import from_array
from onnx.parser import parse_model

import nanoloom
from nanoloom.compiler import Report, partition_model
from nanoloom.frontend.onnx import load
from nanoloom.kernels.program import Program
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import StoreAt
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample
from tests.vector.checks import check
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
# images, height, width, channels, filters
CASES = [(1, 31, 37, 71, 70), (2, 29, 11, 130, 19), (1, 1, 997, 80, 4)]
EQUATION = "nhwc,cf->nhwf"


def arrays(case: tuple[int, ...]) -> dict[str, Array]:
    n, high, wide, channels, made = case
    shapes = {
        "x": (n, high, wide, channels), "w": (channels, made), "bias": (made,),
        "mean": (channels,), "factor": (channels,), "shift": (channels,),
    }  # fmt: skip
    pairs = enumerate(shapes.items())
    return {name: sample(i, shape, "float32") for i, (name, shape) in pairs}


def normalize(b: Any, x: Any, given: dict[str, Array]) -> Any:
    """A normalization with constants for each channel, then ReLU."""
    mean, factor, shift = (b.constant(given[n]) for n in ("mean", "factor", "shift"))
    made = b.elementwise(lambda s, m, f, c: (s - m) * f + c, x, mean, factor, shift)
    return b.elementwise(lambda s: s.maximum(0), made)


def layer(case: tuple[int, ...]) -> Make:
    given = arrays(case)

    def make(b: Any, x: Any) -> Any:
        made = b.einsum(EQUATION, normalize(b, x, given), b.constant(given["w"]))
        bias = b.constant(given["bias"])
        return b.elementwise(lambda s, t: (s + t).maximum(0), made, bias)

    return make


def expected(given: dict[str, Array], x: Array) -> tuple[Array, Array]:
    """The exact result and what its roundings are relative to."""
    wide = {name: array.astype(np.float64) for name, array in given.items()}
    moved = abs(x) + abs(wide["mean"])
    image = (x - wide["mean"]) * wide["factor"] + wide["shift"]
    size = moved * abs(wide["factor"]) + abs(wide["shift"])
    made = np.einsum(EQUATION, np.maximum(image, 0), wide["w"]) + wide["bias"]
    sizes = np.einsum(EQUATION, size, abs(wide["w"])) + abs(wide["bias"])
    return np.maximum(made, 0), sizes


def kernels(program: Program) -> list[str]:
    return [name.split("_")[0] for name in program.kernels]


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers(case: tuple[int, ...], target: Target) -> None:
    """No kernel of its own; tasks in any order give the same bits."""
    given = arrays(case)
    program = program_of(layer(case), given["x"])
    assert kernels(program) == ["contraction"]
    made = executable(program, target)
    (got,), (again,) = (made(given["x"], order=o) for o in (at_once, backwards))
    assert np.array_equal(got, again)
    exact, size = expected(given, given["x"].astype(np.float64))
    check(got, exact, case[3] + 6, size)


def test_rows_of_pixels_are_one_axis_of_a_slice_too() -> None:
    """Layers that read what was joined before, each a part more of one tensor."""
    case = (1, 30, 37, 72, 24)
    given = arrays(case)
    more, twice = arrays((1, 30, 37, 96, 16)), 2 * np.eye(72, dtype=np.float32)

    def make(b: Any, x: Any) -> Any:
        both = b.einsum(EQUATION, x, b.constant(twice))
        first = b.einsum(EQUATION, normalize(b, both, given), b.constant(given["w"]))
        joined = b.concat([both, first], 3)
        made = normalize(b, joined, more)
        return b.einsum(EQUATION, made, b.constant(more["w"]))

    program = program_of(make, given["x"])
    assert kernels(program) == ["contraction"] * 3
    assert [k.shapes[0] for k in program.kernels.values()][2] == (1110, 96)
    x = given["x"]
    both = 2 * x.astype(np.float64)
    zero = {**given, "bias": np.zeros(24, np.float32)}
    wide = np.einsum(EQUATION, np.maximum(normal(zero, both), 0), given["w"])
    joined = np.concatenate([both, wide], 3)
    exact = np.einsum(EQUATION, np.maximum(normal(more, joined), 0), more["w"])
    for target in targets():
        (got,) = executable(program, target)(x, order=backwards)
        assert np.allclose(got, exact, rtol=1e-4, atol=1e-4 * abs(exact).max())


def normal(given: dict[str, Array], x: Array) -> Array:
    return (x - given["mean"]) * given["factor"] + given["shift"]


def test_a_gate_is_no_pass_of_its_own() -> None:
    """Numbers that are computed: an image times one of them for each channel."""
    w = sample(1, (69, 40), "float32")

    def make(b: Any, x: Any, gate: Any) -> Any:
        gated = b.elementwise(lambda s, g: s * g, x, gate)
        return b.einsum(EQUATION, gated, b.constant(w))

    x, gate = sample(2, (1, 38, 39, 69), "float32"), sample(3, (69,), "float32")
    program = program_of(make, x, gate)
    assert kernels(program) == ["contraction"]
    exact = np.einsum(EQUATION, x.astype(np.float64) * gate, w)
    size = np.einsum(EQUATION, abs(x.astype(np.float64) * gate), abs(w))
    for target in targets():
        (got,) = executable(program, target)(x, gate)
        check(got, exact, 71, size)


def test_the_loops() -> None:
    """A block of rows is made once, in the task's memory, for all panels."""
    program = program_of(layer((1, 56, 56, 256, 128)), ((1, 56, 56, 256), "float32"))
    (kernel,) = program.kernels.values()
    target = by_name("x86-64-v4")
    schedule = choose(kernel.nest, target)
    assert StoreAt("point_2", "task") in schedule.directives
    loops = [text.strip() for text in str(schedule.apply(kernel.nest)).splitlines()]
    (made,) = [n for n, x in enumerate(loops) if x.startswith("point_2:")]
    (first,) = [n for n, x in enumerate(loops) if x.startswith("point:")]
    panels = [n for n, x in enumerate(loops) if x.startswith("for d1o")]
    (task,) = [n for n, x in enumerate(loops) if x.startswith("forall")]
    assert task < first < made < panels[0]
    assert "forall d0o" in loops[task] and "d1o" not in loops[task]


def test_the_code() -> None:
    """One store of what is normalized, of a block; nothing between its stages."""
    program = program_of(layer((1, 56, 56, 256, 128)), ((1, 56, 56, 256), "float32"))
    text = stage_text(program, "vector", by_name("x86-64-v4"))
    kinds = re.findall(r"vector.store .* : (memref<\d+x256xf32>),", text)
    assert kinds == ["memref<196x256xf32>"]
    assert "memref<3136x256xf32>" in text and text.count("arith.subf") == 1
    code = stage_text(program, "llvm", by_name("x86-64-v4"))
    assert re.search(r'"llvm.loop.unroll.count", i32 \d', code)


def test_what_stays_a_kernel() -> None:
    """What others read, too; few rows; weights that are no constants; windows."""
    case = (1, 37, 37, 65, 70)
    given = arrays(case)
    x, w = given["x"], given["w"]

    def twice(b: Any, x: Any) -> Any:
        made = normalize(b, x, given)
        return [made, b.einsum(EQUATION, made, b.constant(w))]

    def computed(b: Any, x: Any, w: Any) -> Any:
        return b.einsum(EQUATION, normalize(b, x, given), w)

    def few(b: Any, x: Any) -> Any:
        return b.einsum(EQUATION, normalize(b, x, given), b.constant(w))

    two = ["elementwise", "contraction"]
    assert kernels(program_of(twice, x)) == two
    assert kernels(program_of(computed, x, w)) == two
    assert kernels(program_of(few, x[:, :1, :7])) == two
    assert kernels(program_of(few, x)) == ["contraction"]


def of_rows(kind: str, x: Any) -> Any:
    """A normalization of the last axis, or a softmax."""
    axis, e = -1, 1e-5
    if kind == "softmax":
        made = np.exp(x - x.max(axis, keepdims=True))
        return made / made.sum(axis, keepdims=True)
    moved = x - x.mean(axis, keepdims=True) if kind == "layer" else x
    return moved / np.sqrt((moved * moved).mean(axis, keepdims=True) + e)


NORMS = {
    "layer": "t = LayerNormalization<axis=-1>(x, s, z)",
    "square": "q = Mul(x, x) r = ReduceMean<keepdims=1>(q, last) v = Add(r, e) "
    "d = Sqrt(v) o = Div(x, d) u = Mul(o, s) t = Add(u, z)",
    "softmax": "o = Softmax<axis=-1>(x) u = Mul(o, s) t = Add(u, z)",
}


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(6))
def test_rows_that_are_normalized(seed: int) -> None:
    """Drawn: sums of whole rows in front of a product are in its kernel, at any sizes;
    the numbers are those of float64 and do not depend on who makes which rows."""
    random = np.random.default_rng(seed)
    kind = list(NORMS)[seed % len(NORMS)]
    depth, columns = (int(n) for n in random.integers(33, 140, 2))
    rows = tuple(int(n) for n in random.integers(15, 40, 1 + seed // 3))
    given = {
        "s": random.standard_normal(depth, np.float32),
        "z": random.standard_normal(depth, np.float32),
        "w": random.standard_normal((depth, columns), np.float32),
        "b": random.standard_normal(columns, np.float32),
        "last": np.array([-1]),
        "e": np.array(1e-5, np.float32),
    }
    x = random.standard_normal((2, *rows, depth), np.float32)
    model = parse_model(
        '<ir_version: 10, opset_import: ["": 21]> layer '
        f"(float{list(x.shape)} x) => (float{[2, *rows, columns]} y) "
        f"{{ {NORMS[kind]} m = MatMul(t, w) a = Add(m, b) y = Relu(a) }}"
    )
    model.graph.initializer.extend(from_array(a, n) for n, a in given.items())
    program = nanoloom.compile(model, threads=1)
    got = program({"x": x})["y"]
    assert np.array_equal(nanoloom.compile(model, threads=3)({"x": x})["y"], got)
    target = CompileOptions(by_name("x86-64-v3"))
    cut = partition_model(load(model), target, Report())
    assert kernels(cut) == ["contraction"]
    wide = {name: array.astype(np.float64) for name, array in given.items()}
    made = of_rows(kind, x.astype(np.float64)) * wide["s"]
    exact = np.maximum((made + wide["z"]) @ wide["w"] + wide["b"], 0)
    size = (abs(made) + abs(wide["z"])) @ abs(wide["w"]) + abs(wide["b"])
    check(got, exact, 3 * depth, size)
