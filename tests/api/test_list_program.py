"""Models whose inputs are lists of arrays, or may be left out."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.api.list_program import ListProgram
from nanoloom.cache import Cache
from nanoloom.errors import Error, InputError, ModelError, Unsupported

Array = np.ndarray
JOINED = """g (seq(float[n,3]) x, float[1,3] s)
=> (float[m,3] y, int64 k, seq(float[b,3]) z) {
    y = ConcatFromSequence<axis = 0>(x)
    k = SequenceLength(x)
    z = SequenceInsert(x, s)
}"""
OPTIONAL = """g (optional(float[n]) x) => (bool has, float[m] y) {
    has = OptionalHasElement(x)
    y = If(has) <
      then_branch = t () => (float[n] a) { a = OptionalGetElement(x) },
      else_branch = e () => (float[1] b) { b = Constant<value = float[1] {7.0}>() }
    >
}"""
OPTIONAL_LIST = """g (optional(seq(float[n])) x, float[2] d) => (float[m] y) {
    has = OptionalHasElement(x)
    y = If(has) <
      then_branch = t () => (float[m] a) {
        s = OptionalGetElement(x)
        a = ConcatFromSequence<axis = 0>(s)
      },
      else_branch = e () => (float[2] b) { b = Identity(d) }
    >
}"""
COUNTED = "g (seq(float[n]) x) => (int64 k) { k = SequenceLength(x) }"
STRINGS = "g (seq(string[n]) x) => (int64 k) { k = SequenceLength(x) }"


def compiled(text: str) -> nanoloom.Program:
    head = '<ir_version: 8, opset_import: ["": 18]>'
    model = onnx.parser.parse_model(f"{head}\n{text}")
    return nanoloom.compile(model, cache=Cache.temporary())


def drawn(seed: int, *rows: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, 3)).astype(np.float32) for n in rows]


@pytest.mark.filterwarnings("ignore:shapes that the model declares")
def test_lists_of_any_length() -> None:
    """Each array has its own size; what comes out is a list, too."""
    program, s = compiled(JOINED), np.ones((1, 3), np.float32)
    assert isinstance(program, ListProgram)
    assert "x list float32 nx3" in repr(program)
    for seed, rows in enumerate([(2, 1), (3,), (1, 4, 2), (2, 2)]):
        x = drawn(seed, *rows)
        made = program({"x": x, "s": s})
        np.testing.assert_array_equal(made["y"], np.concatenate(x))
        assert made["k"] == len(rows)
        assert len(made["z"]) == len(rows) + 1
        for one, other in zip(made["z"], [*x, s], strict=True):
            np.testing.assert_array_equal(one, other)
    again = pickle.loads(pickle.dumps(program))
    x = drawn(9, 2, 3)
    np.testing.assert_array_equal(again(x=tuple(x), s=s)["y"], np.concatenate(x))


def test_an_optional_array() -> None:
    program, x = compiled(OPTIONAL), np.arange(4, dtype=np.float32)
    given = program({"x": x})
    assert given["has"] and given["y"].tolist() == [0, 1, 2, 3]
    for nothing in ({}, {"x": None}):
        made = program(nothing)
        assert not made["has"] and made["y"].tolist() == [7]


def test_an_optional_list() -> None:
    program, d = compiled(OPTIONAL_LIST), np.float32([5, 6])
    x = [np.float32([1]), np.float32([2, 3])]
    assert program({"x": x, "d": d})["y"].tolist() == [1, 2, 3]
    assert program({"d": d})["y"].tolist() == [5, 6]


def test_an_empty_list() -> None:
    assert compiled(COUNTED)({"x": []})["k"] == 0
    with pytest.raises(ModelError, match="its sequence is empty, so there is nothing"):
        compiled(JOINED)({"x": [], "s": np.ones((1, 3), np.float32)})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"x": np.ones((2, 3))},
            "input x: is a ndarray, the model wants a list of arr",
        ),
        (
            {"x": [np.ones((2, 3))]},
            r"input x\[0\]: is float64, the model wants float32",
        ),
        ({}, "inputs: x is missing; the model takes x"),
        ({"x": [], "q": 1}, "inputs: q is not one of them"),
    ],
)
def test_what_is_no_list(given: dict[str, Any], said: str) -> None:
    feeds = {"s": np.ones((1, 3), np.float32), **given}
    with pytest.raises(InputError, match=said):
        compiled(JOINED)(feeds)


def test_what_cannot_take_lists(tmp_path: Path) -> None:
    program = compiled(JOINED)
    said = "cannot take lists of arrays, or arrays that may be left out, as input x is"
    with pytest.raises(Error, match=f"a saved program {said}; call the model from"):
        program.save(tmp_path / "p.so")
    with pytest.raises(Error, match=f"a session {said}"):
        program.session()
    assert not list(tmp_path.iterdir())
    with pytest.raises(Unsupported, match="looks into strings"):
        compiled(STRINGS)


def test_branches_of_several_lengths() -> None:
    """An If is compiled for either way, where its condition comes in."""
    program = compiled("""g (float[n] x, bool c) => (seq(float[b]) z, float[m] y) {
        z = If(c) <
          then_branch = t () => (seq(float[n]) a) { a = SequenceConstruct(x, x) },
          else_branch = e () => (seq(float[n]) b) { b = SequenceConstruct(x) }
        >
        y = ConcatFromSequence<axis = 0>(z)
    }""")
    x = np.float32([1, 2])
    for condition, count in ((True, 2), (False, 1), (True, 2)):
        made = program({"x": x, "c": np.array(condition)})
        assert [part.tolist() for part in made["z"]] == [[1, 2]] * count
        assert made["y"].tolist() == [1, 2] * count


def test_lists_are_made_of_the_same_arrays_without_another_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call like the one before goes straight to the code, lists or not."""
    program = compiled("""g (float[n] x) => (float[n] y, seq(float[n]) z) {
        y = Neg(x)
        z = SequenceConstruct(x, y)
    }""")
    x = np.arange(5, dtype=np.float32)
    first = program({"x": x})
    monkeypatch.setattr(program, "checked", None)
    again = program({"x": x + 1})
    for made, given in ((first, x), (again, x + 1)):
        assert list(made) == ["y", "z"] and len(made["z"]) == 2
        assert (made["y"] == -given).all() and (made["z"][0] == given).all()
        assert (made["z"][1] == -given).all()
