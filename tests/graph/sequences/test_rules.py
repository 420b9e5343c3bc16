"""Sequences and optionals against lists of arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache

HEAD = '<ir_version: 10, opset_import: ["" : 18]> g (float[6, 4] x, int64 k) => '
X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
Lists = dict[str, list[np.ndarray]]


def program(text: str, tmp_path: Path) -> nanoloom.Program:
    return nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))


def numbers(rng: np.random.Generator, name: str, n: int) -> str:
    return f"{name} = Constant <value = int64 {{{n}}}> ()"


def drawn(rng: np.random.Generator, steps: int) -> tuple[list[str], Lists]:
    """Nodes that change sequences, and what each of these is."""
    nodes = ["s0 = SequenceConstruct (x)"]
    lists: Lists = {"s0": [X]}
    for step in range(1, steps):
        name = f"s{step}"
        old = list(lists)[int(rng.integers(len(lists)))]
        values = list(lists[old])
        kind = int(rng.integers(5))
        if kind == 0:
            axis, each = int(rng.integers(2)), int(rng.integers(1, 5))
            nodes.append(numbers(rng, f"n{step}", each))
            nodes.append(f"{name} = SplitToSequence <axis = {axis}> (x, n{step})")
            cuts = range(each, X.shape[axis], each)
            values = np.split(X, cuts, axis)
        elif kind == 1:
            nodes.append(f"{name} = SplitToSequence <axis = 0, keepdims = 0> (x)")
            values = list(X)
        elif kind == 2:
            at = int(rng.integers(-len(values), len(values) + 1))
            nodes.append(numbers(rng, f"n{step}", at))
            nodes.append(f"m{step} = Neg (x)")
            nodes.append(f"{name} = SequenceInsert ({old}, m{step}, n{step})")
            values.insert(at, -X)  # -1: in front of the last one
        elif kind == 3 and values:
            at = int(rng.integers(-len(values), len(values)))
            nodes.append(numbers(rng, f"n{step}", at))
            nodes.append(f"{name} = SequenceErase ({old}, n{step})")
            del values[at]
        else:
            nodes.append(
                f"{name} = SequenceMap ({old}) <body = b{step} (float[?] q{step}) => "
                f"(float[?] r{step}) {{ r{step} = Abs (q{step}) }}>"
            )
            values = [np.abs(v) for v in values]
        lists[name] = values
    return nodes, lists


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(10))
def test_any_changes(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    nodes, lists = drawn(rng, 7)
    nodes += ["y = Neg (x)", *(f"c{s} = SequenceLength ({s})" for s in lists)]
    outputs = [f"seq(float[?]) {s}, int64 c{s}" for s in lists]
    text = f"{HEAD} ({', '.join(outputs)}, float[6, 4] y) {{ {' '.join(nodes)} }}"
    made = program(text, tmp_path)({"x": X, "k": np.array(0)})
    assert np.array_equal(made["y"], -X)
    for name, values in lists.items():
        assert made[f"c{name}"] == len(values)
        assert isinstance(made[name], list)
        for one, other in zip(made[name], values, strict=True):
            assert one.shape == other.shape and np.array_equal(one, other)


@pytest.mark.drawn
@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
@pytest.mark.parametrize("new", [0, 1])
def test_joined(axis: int, new: int, tmp_path: Path) -> None:
    text = f"""{HEAD} (float[?] y) {{
        n = Neg (x)
        s = SequenceConstruct (x, n, x)
        y = ConcatFromSequence <axis = {axis}, new_axis = {new}> (s)
    }}"""
    made = program(text, tmp_path)({"x": X, "k": np.array(0)})["y"]
    whole = np.stack if new else np.concatenate
    assert np.array_equal(made, whole([X, -X, X], axis))


@pytest.mark.parametrize("keeps", [0, 1])
def test_a_place_at_run_time(keeps: int, tmp_path: Path) -> None:
    text = f"""{HEAD} (float[?] y) {{
        s = SplitToSequence <axis = 0, keepdims = {keeps}> (x)
        y = SequenceAt (s, k)
    }}"""
    made = program(text, tmp_path)
    for k in (0, 3, 5, -1, -6):
        right = X[[k]] if keeps else X[k]
        assert np.array_equal(made({"x": X, "k": np.array(k)})["y"], right)
    with pytest.raises(nanoloom.InputError, match=r"index 6 is outside -6\.\.5"):
        made({"x": X, "k": np.array(6)})


@pytest.mark.parametrize("given", ["x", ""])
def test_optionals(given: str, tmp_path: Path) -> None:
    text = f"""{HEAD} (float[6, 4] y, bool h) {{
        o = Optional <type = optional(float[6, 4])> ({given})
        h = OptionalHasElement (o)
        y = If (h) <
            then_branch = a () => (float[6, 4] p) {{ p = OptionalGetElement (o) }},
            else_branch = b () => (float[6, 4] q) {{ q = Neg (x) }}>
    }}"""
    made = program(text, tmp_path)({"x": X, "k": np.array(0)})
    assert made["h"] == bool(given)
    assert np.array_equal(made["y"], X if given else -X)


@pytest.mark.parametrize("limit", [0, 9])
def test_branches_that_give_sequences(limit: int, tmp_path: Path) -> None:
    text = f"""{HEAD} (float[?] y) {{
        limit = Constant <value = int64 {{{limit}}}> ()
        on = Less (k, limit)
        s, t = If (on) <
            then_branch = a () => (seq(float[6, 4]) p, float[6, 4] u) {{
                u = Neg (x) p = SequenceConstruct (x, u) }},
            else_branch = b () => (seq(float[6, 4]) q, float[6, 4] v) {{
                v = Abs (x) q = SequenceConstruct (v, x) }}>
        w = SequenceInsert (s, t)
        y = ConcatFromSequence <axis = 0> (w)
    }}"""
    made = program(text, tmp_path)({"x": X, "k": np.array(4)})["y"]
    right = [X, -X, -X] if limit else [np.abs(X), X, np.abs(X)]
    assert np.array_equal(made, np.concatenate(right))


REFUSED = {
    "place 3 of a sequence that has 2": "s = SequenceConstruct (x, x)"
    " n = Constant <value = int64 {3}> () y = SequenceAt (s, n)",
    "its sequence is empty": "s = SequenceEmpty ()"
    " y = ConcatFromSequence <axis = 0> (s)",
    "its optional holds nothing": "o = Optional <type = optional(float[6, 4])> ()"
    " y = OptionalGetElement (o)",
    r"splits 6 places into \[4, 1\]": "n = Constant <value = int64[2] {4, 1}> ()"
    " s = SplitToSequence <axis = 0> (x, n) y = ConcatFromSequence <axis = 0> (s)",
    "sequence of 1 tensor .* sequence of 2": "z = Constant <value = int64 {1}> ()"
    " on = Less (k, z) f = ReduceMax <keepdims = 0> (x) big = Greater (f, f)"
    " s = If (big) <then_branch = a () => (seq(float[6, 4]) p) {"
    " p = SequenceConstruct (x) }, else_branch = b () => (seq(float[6, 4]) q) {"
    " q = SequenceConstruct (x, x) }> y = ConcatFromSequence <axis = 0> (s)",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be(words: str, tmp_path: Path) -> None:
    text = f"{HEAD} (float[?] y) {{ {REFUSED[words]} }}"
    with pytest.raises(nanoloom.Error, match=words):
        program(text, tmp_path)({"x": X, "k": np.array(0)})


@pytest.mark.parametrize("inner", ["z", "s[0]", "s[1]"])
def test_outputs_of_branches(inner: str, tmp_path: Path) -> None:
    text = f"""{HEAD} (seq(float[6, 4]) s) {{
        limit = Constant <value = int64 {{3}}> ()
        z = Neg (x)
        on = Less (k, limit)
        s = If (on) <
            then_branch = a () => (seq(float[6, 4]) p) {{
                p = SequenceConstruct (x, z) }},
            else_branch = b () => (seq(float[6, 4]) q) {{
                q = SequenceConstruct (z, x) }}>
    }}"""
    model = parser.parse_model(text)
    model.graph.node[1].output[0] = inner
    for attribute in model.graph.node[3].attribute:
        given = attribute.g.node[0].input
        given[:] = [inner if name == "z" else name for name in given]
    made = nanoloom.compile(model, cache=Cache(tmp_path))
    for k, right in ((2, [X, -X]), (3, [-X, X])):
        found = made({"x": X, "k": np.array(k)})["s"]
        assert all(np.array_equal(a, b) for a, b in zip(found, right, strict=True))
