"""An If of run time in one program for all sizes."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import nanoloom
from nanoloom.errors import DataDependent
from tests.dynamic.compared import session
from tests.kernels.repeats.ended_loops import HEAD, reference
from tests.vector.kernel_harness import shared_cache

BRANCHES = {
    "elements": ("p = Add(x, x)", "q = Mul(x, x)"),
    "products": ("r = MatMul(x, w)  p = Relu(r)", "q = Neg(x)"),
    "sums": (
        "s = ReduceSum(x)  p = Mul(x, s)",
        "zero = Constant<value_ints = [0]>()  s2 = ReduceMax(x, zero)  q = Sub(x, s2)",
    ),
    "views": (
        """o = Constant<value_ints = [0]>()  u = Unsqueeze(x, o)
        low = ReduceMin<keepdims = 0>(x)  d = Cast<to = 9>(low)
        v = If (d) <then_branch = t () => (f) { f = Neg(u) },
            else_branch = e () => (g) { g = Identity(u) }>  p = Squeeze(v, o)""",
        "q = Neg(x)",
    ),
    "sizes": ("p = Concat<axis = 0>(x, x)", "q = Identity(w)"),
}


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("kind", BRANCHES)
def test_any_size(kind: str) -> None:
    """Small integers, whose sums are exact; branches may give other sizes."""
    then, other = BRANCHES[kind]
    text = f"""sized (bool c, float[n,4] x) => (float[m,4] y)
    <float[4,4] w = {{1, 2, 3, -1, 0, 2, -2, 1, 4, 1, -3, 2, 2, 0, 1, 1}}> {{
      y = If (c) <
        then_branch = a () => (p) {{ {then} }},
        else_branch = b () => (q) {{ {other} }}>
    }}"""
    model = onnx.parser.parse_model(HEAD + text)
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    random = np.random.default_rng(len(kind))
    for n in (3, 40, 1, 17):
        for taken in (True, False):
            x = random.integers(-3, 4, (n, 4)).astype(np.float32)
            feeds = {"c": np.array(taken), "x": x}
            (wanted,) = reference(model, feeds)
            found = program(feeds)["y"]
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(found, wanted)
    if kind == "sizes":  # then the condition's value decides
        assert "is of shape" in program.open.reason
    else:
        assert not program.open.reason


# A branch that runs for few sizes: Reshape and MatMul, whose results have the shape of
# nothing else, Squeeze and Split; and for which it does.
UNFIT = {
    "reshape": ("s = Constant<value_ints = [-1, 5]>()  q = Reshape(x, s)", {5, 20, 40}),
    "squeeze": ("o = Constant<value_ints = [0]>()  q = Squeeze(x, o)", {1}),
    "split": ("s = Constant<value_ints = [1, 1]>()  q, r = Split<axis = 0>(x, s)", {2}),
    "matmul": ("q = MatMul(x, x)", {4}),
    "updates": (
        "i = Constant<value = int64[1,1] {0}>()  q = ScatterND(x, i, x)",
        {1},
    ),
    "some samples": (
        "s = Constant<value_ints = [-1, 127]>()  q = Reshape(x, s)",
        {127},
    ),
}
AROUND = {
    "an input": "",
    "data": "low = ReduceMin<keepdims = 0>(x)  c = Cast<to = 9>(low)",
}


@pytest.mark.parametrize("kind", UNFIT)
@pytest.mark.parametrize("decided_by", AROUND)
def test_a_branch_that_few_sizes_fit(kind: str, decided_by: str) -> None:
    """One program for all sizes, whichever branch of its own it takes.

    Sizes that fit the other branch have a program of their own when they take it.
    """
    other, fits = UNFIT[kind]
    given = "bool c, " if decided_by == "an input" else ""
    text = f"""unfit ({given}float[n,4] x) => (float[m,k] y) {{ {AROUND[decided_by]}
      y = If (c) <
        then_branch = a () => (p) {{ p = Relu(x) }},
        else_branch = b () => (q) {{ {other} }}> }}"""
    model = onnx.parser.parse_model(HEAD + text)
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    random, peer = np.random.default_rng(len(kind)), session(model)
    for n in (3, 40, 1, 2, 4, 5, 17, 20, 127):
        for taken in (True, *(() if n not in fits else (False, True))):
            x = random.integers(1, 4, (n, 4)).astype(np.float32)
            x[0, 0] = x[0, 0] if taken else 0
            feeds = {"c": np.array(taken), "x": x} if given else {"x": x}
            if kind == "squeeze" and not given and n in fits:
                continue  # results of two ranks: no program holds both
            (wanted,) = map(np.asarray, peer.run(None, feeds))
            found = program(feeds)["y"]
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(found, wanted)
        assert not program.open.reason
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(nanoloom.InputError, match="If_"):
        program({"c": np.array(False), "x": x} if given else {"x": x})


def test_saved_without_a_branch_that_few_sizes_fit(tmp_path: Path) -> None:
    """A library has one program: it says which branch it lacks, and what to do."""
    text = """unfit (bool c, float[n,4] x) => (float[m,k] y) {
      y = If (c) <
        then_branch = a () => (p) { p = Relu(x) },
        else_branch = b () => (q) { q = MatMul(x, x) }> }"""
    model = onnx.parser.parse_model(HEAD + text)
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    x = np.arange(-8, 8, dtype=np.float32).reshape(4, 4)
    with nanoloom.load(program.save(tmp_path / "unfit.so")) as saved:
        found = saved({"c": np.array(True), "x": x})["y"]
        np.testing.assert_array_equal(found, np.maximum(x, 0))
        with pytest.raises(nanoloom.InputError) as refusal:
            saved({"c": np.array(False), "x": x})
    said = r"If_0 \(If\): its else_branch is taken, which is not for all sizes; .*--dim"
    assert re.search(said, str(refusal.value))


DECIDED = "top = ReduceMax<keepdims = 0>(x)  c = Cast<to = 9>(top)"
UNLIKE = {  # branches, what follows them, and what is said of either
    "shape": ("p = Relu(x)", "zero = Constant<value_ints = [0]>() "
              "q = Unsqueeze(x, zero)", "y = Identity(i)",
              r"of shape \(3, 4\) from then_branch and of shape \(1, 3, 4\) from",
              "one (rank|shape)"),
    "sequence": ("p = SequenceConstruct(x)", "q = SequenceConstruct(x, x)",
                 "y = ConcatFromSequence<axis = 0>(i)",
                 "a sequence of 1 tensor from then_branch and a sequence of 2 tensors",
                 "sequences of one length"),
}  # fmt: skip


@pytest.mark.parametrize("is_input", [True, False])
@pytest.mark.parametrize("kind", UNLIKE)
def test_branches_that_no_program_holds(kind: str, *, is_input: bool) -> None:
    """Says which If, which output, how they differ and what to do.

    A call has the condition's value where it is an input, and is compiled for it.
    """
    then, other, end, said, wanted = UNLIKE[kind]
    given, first = ("bool c, ", "") if is_input else ("", DECIDED)
    text = f"""unlike ({given}float[3,4] x) => (float[m,k] y) {{ {first}
      i = If (c) <
        then_branch = a () => (p) {{ {then} }},
        else_branch = b () => (q) {{ {other} }}>
      {end}
    }}"""
    model = onnx.parser.parse_model(HEAD + text)
    do = f"let both branches give {wanted}"
    way = "from Python, which compiles for each value of c" if is_input else "export"
    with pytest.raises(DataDependent) as refusal:
        program = nanoloom.compile(model, threads=1, cache=shared_cache())
        program.variant_of(program.static_shapes(), {})
    told = str(refusal.value)
    assert re.search(f"If.*output [iy] is {said}.*condition c.*{do}.*{way}", told)
    if is_input:
        program = nanoloom.compile(model, threads=1, cache=shared_cache())
        x = np.ones((3, 4), np.float32)
        made = [program({"x": x, "c": np.array(c)})["y"].shape for c in (True, False)]
        assert made == [(3, 4), (1, 3, 4) if kind == "shape" else (6, 4)]


SAVED = {  # branches, what follows them; both run whatever is given
    "extents": ("p = Identity(x)", "q = Concat<axis = 0>(x, x)", "y = Neg(i)"),
    "ranks": ("p = Relu(x)", "zero = Constant<value_ints = [0]>() "
              "q = Unsqueeze(x, zero)", "y = ReduceSum<keepdims = 0>(i)"),
}  # fmt: skip


@pytest.mark.parametrize("size", ["3", "n"])
@pytest.mark.parametrize("kind", SAVED)
def test_a_file_holds_both_branches(kind: str, size: str, tmp_path: Path) -> None:
    """An input chooses, whose values have programs of their own in Python alone."""
    then, other, end = SAVED[kind]
    rank = "float[m,4] y" if kind == "extents" else "float y"
    text = f"""both (bool c, float[{size},4] x) => ({rank}) {{
      i = If (c) <
        then_branch = a () => (p) {{ {then} }},
        else_branch = b () => (q) {{ {other} }}>
      {end}
    }}"""
    model = onnx.parser.parse_model(HEAD + text)
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    path = program.save(tmp_path / "both.so")
    random = np.random.default_rng(3)
    with nanoloom.load(path) as loaded:
        for rows in (3,) if size == "3" else (1, 5, 0):
            for c in (True, False):
                x = random.integers(-3, 4, (rows, 4)).astype(np.float32)
                given = {"c": np.array(c), "x": x}
                wanted = np.asarray(session(model).run(None, given)[0])
                assert np.array_equal(loaded(given)["y"], wanted), (rows, c)


def test_ranks_that_a_reshape_meets() -> None:
    """What a branch gives as it is, and results that bufferizing copies twice."""
    text = """ranks (bool k, float[rows,4] x) => (float[p] y, float[rows,4] z)
    <int64[1] zero = {0}, int64[1] flat = {-1}> {
      v, o = If (k) <
        then_branch = t () => (a, c) { a = Identity(x)  c = Neg(x) },
        else_branch = e () => (b, d) { b = ReduceMax<keepdims = 0>(x, zero)
                                       d = Relu(x) }>
      y = Reshape(v, flat)
      z = Neg(o)
    }"""
    program = nanoloom.compile(
        onnx.parser.parse_model(HEAD + text), threads=1, cache=shared_cache()
    )
    for n in (3, 17, 1):
        x = np.random.default_rng(n).integers(-9, 9, (n, 4)).astype(np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # a size on its own
            full = program({"k": np.array(True), "x": x})
            top = program({"k": np.array(False), "x": x})
        np.testing.assert_array_equal(full["y"], x.ravel())
        np.testing.assert_array_equal(full["z"], x)
        np.testing.assert_array_equal(top["y"], x.max(0))
        np.testing.assert_array_equal(top["z"], -np.maximum(x, 0))
