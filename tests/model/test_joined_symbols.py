"""Names of dimensions that are one where arrays give them one size."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.model.joined_symbols import first_axes, names_by_kind

OWN = """<ir_version: 10, opset_import: ["" : 18]>
g (float[u0, u1] a, float[u2, u3] b) => (float[u4, u5] y, float[u6, u7] z)
{
    y = Add (a, b)
    t = Transpose (b)
    z = MatMul (a, t)
}"""


def require_right(program: nanoloom.Program, a: np.ndarray, b: np.ndarray) -> None:
    made = program({"a": a, "b": b})  # integers in floats: exact
    assert np.array_equal(made["y"], a + b)
    assert np.array_equal(made["z"], a @ b.T)


def integers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-9, 9, shape).astype(np.float32)


def test_own_name_for_each_dimension(tmp_path: Path) -> None:
    """As exporters of TensorFlow write them: one program, compiled once."""
    program = nanoloom.compile(parser.parse_model(OWN), cache=Cache(tmp_path))
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", nanoloom.ModelWarning)
        for n, k in ((3, 7), (1, 7), (5, 2), (4, 4)):
            require_right(program, integers(rng, n, k), integers(rng, n, k))
        assert program.open.reason == ""
        assert [x.shape for x in program.inputs] == [("u0", "u1"), ("u0", "u1")]
        # Broadcast: what was one is several again, and sizes are none of one program.
        for other in (1, 3, 1, 3):
            require_right(program, integers(rng, 3, 5), integers(rng, other, 5))
        assert [x.shape for x in program.inputs] == [("u0", "u1"), ("u2", "u3")]


def test_more_names_than_are_told_apart(tmp_path: Path) -> None:
    """Keys and values of many layers, each with a past and a batch of its own."""
    count = 9
    nodes = [helper.make_node("Concat", [f"x{i}", "new"], [f"c{i}"], axis=1)
             for i in range(count)]  # fmt: skip
    nodes.append(helper.make_node("Sum", [f"c{i}" for i in range(count)], ["y"]))
    made = [(f"x{i}", [f"b{i}", f"p{i}", 5]) for i in range(count)]
    made.append(("new", ["b", "n", 5]))
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in made]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None, None])
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, [y]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    rng = np.random.default_rng(1)
    for batch, past, new in ((2, 6, 6), (3, 4, 1), (1, 9, 2)):
        given = {n: integers(rng, batch, past, 5) for n, _ in made[:-1]}
        given["new"] = integers(rng, batch, new, 5)
        pasts = sum(given[f"x{i}"] for i in range(count))
        wanted = np.concatenate([pasts, count * given["new"]], axis=1)
        assert np.array_equal(program(given)["y"], wanted)
    assert program.open.reason == ""
    # Of one size in the first call alone: they are two since the second.
    assert [x.shape for x in program.inputs][-2:] == [("b0", "p0", 5), ("b0", "n", 5)]


@pytest.mark.parametrize("dims", [{"u2": 3}, {"u2": (1, 8)}])
def test_what_a_user_names_stays(tmp_path: Path, dims: dict[str, Any]) -> None:
    model = parser.parse_model(OWN)
    program = nanoloom.compile(model, cache=Cache(tmp_path), dims=dims)
    rng = np.random.default_rng(2)
    require_right(program, integers(rng, 3, 4), integers(rng, 3, 4))
    with pytest.raises(nanoloom.InputError, match="u2"):
        program({"a": integers(rng, 9, 4), "b": integers(rng, 9, 4)})


def test_others_take_a_name_that_is_in_an_expression(tmp_path: Path) -> None:
    """Of a mask of past + 1 words, keys and values: torch.compile has no equal sizes
    of what attention reads."""
    shapes: dict[str, list[str | int]] = {
        "mask": ["b", "p + 1"], "k": ["p", 5], "v": ["q", 5], "new": [1, 5],
    }  # fmt: skip
    nodes = [
        helper.make_node("Concat", ["k", "new"], ["ks"], axis=0),
        helper.make_node("Concat", ["v", "new"], ["vs"], axis=0),
        helper.make_node("MatMul", ["mask", "ks"], ["a"]),
        helper.make_node("MatMul", ["mask", "vs"], ["c"]),
        helper.make_node("Sub", ["a", "c"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
             for n, s in (*shapes.items(), ("y", [None, None]))]  # fmt: skip
    model = helper.make_model(
        helper.make_graph(nodes, "g", infos[:-1], infos[-1:]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    rng = np.random.default_rng(4)
    for batch, past in ((2, 6), (3, 7), (1, 1)):
        sizes = {"b": batch, "p": past, "q": past, "p + 1": past + 1}
        extents = {n: [sizes[d] if isinstance(d, str) else d for d in shape]
                   for n, shape in shapes.items()}  # fmt: skip
        given = {n: integers(rng, *extent) for n, extent in extents.items()}
        wanted = given["mask"][:, :-1] @ (given["k"] - given["v"])
        assert np.array_equal(program(given)["y"], wanted)
    assert program.open.reason == ""
    assert [x.shape for x in program.inputs][1:3] == [("p", 5), ("p", 5)]


def test_expressions_and_their_names_stay() -> None:
    shapes = {"mask": ("b", "past + n"), "key": ("c", 2, "past"), "x": ("d", "m")}
    assert first_axes(shapes, {"m"}) == {"b": 0, "c": 0, "d": 0, "past": 2}
    two = {"m": ("p + 1", "q + 1"), "k": ("p", 2), "v": ("q", 2), "w": ("r", 2)}
    alike = dict.fromkeys(first_axes(two, ()), (0, 7))
    assert names_by_kind(two, alike) == {"p": "p", "q": "q", "r": "p"}
