"""Added errors: present where results are rounded, absent where they are exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir
import pytest

from nanoloom.frontend.onnx import load
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.inspect.graph_writer import Writer, signed_random
from nanoloom.inspect.references import disturbed, open_reference, save
from nanoloom.inspect.rounding import (
    TRIAL,
    TRIALS,
    depth,
    random_node,
    relative_error,
    with_errors,
)
from tests.cli import models

KINDS = ("ort", "reference")
Arrays = dict[str, np.ndarray]


def bound(folder: Path, text: str, **dims: int) -> onnx_ir.Model:
    return bind(load(models.write(folder, text)), dims)


def effects(
    folder: Path, kind: str, text: str, inputs: Arrays, **dims: int
) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """The reference's outputs, and those with errors added."""
    model = bound(folder, text, **dims)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    exact = open_reference(kind, save(model, scratch), 1)(inputs)
    return exact, disturbed(kind, model, scratch, 1, inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_a_product_are_about_its_bound(tmp_path: Path, kind: str) -> None:
    random = np.random.default_rng(5)
    text = (
        "g (float[4, 900] x, float[900, 6] w) => (float[4, 6] y) { y = MatMul(x, w) }"
    )
    x = random.standard_normal((4, 900), np.float32)
    w = random.standard_normal((900, 6), np.float32)
    (exact,), trials = effects(tmp_path, kind, text, {"x": x, "w": w})
    assert len(trials) == TRIALS
    limit = (8 + 4 + 30) * 2.0**-24 * (abs(x).astype(np.float64) @ abs(w))
    for (other,) in trials:
        gap = abs(other.astype(np.float64) - exact)
        assert (gap <= 1.1 * limit).all() and (gap > 0.01 * limit).any()
    seen = {other.tobytes() for (other,) in trials}
    assert len(seen) == TRIALS, "every trial draws anew"


@pytest.mark.parametrize("kind", KINDS)
def test_the_errors_are_the_same_in_every_process(tmp_path: Path, kind: str) -> None:
    inputs = {"x": np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)}
    text = "g (float[2, 3] x) => (float[2, 3] y) { y = Exp(x) }"
    runs = [effects(tmp_path, kind, text, inputs)[1] for _ in range(2)]
    np.testing.assert_array_equal(np.array(runs[0]), np.array(runs[1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancellation_makes_errors_large(tmp_path: Path, kind: str) -> None:
    """(1 + x) - 1 loses the digits of x: the bound must grow with it."""
    text = """
        g (float[4] x, float[1] one) => (float[4] y) {
          a = Add(x, one)
          y = Sub(a, one)
        }
    """
    x = np.array([1e-4, 2e-4, 3e-4, 4e-4], np.float32)
    inputs = {"x": x, "one": np.ones(1, np.float32)}
    (exact,), trials = effects(tmp_path, kind, text, inputs)
    largest = max(abs(other - exact).max() for (other,) in trials)
    assert 2.0**-24 < largest < 20 * 2.0**-24, "errors of 1, not of x"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "body",
    [
        "y = Relu(x)",
        "t = Transpose(x) y = Transpose(t)",
        "y = Mul(x, x)",  # whole numbers
        "b = Cast<to = 7>(x) f = Cast<to = 1>(b) y = Identity(f)",
        "l = Greater(x, x) f = Cast<to = 1>(l) y = Add(f, x)",
    ],
)
def test_what_is_exact_stays_so(tmp_path: Path, kind: str, body: str) -> None:
    text = f"g (float[2, 3] x) => (float[2, 3] y) {{ {body} }}"
    inputs = {"x": np.arange(-2, 4, dtype=np.float32).reshape(2, 3)}
    exact, trials = effects(tmp_path, kind, text, inputs)
    for other in trials:
        np.testing.assert_array_equal(other, exact)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_minus_infinity(tmp_path: Path, kind: str) -> None:
    text = """
        g (float[2, 3] x, float[2, 3] mask) => (float[2, 3] y) {
          a = Add(x, mask)
          y = Softmax(a)
        }
    """
    mask = np.array([[0, -np.inf, 0], [0, 0, np.finfo(np.float32).min]], np.float32)
    x = np.linspace(0.1, 0.7, 6, dtype=np.float32).reshape(2, 3)
    (exact,), trials = effects(tmp_path, kind, text, {"x": x, "mask": mask})
    for (other,) in trials:
        assert np.isfinite(other).all() and (other[exact == 0] == 0).all()
        assert 0 < abs(other - exact).max() < 1e-5


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_types(tmp_path: Path, dtype: str) -> None:
    text = f"g ({dtype}[8] x) => ({dtype}[8] y) {{ y = Sqrt(x) }}"
    kind = np.dtype("float64" if dtype == "double" else dtype)
    inputs = {"x": np.linspace(0.1, 1, 8).astype(kind)}
    (exact,), trials = effects(tmp_path, "reference", text, inputs)
    gaps = [abs(other - exact).max() for (other,) in trials]
    one = np.finfo(kind).eps / 2
    assert exact.dtype == kind and one / 10 < max(gaps) < 10 * one


def test_errors_inside_of_loops(tmp_path: Path) -> None:
    text = """
        g (float[2] x) => (float[2] y) {
          trips = Constant<value = int64 {3}>()
          on = Constant<value = bool {1}>()
          y = Loop (trips, on, x) <body = b (int64 i, bool c, float[2] v)
            => (bool d, float[2] w) { d = Identity(c) w = Exp(v) }>
        }
    """
    inputs = {"x": np.array([0.1, -0.3], np.float32)}
    (exact,), trials = effects(tmp_path, "ort", text, inputs)
    assert max(abs(other - exact).max() for (other,) in trials) > 0


def node(folder: Path, text: str, **dims: int) -> onnx_ir.Node:
    return next(iter(bound(folder, text, **dims).graph))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("g (float[2, 7] a, float[7, 3] b) => (float y) { y = MatMul(a, b) }", 7),
        ("g (float[7, 2] a, float[7, 3] b) => (float y) "
         "{ y = Gemm<transA = 1>(a, b) }", 7),
        ("g (float[1, 4, 9, 9] a, float[2, 4, 3, 3] b) => (float y) "
         "{ y = Conv(a, b) }", 36),
        ("g (float[1, 4, 5, 5] a) => (float y) { y = GlobalAveragePool(a) }", 25),
    ],
)  # fmt: skip
def test_how_many_terms_are_summed(tmp_path: Path, text: str, terms: int) -> None:
    found = node(tmp_path, text)
    assert depth(found) == terms
    assert relative_error(found) == pytest.approx(12 + terms**0.5)


