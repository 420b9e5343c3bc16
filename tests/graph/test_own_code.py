"""Constants that the compiler's own code computes, while a model is compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom import compiler, run_constant
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.graph import own_code
from nanoloom.graph.folding import EXACT, ROUNDED
from nanoloom.graph.own_evaluation import RULES
from nanoloom.target import by_name
from tests.fuzz.recipes.table import RECIPES
from tests.graph import sweep
from tests.linalg.single import model_of

EPS, SEED = 2.0**-23, 11


def f(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


# The operator, its inputs, its attributes, and how many numbers a result is a sum of.
CASES: dict[str, tuple[list[Any], dict[str, Any], int]] = {
    "ConvTranspose": ([f(1, 2, 5, 6), f(2, 3, 3, 3)], {}, 18),
    "GridSample": ([f(1, 2, 5, 6), f(1, 3, 4, 2)], {}, 4),
    "LSTM": ([f(5, 2, 3), f(1, 16, 3), f(1, 16, 4)], {"hidden_size": 4}, 35),
    # ONNX's reference has the last window's numbers elsewhere.
    "LpPool": ([f(1, 2, 7, 8)], {"kernel_shape": [1, 3], "strides": [1, 2], "p": 3,
                                 "ceil_mode": 1}, 12),
    "MaxPool": ([f(1, 2, 6, 6)], {"kernel_shape": [2, 2]}, 1),
    "Resize": ([f(1, 9, 8), None, None, np.array([1, 7, 5])], {"mode": "cubic"}, 16),
    "SoftmaxCrossEntropyLoss": ([f(3, 5), np.array([0, 1, 4])], {}, 15),
}  # fmt: skip


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that run while compiling, from now on."""
    ran: list[str] = []
    real = compiler.run_once

    def run_once(compile_model: Any, model: Any, feeds: Any) -> Any:
        ran.append(model.graph.node[0].op_type)
        return real(compile_model, model, feeds)

    monkeypatch.setattr(compiler, "run_once", run_once)
    monkeypatch.setattr(own_code, "COMPUTED", type(own_code.COMPUTED)())
    return ran


@pytest.mark.parametrize("operator", CASES)
def test_a_constant_is_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str
) -> None:
    """It is what the same numbers give as inputs, and no kernel of the program's."""
    inputs, attributes, terms = CASES[operator]
    places = [i for i, x in enumerate(inputs) if x is not None]
    ran = counted(monkeypatch)
    model, feeds = model_of(operator, inputs, attributes, constants=places)
    program = nanoloom.compile(model, cache=Cache(tmp_path), threads=1)
    constant = program(feeds)["y0"]
    assert ran == [operator]
    model, feeds = model_of(operator, inputs, attributes, constants=places[1:])
    right = nanoloom.compile(model, cache=Cache(tmp_path), threads=1)(feeds)["y0"]
    assert ran == [operator]
    assert constant.shape == right.shape and constant.dtype == right.dtype
    most = max(abs(x).max() for x in inputs if x is not None and x.dtype == "f")
    assert (abs(constant - right) <= terms * EPS * max(most, 1) ** 2).all()
    assert abs(right).max() > 0.1


@pytest.mark.parametrize(("side", "folds"), [(2, True), (20, False)])
def test_only_what_takes_more_memory_than_its_parts_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: int, folds: bool
) -> None:
    """A large standardized weight is computed, a large table of few numbers not."""
    monkeypatch.setattr(own_code, "MOST", 4)
    ran = counted(monkeypatch)
    sizes = np.array([1, side, 2])
    inputs = [f(1, 2, 2), None, None, sizes]
    model, feeds = model_of("Resize", inputs, {}, constants=[0, 3])
    nanoloom.compile(model, cache=Cache(tmp_path), threads=1)(feeds)
    assert bool(ran) == folds


OTHERS = sorted(
    name
    for name in RECIPES.keys() - EXACT - ROUNDED.keys() - RULES.keys()
    if "." not in name and name not in ("If", "Loop", "Scan")
)


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("operator", OTHERS)
def test_random_constants(tmp_path: Path, operator: str) -> None:
    """Of every operator that the reference does not fold: as the same inputs give."""
    case = sweep.drawn(operator, SEED)
    if case is None:
        return  # of other opsets
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    del model.graph.input[:]
    for name, array in case.feeds.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    try:
        wanted = nanoloom.compile(case.model, cache=Cache(tmp_path))(case.feeds)
    except Error:
        return  # what is drawn need not be taken
    found = nanoloom.compile(model, cache=Cache(tmp_path))({})
    for name, right in wanted.items():
        assert found[name].shape == right.shape and found[name].dtype == right.dtype
        if right.dtype.kind == "f":
            most = float(np.nanmax(abs(right[np.isfinite(right)]), initial=1))
            eps = float(np.finfo(right.dtype).eps)
            np.testing.assert_allclose(found[name], right, 0, 64 * eps * most)
        else:
            np.testing.assert_array_equal(found[name], right)


@pytest.mark.parametrize("operator", ["RandomNormalLike", "Bernoulli"])
def test_random_numbers_are_no_constants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str
) -> None:
    ran = counted(monkeypatch)
    model, feeds = model_of(operator, [abs(f(3, 5)) % 1], {}, constants=[0])
    nanoloom.compile(model, cache=Cache(tmp_path), threads=1)(feeds)
    assert ran == []


def test_an_index_out_of_range_is_refused_as_before(tmp_path: Path) -> None:
    inputs = [f(3, 5), np.array([0, 1, 9])]
    model, feeds = model_of("SoftmaxCrossEntropyLoss", inputs, {}, constants=[0, 1])
    with pytest.raises(Error, match="target"):
        nanoloom.compile(model, cache=Cache(tmp_path), threads=1)(feeds)


def test_constants_do_not_depend_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever CPU compiles, its instructions do not decide how sums are rounded."""
    taken: list[str] = []
    inputs, attributes, _ = CASES["ConvTranspose"]
    model, feeds = model_of("ConvTranspose", inputs, attributes, constants=[1])

    def compiled(given: Any, options: Any, *rest: Any) -> Any:
        taken.append(options.target.name)
        return compiler.compile_model(given, options, *rest)

    found = [
        run_constant.run_once(compiled, model, feeds)["y0"].tobytes()
        for name in ("x86-64-v2", "x86-64-v3")
        if not monkeypatch.setattr(run_constant, "host", lambda _, n=name: by_name(n))
    ]
    assert taken == ["x86-64-v1"] * 2
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["w", "ww", "www", "wwww"])
def test_bytes_that_begin_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A file's tensors are not aligned; their constants are computed nevertheless."""
    ran = counted(monkeypatch)
    random = np.random.default_rng(4)
    w, one = random.standard_normal((64, 48), np.float32), np.ones(48, np.float32)
    model = onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": 18]>
    normal (float[64, 48] x) => (float[64, 48] y) {{
      b, m, v = BatchNormalization <training_mode = 1> ({name}, one, zero, zero, one)
      y = Add(x, b)
    }}""")
    for key, array in {name: w, "one": one, "zero": 0 * one}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, key))
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    got = program.run({"x": 0 * w})["y"]
    assert ran == ["BatchNormalization"]
    want = (w - w.mean(0)) / np.sqrt(w.var(0) + 1e-5)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)
    assert len(program.variant({"x": w}).library.steps) == 1
