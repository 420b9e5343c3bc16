"""One compilation, every size: what comes out is what ONNX's reference says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom import compile_open, compiler
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from tests.dynamic import models

SIZES = ((1, 1), (2, 3), (3, 17), (1, 64), (5, 9), (1, 300), (4, 33))


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the ways in which models are compiled."""
    found: list[str] = []

    def counted(module: ModuleType, name: str) -> None:
        whole: Callable[..., object] = getattr(module, name)

        def count(*given: object) -> object:
            found.append(name)
            return whole(*given)

        monkeypatch.setattr(module, name, count)

    counted(compiler, "compile_model")
    counted(compile_open, "compile_open")
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_attention(tmp_path: Path, threads: int, compilations: list[str]) -> None:
    model = models.attention()
    program = nanoloom.compile(model, threads=threads, cache=Cache(tmp_path))
    for batch, length in SIZES:
        given = models.inputs(model, {"batch": batch, "length": length})
        made, wanted = program(given), models.wanted(model, given)
        for name, y in wanted.items():
            # 32 products and a sum of `length` of them, of numbers of about 4.
            assert np.abs(made[name] - y).max() <= 2e-5, (batch, length, name)
            assert np.abs(y).max() > 0.1
    assert not program.open.reason
    assert compilations == ["compile_open"]


def test_any_number_of_rows(tmp_path: Path, compilations: list[str]) -> None:
    """Every rest of a register tile."""
    model = models.rows()
    program = nanoloom.compile(model, threads=2, cache=Cache(tmp_path))
    w, c = (onnx.numpy_helper.to_array(x) for x in model.graph.initializer[:2])
    for n in (*range(1, 40), 100, 333):
        x = models.inputs(model, {"n": n})["x"]
        made = program({"x": x})
        exact = np.maximum(x.astype(np.float64) @ w + c, 0)
        bound = 40 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(w) + np.abs(c))
        assert (np.abs(made["y"] - exact) <= bound).all(), n
        assert made["s"].shape == (n,)
        assert (np.abs(made["s"] - exact.sum(1)) <= 60 * bound.sum(1)).all(), n
    assert compilations == ["compile_open"]


def test_no_rows(tmp_path: Path, compilations: list[str]) -> None:
    """Nothing is a variant of its own."""
    program = nanoloom.compile(models.rows(), threads=1, cache=Cache(tmp_path))
    assert program({"x": np.zeros((0, 37), np.float32)})["y"].shape == (0, 50)
    assert compilations == ["compile_model"]