def test_who_draws_random_numbers(tmp_path: Path) -> None:
    drawing = random_node(bound(tmp_path, models.RANDOM))
    assert drawing is not None and drawing.op_type == "RandomUniformLike"
    assert random_node(bound(tmp_path, models.RELU, batch=1)) is None


@pytest.mark.parametrize("version", [7, 9, 13, 18, 21, 22, 23, 24])
def test_every_opset_of_the_reference(tmp_path: Path, version: int) -> None:
    """Errors are made by operators that ONNX Runtime has at each of them."""
    text = (
        "g (float[4, 9] x, float[9, 6] w) => (float[4, 6] y)"
        "{ s = MatMul(x, w) t = Tanh(s) y = Add(t, s) }"
    )
    model = bound(tmp_path, text)
    model.opset_imports[""] = version
    random = np.random.default_rng(version)
    feeds = {
        "x": random.standard_normal((4, 9), np.float32),
        "w": random.standard_normal((9, 6), np.float32),
    }
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (exact,) = open_reference("ort", save(model, scratch), 1)(feeds)
    trials = disturbed("ort", model, scratch, 1, feeds)
    gaps = [abs(other - exact).max() for (other,) in trials]
    assert all(0 < gap < 1e-4 for gap in gaps)


def test_operators_of_others_have_errors() -> None:
    """Of which nobody knows what they do: as large as the largest result allows."""
    x = onnx_ir.Value(name="x", type=onnx_ir.TensorType(onnx_ir.DataType.FLOAT))
    x.shape = onnx_ir.Shape((4, 3))
    node = onnx_ir.Node("my.domain", "Mine", [x], name="mine")
    y = node.outputs[0]
    y.name = "y"
    graph = onnx_ir.Graph(
        [x], [y], nodes=[node], opset_imports={"": 22, "my.domain": 1}
    )
    made = with_errors(onnx_ir.Model(graph, ir_version=10))
    names = [n.op_type for n in made.graph]
    assert "Mine" in names and "ReduceMax" in names
    assert relative_error(node) > 2 * relative_error(onnx_ir.Node("", "Exp", [x]))


@pytest.mark.parametrize("shape", [None, (8,)])
def test_errors_are_numbers_whatever_they_are_added_to(
    tmp_path: Path, shape: tuple[int, ...] | None
) -> None:
    """Of the largest numbers and infinities in masks, too: a NaN would hide all."""
    kind = onnx_ir.DataType.FLOAT
    x, trial = (
        onnx_ir.Value(name=n, type=onnx_ir.TensorType(kind), shape=onnx_ir.Shape(s))
        for n, s in (("x", (8,)), (TRIAL, ()))
    )
    write = Writer("noise")
    y = signed_random(write, x, shape, trial, kind)
    y.type, y.shape = x.type, x.shape
    graph = onnx_ir.Graph([x, trial], [y], nodes=write.nodes, opset_imports={"": 17})
    path = save(onnx_ir.Model(graph, ir_version=8), tmp_path)
    most = np.finfo(np.float32).max
    values = np.array([-np.inf, np.inf, -most, most, 0, 1, 5000, -7], np.float32)
    run = open_reference("ort", path, 1)
    made = [run({"x": values, TRIAL: np.array(n, np.float32)})[0] for n in (1, 2)]
    assert all(np.isfinite(m).all() and (abs(m) <= 1).all() for m in made)
    assert (abs(made[0] - made[1]) > 0).all() and len(np.unique(made[0])) > 4
