"""Places on axes that are sizes: found in the data, or said by sizes themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from tests.dynamic.compared import LENGTHS, PAIRS, compare, session, uniform
from tests.dynamic.test_counted import CONSTANTS, model

# The last token of those before and those that come, behind two and one open axes.
TOKENS = """g (float[batch, past, 8] p, float[batch, length, 8] x)
    => (float[batch, 8] y, float[batch, 2, 8] ends)
{
    before = Shape(p)
    now = Shape(x)
    past1 = Gather<axis = 0>(before, one)
    length1 = Gather<axis = 0>(now, one)
    total = Add(past1, length1)
    last = Sub(total, one)
    all = Concat<axis = 1>(p, x)
    found = Gather<axis = 1>(all, last)
    y = Squeeze(found, one)
    both = Concat<axis = 0>(zero, last)
    ends = Gather<axis = 1>(all, both)
}"""
# A text's vector is that of the word with the largest number, as in CLIP.
WORDS = """g (float[batch, length, 4] x, float[batch, length] s) => (float[batch, 4] y)
{
    place = ArgMax<axis = 1, keepdims = 0>(s)
    shape = Shape(s)
    batch1 = Gather<axis = 0>(shape, zero)
    end = Squeeze(batch1)
    rows = Range(first, end, step)
    columns = Unsqueeze(place, one)
    rows1 = Unsqueeze(rows, one)
    at = Concat<axis = 1>(rows1, columns)
    y = GatherND(x, at)
}"""
FOUND = {
    "unique": """float[length, 3] x) => (float[k] y, int64[k] i, int64[m] j, int64[k] n)
        { y, i, j, n = Unique(x) }""",
    "scattered": """float[length, 3] x) => (float[length, 3] y)
        { column = Slice(x, zero, one, one) flat = Squeeze(column, one)
        good = Greater(flat, half) found = NonZero(good)
        at = Transpose<perm = [1, 0]>(found) kept = GatherND(x, at)
        less = Neg(kept) y = ScatterND(x, at, less) }""",
    "largest": """float[length, 3] x) => (int64[length] y, int64[1, 3] z)
        { y = ArgMin<axis = 1, keepdims = 0>(x)
        z = ArgMax<axis = 0, select_last_index = 1>(x) }""",
}


@pytest.mark.parametrize("name", FOUND)
def test_places_in_the_data(tmp_path: Path, name: str) -> None:
    made = model(f"g ({FOUND[name]}", CONSTANTS)
    compare(made, [{"length": n} for n in LENGTHS], tmp_path, uniform, 0)


def test_the_last_of_a_sum_of_sizes(tmp_path: Path) -> None:
    sizes = [{"batch": 1 + i % 3, "past": p, "length": n}
             for i, (p, n) in enumerate(PAIRS)]  # fmt: skip
    compare(model(TOKENS, CONSTANTS), sizes, tmp_path, uniform, 0)


def test_the_word_with_the_largest_number(tmp_path: Path) -> None:
    sizes = [{"batch": b, "length": n} for b, n in PAIRS]
    compare(model(WORDS, CONSTANTS), sizes, tmp_path, uniform, 0)


def test_a_text_that_is_cut(tmp_path: Path) -> None:
    """x[:512] is all there is of up to 512 words; more have a variant of their own."""
    text = (
        "g (float[length, 3] x) => (float[k, 3] y) { y = Slice(x, zero, much, zero) }"
    )
    made = model(text, CONSTANTS | {"much": np.array([512])})
    compare(made, [{"length": n} for n in (*LENGTHS, 512)], tmp_path, uniform, 0)
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    x = dict(uniform(made, {"length": 513}))
    (wanted,) = session(made).run(None, x)
    np.testing.assert_array_equal(program(x)["y"], wanted)
    assert program.open.bound({"x": (513, 3)}, 1) is None
