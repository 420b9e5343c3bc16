"""Calls with the arrays that the last one had: what they skip must not be missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model

import nanoloom
from nanoloom.errors import Error, InputError

ADD = """
<ir_version: 10, opset_import: ["": 21]>
add (float[{n},3] x, float[{n},3] z) => (float[{n},3] y) {{ y = Add(x, z) }}
"""
REPEAT = """
<ir_version: 10, opset_import: ["": 21]>
repeat (float[2] x, int64[1] n) => (float[m] y) { y = Tile(x, n) }
"""
Call = Any  # a program in memory, or one that was saved and loaded


def sample(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, 3)).astype("f")


@pytest.fixture(params=["compiled", "saved"])
def call(request: pytest.FixtureRequest, tmp_path: Path) -> Call:
    program = nanoloom.compile(parse_model(ADD.format(n="n")))
    if request.param == "compiled":
        return program
    return nanoloom.load(program.save(tmp_path / "add.so"))


def test_other_arrays_behind_the_same_ones(call: Call) -> None:
    """New numbers, other sizes, the first ones again; outputs are never shared."""
    made = []
    for rows, seed in [(4, 0), (4, 1), (7, 2), (4, 3), (7, 4), (7, 5), (1, 6)]:
        x, z = sample(rows, seed), sample(rows, seed + 10)
        made.append((call({"x": x, "z": z})["y"], x + z))
    for found, right in made:
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (sample(4).astype("d"), "float64"),
        (sample(4)[:, :2], "4x2"),
        (sample(4).ravel(), "float32 12"),
        (np.ma.masked_array(sample(4)), "masked"),
        (sample(5), "dimension n is 5 here and 4 in input x"),
        ("text", "is a str"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_as_before(call: Call, wrong: object, said: str) -> None:
    right = {"x": sample(4), "z": sample(4, 1)}
    expected = call(right)["y"]
    if said.startswith("dimension") and isinstance(call, nanoloom.Program):
        return  # a name that two inputs give different sizes becomes two
    with pytest.raises(InputError, match=said):
        call({"x": sample(4), "z": wrong})
    np.testing.assert_array_equal(call(right)["y"], expected)


@pytest.mark.drawn
@pytest.mark.parametrize("names", [("x",), ("x", "w"), ("x", "z", "w")])
def test_names_are_those_of_the_inputs(call: Call, names: tuple[str, ...]) -> None:
    call({"x": sample(4), "z": sample(4)})
    with pytest.raises(InputError, match=r"missing|not one of them"):
        call(dict.fromkeys(names, sample(4)))


def test_arrays_of_other_kinds_are_taken(call: Call) -> None:
    """What lies otherwise, a list, a subclass, a mapping that is no dict."""
    from types import MappingProxyType

    x, z = sample(4), sample(4, 1)
    call({"x": x, "z": z})
    turned = np.asfortranarray(z)
    part = np.repeat(z, 2, 0)[::2]
    view = z.view(type("Own", (np.ndarray,), {}))
    for other in (turned, part, view, z.tolist()):
        np.testing.assert_array_equal(call({"x": x, "z": other})["y"], x + z)
    given = MappingProxyType({"x": x, "z": z})
    np.testing.assert_array_equal(call(given)["y"], x + z)


def test_values_that_decide_shapes_are_looked_at_each_time() -> None:
    program, x = nanoloom.compile(parse_model(REPEAT)), np.array([1, 2], "f")
    for count in (2, 2, 3, 1, 2):
        made = program({"x": x, "n": np.array([count])})["y"]
        np.testing.assert_array_equal(made, np.tile(x, count))


def test_a_closed_program_is_not_called(tmp_path: Path) -> None:
    path = nanoloom.compile(parse_model(ADD.format(n=4))).save(tmp_path / "add.so")
    given = {"x": sample(4), "z": sample(4)}
    with nanoloom.load(path) as loaded:
        loaded(given)
    with pytest.raises(Error, match="closed"):
        loaded(given)
