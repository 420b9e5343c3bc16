"""What of a graph depends on sizes, and which graphs are refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.graph import Open, open_values
from nanoloom.dynamic.polynomial import Dims
from nanoloom.dynamic.sample_walk import Walks
from nanoloom.linalg.operators import OPERATORS
from nanoloom.model.source import source_of
from tests.dynamic import models

EITHER = """
    y = If(e) <then_branch = t () => (float[n, 4] a) { a = Neg(x) },
               else_branch = f () => (float[m, 4] b) { b = Slice(x, two, n, zero) }>
"""
SAMPLES = ({"n": 131}, {"n": 137}, {"n": 139})


def of(text: str, cache: Cache) -> Open:
    """What is found in g (float[n, 4] x)."""
    source = source_of(model(text), cache)

    def bound(dims: Dims) -> ir.Model:
        return source.bound({"x": (dims["n"], 4)}, {})

    return open_values(Walks(bound, OPERATORS.keys()), SAMPLES)


def model(text: str) -> onnx.ModelProto:
    constants = """
        zero = Constant<value = int64[1] {0}>()
        one = Constant<value = int64[1] {1}>()
        two = Constant<value = int64[1] {2}>()
        five = Constant<value = int64[1] {5}>()
        some = Constant<value = int64[1] {138}>()
        many = Constant<value = int64[1] {1000}>()
        shape = Shape(x)
        n = Gather<axis = 0>(shape, zero)
        four = Gather<axis = 0>(shape, one)
    """
    head = models.HEAD + "g (float[n, 4] x) => (float[p, q] y) {"
    return parser.parse_model(head + constants + text + "}")


def test_numbers_that_no_size_decides(tmp_path: Path) -> None:
    text = """
        half = Div(four, two)
        s = Concat<axis = 0>(n, two, half)
        z = Reshape(x, s)
        y = Flatten<axis = 1>(z)
    """
    found = of(text, Cache(tmp_path))
    assert not found.kept and not found.limits


@pytest.mark.parametrize("chosen", [0, 1])
def test_the_branch_of_a_constant(tmp_path: Path, chosen: int) -> None:
    """The other does not matter; what is read of the chosen one limits the sizes."""
    text = f"e = Constant<value = bool[1] {{{chosen}}}>() {EITHER}"
    found = of(text, Cache(tmp_path))
    low = [min([size.of({"n": n}) for size in found.limits] or [0]) for n in (1, 2)]
    assert not found.kept and low == ([0, 0] if chosen else [-1, 0])


def test_a_table_is_computed_later(tmp_path: Path) -> None:
    text = "v = Expand(fours, shape) y = Add(x, v)"
    given = "fours = Constant<value = float[4] {1, 2, 3, 4}>()"
    assert of(given + text, Cache(tmp_path)).kept == {"v"}


def test_a_small_matrix_is_computed_later(tmp_path: Path) -> None:
    """Where rows of a flat text begin: two numbers, one of them a size, no shape."""
    text = """
        rows = Constant<value = int64[2, 1] {0, 1}>()
        begin = Mul(rows, n)
        all = Constant<value = int64[1] {-1}>()
        columns = Transpose(x)
        flat = Reshape(columns, all)
        y = Gather<axis = 0>(flat, begin)
    """
    cache = Cache(tmp_path)
    assert of(text, cache).kept == {"begin"}
    program = nanoloom.compile(model(text), threads=1, cache=cache)
    for count in (8, 13):
        x = np.random.default_rng(count).standard_normal((count, 4)).astype(np.float32)
        assert program({"x": x})["y"].tolist() == x[:1, :2].T.tolist()
    assert not program.open.reason


def test_limits(tmp_path: Path) -> None:
    """x[5 : n - 2], of what has n rows at least."""
    found = of("end = Sub(n, two) y = Slice(x, five, end, zero)", Cache(tmp_path))
    low = [min(size.of({"n": n}) for size in found.limits) for n in (6, 7, 8)]
    assert low[0] < 0 == low[1] <= low[2]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y = Slice(x, zero, some, zero)", "Slice.*may end where its axis does"),
        ("y = Slice(x, zero, many, zero)", ""),
        ("i = Constant<value = int64 {2}>() y0 = Gather<axis = 0>(x, i) "
         "y = Unsqueeze(y0, zero)", ""),
        (f"e = Equal(n, one) {EITHER}", "Equal.* decides by a size"),
        ("p = Constant<value = int64[4] {2, 0, 0, 1}>() y = Pad(x, p)", ""),
        ("z = Sub(n, n) p = Concat<axis = 0>(z, one, z, z) y = Pad(x, p)", ""),
        ("p = Concat<axis = 0>(n, one, zero, zero) y = Pad(x, p)",
         "Pad.*depend on sizes"),
        ('p = Constant<value = int64[4] {2, 0, 0, 1}>() y = Pad<mode = "edge">(x, p)',
         ""),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, text: str, reason: str) -> None:
    """The program runs all the same, by variants; a constant index is a limit."""
    cache = Cache(tmp_path)
    if reason:
        with pytest.raises(NotDynamic, match=reason):
            of(text, cache)
    program = nanoloom.compile(model(text), threads=1, cache=cache)
    x = np.random.default_rng(8).standard_normal((8, 4)).astype(np.float32)
    made = program({"x": x})
    if "some" not in text:
        assert (made["y"] == models.wanted(model(text), {"x": x})["y"]).all()
    assert re.search(reason or "^$", program.open.reason)
    assert program.open.reason.count("decides by a size") == ("decides" in reason)
    assert not re.search(r"(node \S+ \(\w+\)) \1", program.open.reason)  # once


def test_what_a_comparison_may_be_with(tmp_path: Path) -> None:
    """torch.expand asks whether a size is -1, which none is."""
    text = """
        minus = Constant<value = int64[2] {-1, -1}>()
        e = Equal(shape, minus)
        ones = Constant<value = int64[2] {1, 1}>()
        s = Where(e, ones, shape)
        y = Expand(x, s)
    """
    assert not of(text, Cache(tmp_path)).kept