def test_a_bug_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model runs all the same, and the next process tries again."""

    def fail(*_: object) -> None:
        raise LookupError("some bug")

    model = models.rows()
    with monkeypatch.context() as patch:
        patch.setattr(compile_open, "dynamic_program", fail)
        program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
        with pytest.warns(RuntimeWarning, match="a bug of nanoloom .LookupError"):
            assert program(models.inputs(model, {"n": 3}))["y"].shape == (3, 50)
    assert "some bug" in program.open.reason
    again = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    assert again(models.inputs(model, {"n": 3}))["y"].any() and not again.open.reason


def test_same_bits_as_the_variant(tmp_path: Path) -> None:
    model = models.rows()
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    two = nanoloom.compile(model, threads=2, cache=Cache(tmp_path))
    given = models.inputs(model, {"n": 131})
    own = program.variant_of({"x": (131, 37)}, {})(given)
    for made in (program(given), two(given)):
        assert all((made[name] == y).all() for name, y in own.items())


def test_sizes_beyond_a_table(tmp_path: Path) -> None:
    """300 positions: a length of 301 is refused as its own variant refuses it."""
    model = models.attention()
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    with pytest.raises(nanoloom.Error, match=r"do not fit|broadcast"):
        program(models.inputs(model, {"batch": 1, "length": 301}))
    given = models.inputs(model, {"batch": 1, "length": 300})
    assert program(given)["y"].shape == (1, 300, 32)


def test_indices_outside_are_found_at_every_size(tmp_path: Path) -> None:
    model = models.attention()
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for length in (2, 40):
        given = models.inputs(model, {"batch": 2, "length": length})
        given["words"][1, length - 1] = 50
        with pytest.raises(InputError, match=r"50 is outside -50\.\.49"):
            program(given)


def test_a_bound_dimension_is_a_number(tmp_path: Path, compilations: list[str]) -> None:
    model = models.attention()
    cache = Cache(tmp_path)
    one = nanoloom.compile(model, threads=1, dims={"batch": 2}, cache=cache)
    for length in (5, 8):
        given = models.inputs(model, {"batch": 2, "length": length})
        y = models.wanted(model, given)["y"]
        assert np.abs(one(given)["y"] - y).max() <= 2e-5
    assert one.open.names == ("length",) and compilations == ["compile_open"]


PAST = """
g (float[batch, past, 8] p, float[batch, new, 8] x, float[batch, total] mask)
    => (float[batch, all, 8] y, int64[new] places)
{
    c = Concat<axis = 1>(p, x)
    axes = Constant<value = int64[1] {2}>()
    m = Unsqueeze(mask, axes)
    y = Mul(c, m)
    one = Constant<value = int64 {1}>()
    before = Shape<start = 1, end = 2>(p)
    behind = Shape<start = 1, end = 2>(c)
    zero = Constant<value = int64[1] {0}>()
    first = Squeeze(before, zero)
    last = Squeeze(behind, zero)
    places = Range(first, last, one)
}
"""


@pytest.mark.parametrize("known", [{}, {"new": 1}])
def test_expressions_of_dimensions(
    tmp_path: Path, compilations: list[str], known: dict[str, int]
) -> None:
    """A mask of past + new, and places that begin at a size."""
    model = onnx.parser.parse_model(models.HEAD + PAST)
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "past + new"
    program = nanoloom.compile(model, threads=1, dims=known, cache=Cache(tmp_path))
    given: dict[str, np.ndarray] = {}
    for past, new in ((5, 1), (9, 1)) if known else ((5, 1), (3, 4)):
        given = {
            "p": np.ones((2, past, 8), np.float32),
            "x": np.full((2, new, 8), 2, np.float32),
            "mask": np.arange(2 * (past + new), dtype=np.float32).reshape(2, -1),
        }
        made = program(given)
        wanted = np.concatenate((given["p"], given["x"]), 1) * given["mask"][..., None]
        assert (made["y"] == wanted).all()
        assert made["places"].tolist() == [*range(past, past + new)]
    with pytest.raises(nanoloom.Error, match=r"past \+ new is given as 8"):
        program(given | {"mask": np.zeros((2, 8), np.float32)})
    assert compilations == ["compile_open"] and not program.open.reason


BEFORE = """
g (float[batch, length, 8] x) => (float[batch, length, 8] y)
{
    front = Constant<value = int64[6] {0, 1, 0, 0, 0, 0}>()
    none = Constant<value = float {3}>()
    p = Pad(x, front, none)
    first = Constant<value = int64[1] {0}>()
    last = Constant<value = int64[1] {-1}>()
    one = Constant<value = int64[1] {1}>()
    before = Slice(p, first, last, one)
    y = Sub(x, before)
}
"""


def test_pads_of_a_length(tmp_path: Path, compilations: list[str]) -> None:
    """Each row less the one before it, the first less 3."""
    model = onnx.parser.parse_model(models.HEAD + BEFORE)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for batch, length in SIZES:
        x = models.inputs(model, {"batch": batch, "length": length})["x"]
        rows = np.concatenate((np.full((batch, 1, 8), 3, np.float32), x), 1)
        assert (program({"x": x})["y"] == np.diff(rows, axis=1)).all()
    assert compilations == ["compile_open"] and not program.open.reason


def test_the_next_process_reads_it(tmp_path: Path, compilations: list[str]) -> None:
    model = models.rows()
    for n in (3, 4):
        program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
        assert program(models.inputs(model, {"n": n}))["y"].shape == (n, 50)
    assert compilations == ["compile_open"]
