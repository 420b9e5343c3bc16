"""A name of dimensions to which arrays give several sizes: it becomes several ones."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.frontend.symbol_places import places_by_size, renamed

MODEL = """<ir_version: 10, opset_import: ["" : 18]>
g (float[n, 4] a, float[n, 4] b, float[n] c) => (float[k] y, float[i, j] z, float[n] d)
{
    y = Concat <axis = 0> (a, b)
    t = Transpose (b)
    z = MatMul (a, t)
    d = Relu (c)
}"""


def arrays(rng: np.random.Generator, *sizes: int) -> dict[str, np.ndarray]:
    shapes = (sizes[0], 4), (sizes[1], 4), sizes[2:]
    return {
        name: rng.integers(-9, 9, shape).astype(np.float32)
        for name, shape in zip("abc", shapes, strict=True)
    }


def require_right(program: nanoloom.Program, given: dict[str, np.ndarray]) -> None:
    made = program(given)  # integers in floats: exact
    a, b, c = given.values()
    assert np.array_equal(made["y"], np.concatenate([a, b]))
    assert np.array_equal(made["z"], a @ b.T)
    assert np.array_equal(made["d"], np.maximum(c, 0))


def test_one_program_for_all_sizes(tmp_path: Path) -> None:
    program = nanoloom.compile(parser.parse_model(MODEL), cache=Cache(tmp_path))
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", nanoloom.ModelWarning)
        require_right(program, arrays(rng, 3, 3, 3))
        require_right(program, arrays(rng, 3, 5, 5))
        assert [x.shape for x in program.inputs] == [("n", 4), ("n.2", 4), ("n.2",)]
        for sizes in ((3, 5, 6), (2, 2, 2), (7, 1, 9), (5, 8, 8)):
            require_right(program, arrays(rng, *sizes))
        assert [x.shape for x in program.inputs] == [("n", 4), ("n.2", 4), ("n.3",)]
    assert program.open.reason == ""
    told = [str(w.message) for w in caught if "several" in str(w.message)]
    one = "a dimension of one name has several sizes: n is"
    assert told == [
        f"{one} 5 on axis 0 of input b, where it is called n.2; n is 5 on axis 0 of "
        "input c, where it is called n.2",
        f"{one} 6 on axis 0 of input c, where it is called n.3",
    ]


def test_numbers_for_each(tmp_path: Path) -> None:
    model, cache = parser.parse_model(MODEL), Cache(tmp_path)
    program = nanoloom.compile(model, cache=cache, dims={"n": 3, "n.2": 5})
    require_right(program, arrays(np.random.default_rng(0), 3, 5, 3))
    with pytest.raises(nanoloom.InputError, match="dimension n is 4 here and 3 in dim"):
        program(arrays(np.random.default_rng(0), 3, 5, 4))
    with pytest.raises(nanoloom.InputError, match=r"no dimension n\.4"):
        nanoloom.compile(model, cache=cache, dims={"n.4": 3})


def test_axes_of_one_input(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]> g (float[n, n] x) => (float[?] y)'
    model = parser.parse_model(text + "{ y = Transpose (x) }")
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    with pytest.warns(nanoloom.ModelWarning, match=r"5 on axis 1 .* is called n\.2"):
        assert np.array_equal(program({"x": x})["y"], x.T)


@pytest.mark.parametrize("seed", range(20))
def test_places_of_a_name_have_one_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names: list[int | str] = ["n", "m", "n.2", "k"]
    shapes = {
        f"x{i}": [names[j] for j in rng.integers(0, 4, rng.integers(0, 4))]
        for i in range(4)
    }
    apart: dict[tuple[str, int], str] = {}
    for _ in range(4):
        sizes = {x: rng.integers(1, 4, len(d)).tolist() for x, d in shapes.items()}
        before, apart = apart, places_by_size(shapes, apart, sizes)
        found: dict[int | str, set[int]] = {}
        for name, shape in renamed(shapes, apart).items():
            for d, size in zip(shape, sizes[name], strict=True):
                found.setdefault(d, set()).add(size)
        assert all(len(x) == 1 for x in found.values()), (shapes, sizes, apart)
        assert before.keys() <= apart.keys()


def test_the_model_stays_as_it_is(tmp_path: Path) -> None:
    model = parser.parse_model(MODEL)
    before = onnx.ModelProto.FromString(model.SerializeToString())
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    with pytest.warns(nanoloom.ModelWarning):
        require_right(program, arrays(np.random.default_rng(0), 2, 3, 4))
    assert model == before
