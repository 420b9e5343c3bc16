"""Operators whose shapes depend on data, and those behind them: made once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import DataDependent
from tests.linalg.harness import compiled

Feeds = dict[str, np.ndarray]
EACH = (0.4, 0.9, 2.0, -1.0)  # of a random mask: some, few, none, all
NUMBERS = """
    <int64[1] a0 = {0}, int64[1] a1 = {1}, int64[1] minus1 = {-1}, int64[1] three = {3},
     int64 zero = {0}, int64 one = {1}, int64[2] pair = {2, 2}, int64[1] far = {99999},
     int64[1] minus3 = {-3}, int64[1] minus2 = {-2}, int64[1] before = {-99999},
     int64[2] minus1_2 = {-1, 2}, int64[2] four_minus1 = {4, -1}, int64[1] four = {4},
     float[1] overlap = {0.3}, float[1] least = {0.4}, int64[1] most = {5},
     int64[2] last_two = {1, 2}>
"""


def parsed(signature: str, body: str) -> onnx.ModelProto:
    head = '<ir_version: 9, opset_import: ["" : 18]>\nmodel'
    return onnx.parser.parse_model(f"{head} {signature}\n{NUMBERS}{{\n{body}\n}}")


def rows(thresholds: Sequence[float] = EACH) -> list[Feeds]:
    """x [6, 4] of few different numbers, and a mask of its rows."""
    random = np.random.default_rng(3)
    return [
        {
            "x": random.integers(-2, 3, (6, 4)).astype(np.float32),
            "c": random.random(6) > limit,
        }
        for limit in thresholds
    ]


def boxes() -> list[Feeds]:
    random = np.random.default_rng(4)
    return [
        {
            "b": np.sort(random.random((2, 30, 4)), -1).astype(np.float32),
            "s": (random.random((2, 3, 30)) * scale).astype(np.float32),
        }
        for scale in (1, 0.42, 0.1, 3)
    ]


X = "(float[6, 4] x, bool[6] c)"
CHOSEN = "a = Compress<axis = 0>(x, c)\n"
LENGTH = "shape = Shape(a)\n n = Gather<axis = 0>(shape, a0)\n"
MODELS = {
    "nonzero": (
        f"{X} => (int64[2, n] i, float[n] v, float[n, 3] w)",
        """i = NonZero(x)
        t = Transpose<perm = [1, 0]>(i)
        v = GatherND(x, t)
        f = Cast<to = 1>(t)
        u = Unsqueeze(v, a1)
        w = Concat<axis = 1>(f, u)""",
        rows(),
    ),
    "reductions": (
        f"{X} => (float[n, 4] a, float[4] s, float[4] p, float[n, 4] q, int64[4] k, "
        "float[n, 4] r, float[4, 4] g)",
        CHOSEN
        + """s = ReduceSum<keepdims = 0>(a, a0)
        p = ReduceProd<keepdims = 0>(a, a0)
        q = Softmax<axis = 0>(a)
        both = Concat<axis = 0>(a, x)
        k = ArgMax<axis = 0, keepdims = 0>(both)
        r = CumSum<reverse = 1>(a, zero)
        t = Transpose(a)
        g = MatMul(t, a)""",
        rows(),
    ),
    "best": (
        f"{X} => (float[k] v, int64[k] i, float[k, 4] z)",
        CHOSEN
        + LENGTH
        + """sums = ReduceSum<keepdims = 0>(a, a1)
        both = Concat<axis = 0>(n, three)
        k = ReduceMin(both)
        v, i = TopK<axis = 0>(sums, k)
        z = Gather<axis = 0>(a, i)""",
        rows(),
    ),
    "parts": (
        f"{X} => (float[n, 4] y, float[m, 4] h, float[k, 4] e, float[l, 4] r)",
        CHOSEN
        + """others = Not(c)
        b = Compress<axis = 0>(x, others)
        y = Concat<axis = 0>(a, b, a)
        h = Slice(y, a0, four, a0)
        e = Slice(y, minus3, far, a0)
        r = Slice(y, minus1, before, a0, minus2)""",
        rows(),
    ),
    "shapes": (
        f"{X} => (float[n] y, float[m, 2] h, float[4, k] e, float[l, 2, 2] q, "
        "float[r] w, float[n, 3] f, float[n, 4] g, float[4, n] t, int64[j] o)",
        CHOSEN
        + LENGTH
        + """y = Reshape(a, minus1)
        h = Reshape(a, minus1_2)
        e = Reshape(a, four_minus1)
        cubes = Concat<axis = 0>(n, pair)
        q = Reshape(a, cubes)
        turned = Transpose(a)
        w = Reshape(turned, minus1)
        threes = Concat<axis = 0>(n, three)
        f = ConstantOfShape<value = float[1] {2.5}>(threes)
        row = Slice(x, a0, a1, a0)
        ones = Concat<axis = 0>(n, a1)
        g = Expand(row, ones)
        column = Transpose(row)
        times = Concat<axis = 0>(a1, n)
        t = Tile(column, times)
        last = Squeeze(n, a0)
        o = Range(zero, last, one)""",
        rows((0.4, 0.9, -1.0)),  # the reference reshapes nothing to -1 otherwise
    ),
    "written": (
        f"{X} => (float[6, 4] y, float[6, 4] w)",
        CHOSEN
        + """i = NonZero(c)
        t = Transpose(i)
        d = Add(a, a)
        y = ScatterND(x, t, d)
        shape = Shape(a)
        e = Expand(t, shape)
        w = ScatterElements<axis = 0>(x, e, d)""",
        rows(),
    ),
    "places": (
        f"{X} => (float[n, 4] y, float[n, 4] z, float[n, 4] w, float[k] v, float[n] r)",
        CHOSEN
        + LENGTH
        + """last = Squeeze(n, a0)
        i = Range(zero, last, one)
        first = Unsqueeze(i, a1)
        behind = Sub(first, n)
        y = GatherND(a, first)
        z = GatherND(a, behind)
        d = Neg(a)
        w = ScatterND(d, behind, a)
        nonzero = NonZero(a)
        both = Transpose<perm = [1, 0]>(nonzero)
        v = GatherND(a, both)
        ones = Expand(a1, n)
        second = Unsqueeze(ones, a1)
        pairs = Concat<axis = 1>(behind, second)
        r = GatherND(a, pairs)""",
        rows(),
    ),
    "branches": (
        f"{X} => (float[n, 4] y, float[m, 4] z, bool[k] w)",
        CHOSEN
        + LENGTH
        + """enough = Greater(n, three)
        y, z, w = If (enough) <
            then_branch = many () => (float[p, 4] y1, float[2, 4] z1, bool[6] w1) {
                y1 = Neg(a)
                z1 = Slice(x, a1, three, a0)
                w1 = Not(c)
            },
            else_branch = few () => (float[q, 4] y2, float[n, 4] z2, bool[0] w2) {
                y2 = Concat<axis = 0>(x, a)
                z2 = Identity(a)
                w2 = Slice(c, a0, a0)
            }>""",
        rows(),
    ),
    "boxes": (
        "(float[2, 30, 4] b, float[2, 3, 30] s) => (int64[n, 3] i, float[n, 4] w)",
        """i = NonMaxSuppression(b, s, most, overlap, least)
        first = Gather<axis = 1>(i, a0)
        last = Gather<axis = 1>(i, last_two)
        place = Gather<axis = 1>(last, a1)
        at = Concat<axis = 1>(first, place)
        w = GatherND(b, at)""",
        boxes(),
    ),
}
MODELS["unique"] = (
    f"{X} => (float[u] y, int64[u] i, int64[v] j, int64[u] k, "
    "float[w, 4] y1, int64[w] i1, int64[n] j1, int64[w] k1)",
    CHOSEN + "y, i, j, k = Unique(a)\n y1, i1, j1, k1 = Unique<axis = 0>(a)",
    rows((0.4, 0.2, -1.0)),
)


@pytest.mark.parametrize("name", MODELS)
def test_every_number_of_elements(name: str) -> None:
    """One compilation gives what the reference gives, whatever the data are."""
    signature, body, feeds = MODELS[name]
    model = parsed(signature, body)
    program, reference = compiled(model), ReferenceEvaluator(model)
    shapes: set[tuple[int, ...]] = set()
    for given in feeds:
        wanted = [np.asarray(x) for x in reference.run(None, given)]
        for mine, right in zip(program(given), wanted, strict=True):
            assert mine.dtype == right.dtype
            assert mine.shape == right.shape
            np.testing.assert_allclose(mine, right, 1e-5, 1e-6)
        shapes.add(tuple(n for array in wanted for n in np.shape(array)))
    assert len(shapes) > 1 or name == "written"


def test_unique_as_met() -> None:
    """In the order of the first ones; the reference is wrong there."""
    model = parsed(
        f"{X} => (float[u] y, int64[u] i, int64[v] j, int64[u] k)",
        CHOSEN + "y, i, j, k = Unique<sorted = 0>(a)",
    )
    program = compiled(model)
    for given in rows():
        flat = given["x"][given["c"]].reshape(-1)
        _, first, inverse, numbers = np.unique(flat, True, True, True)
        order = np.argsort(first)
        wanted = flat[first[order]], first[order], np.argsort(order)[inverse]
        for mine, right in zip(program(given), (*wanted, numbers[order]), strict=True):
            np.testing.assert_array_equal(mine, right)


def test_no_recompiling_for_limits() -> None:
    """What the model's inputs ask for: k, and where a slice begins and ends."""
    model = parsed(
        "(float[9] x, int64[1] k, int64[1] from, int64[1] to) => "
        "(float[n] v, int64[n] i, float[m] y)",
        "v, i = TopK<axis = 0, largest = 0>(x, k)\n y = Slice(x, from, to, a0)",
    )
    program, reference = compiled(model), ReferenceEvaluator(model)
    x = np.random.default_rng(5).standard_normal(9).astype(np.float32)
    for k, start, end in ((0, 2, 5), (9, -3, 99), (4, 5, 2)):
        numbers = (("k", k), ("from", start), ("to", end))
        given = {"x": x} | {name: np.array([n]) for name, n in numbers}
        for mine, right in zip(program(given), reference.run(None, given), strict=True):
            np.testing.assert_array_equal(mine, right)


def test_what_has_no_rule_is_refused() -> None:
    model = parsed(
        f"{X} => (float[n, 2] y, float[m, 2] z)",
        CHOSEN + "y, z = Split<axis = 0, num_outputs = 2>(a)",
    )
    with pytest.raises(DataDependent) as refused:
        compiled(model)
    assert "Split" in refused.value.where
    assert "Compress" in refused.value.reason
    assert refused.value.inputs == ("c",)
