"""A decoder with a branch for prompts and one for tokens, as exporters merge them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom import compile_open, compiler
from nanoloom.api.program import Program
from nanoloom.api.sessions.session import Session
from nanoloom.cache import Cache
from nanoloom.errors import InputError

Array = np.ndarray
WIDTH = 8
# Products of 8 numbers below 8, and shares of at most 40 of them.
BOUND = 60 * np.finfo(np.float32).eps * 8
MERGED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, new, 8] x, float[batch, total] attention_mask,
   float[batch, 2, past, 4] past_key_values_0_key,
   float[batch, 2, past, 4] past_key_values_0_value, bool[1] use_cache_branch)
    => (float[batch, new, 8] y, float[batch, 2, total, 4] present_0_key,
        float[batch, 2, total, 4] present_0_value)
{
    y, present_0_key, present_0_value = If(use_cache_branch) <
        then_branch = later () => (float[b, n, 8] y1, float[b, 2, t, 4] k1,
                                   float[b, 2, t, 4] v1)
        { MAKE1 k1 = Concat<axis = 2>(past_key_values_0_key, kn1)
          v1 = Concat<axis = 2>(past_key_values_0_value, vn1) ATTEND1 },
        else_branch = first () => (float[b, n, 8] y2, float[b, 2, t, 4] k2,
                                   float[b, 2, t, 4] v2)
        { MAKE2 k2 = Identity(kn2) v2 = Identity(vn2) ATTEND2 }
    >
}
"""
MAKE = """
    heads# = Constant<value = int64[4] {0, 0, 2, 4}>()
    ka# = MatMul(x, wk)
    kb# = Reshape(ka#, heads#)
    kn# = Transpose<perm = [0, 2, 1, 3]>(kb#)
    vb# = Reshape(x, heads#)
    vn# = Transpose<perm = [0, 2, 1, 3]>(vb#)
"""
ATTEND = """
    joined# = Constant<value = int64[3] {0, 0, 8}>()
    middle# = Constant<value = int64[2] {1, 2}>()
    m# = Unsqueeze(attention_mask, middle#)
    t# = Transpose<perm = [0, 1, 3, 2]>(k#)
    s# = MatMul(vn#, t#)
    a# = Add(s#, m#)
    p# = Softmax<axis = -1>(a#)
    o# = MatMul(p#, v#)
    r# = Transpose<perm = [0, 2, 1, 3]>(o#)
    j# = Reshape(r#, joined#)
    y# = Mul(j#, factor#)
"""

STACKED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, new, 4] x, float[2, batch, past, 4] past, bool[1] use_cache_branch)
    => (float[batch, new, 4] y, float[2, batch, total, 4] present)
<int64[1] front = {0}, int64[1] one1 = {1}, int64 zero = {0}, int64 one = {1}>
{
    y, present = If(use_cache_branch) <
        then_branch = later () => (float[b, n, 4] y1, float[2, b, t, 4] p1)
        { a = Gather(past, zero) c = Gather(past, one) d = Neg(x)
          k = Concat<axis = 1>(a, x) v = Concat<axis = 1>(c, d)
          k1 = Unsqueeze(k, front) v1 = Unsqueeze(v, front)
          p1 = Concat<axis = 0>(k1, v1)
          s = ReduceSum<keepdims = 1>(v, one1) y1 = Add(x, s) },
        else_branch = first () => (float[b, n, 4] y2, float[2, b, t, 4] p2)
        { e = Neg(x) k2 = Unsqueeze(x, front) v2 = Unsqueeze(e, front)
          p2 = Concat<axis = 0>(k2, v2)
          s2 = ReduceSum<keepdims = 1>(e, one1) y2 = Add(x, s2) }
    >
}
"""


def decoder() -> onnx.ModelProto:
    """The branch for prompts multiplies by 2 in the end, the other by 1."""
    text = MERGED
    for number in "12":
        for word, body in (("MAKE", MAKE), ("ATTEND", ATTEND)):
            text = text.replace(word + number, body.replace("#", number))
    model = parser.parse_model(text)
    weight = np.random.default_rng(2).standard_normal((WIDTH, WIDTH)) / 3
    given = {"wk": weight, "factor1": 1, "factor2": 2}
    for name, numbers in given.items():
        array = np.asarray(numbers, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def text(batch: int, length: int) -> tuple[Array, Array]:
    random = np.random.default_rng([batch, length])
    mask = np.where(random.random((batch, length)) < 0.2, -50, 0).astype(np.float32)
    mask[:, 0] = 0
    return random.standard_normal((batch, length, WIDTH), np.float32), mask


def in_pieces(x: Array, mask: Array, counts: tuple[int, ...]) -> list[Array]:
    """What ONNX's reference gives, its branch chosen as exporters' callers do."""
    reference = ReferenceEvaluator(decoder())
    kept = [np.zeros((len(x), 2, 0, 4), np.float32)] * 2
    made: list[Array] = []
    end = 0
    for count in counts:
        begin, end = end, end + count
        given = {
            "x": x[:, begin:end],
            "attention_mask": mask[:, :end],
            "past_key_values_0_key": kept[0],
            "past_key_values_0_value": kept[1],
            "use_cache_branch": np.array([begin > 0]),
        }
        y, *kept = map(np.asarray, reference.run(None, given))
        made.append(y)
    return [np.concatenate(made, 1), *kept]


def say(session: Session, x: Array, mask: Array, counts: tuple[int, ...]) -> Array:
    made: list[Array] = []
    for count in counts:
        end = session.length + count
        new = x[:, session.length : end]
        given = session({"x": new, "attention_mask": mask[:, :end]})
        assert list(given) == ["y"] and session.length == end
        made.append(given["y"])
    return np.concatenate(made, 1)


@pytest.fixture(scope="module")
def program(cache: Cache) -> Program:
    return nanoloom.compile(decoder(), threads=1, cache=cache)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_prompt_and_tokens(program: Program, batch: int) -> None:
    counts = (5, 1, 1, 6, 1, 2, *[1] * 20)
    x, mask = text(batch, sum(counts))
    wanted, *kept = in_pieces(x, mask, counts)
    session = program.session(capacity=7)
    got = say(session, x, mask, counts)
    assert not session.reason
    assert np.abs(got - wanted).max() <= BOUND
    assert (
        np.abs(got[:, :5] / 2 - wanted[:, :5]).max() > BOUND
    )  # the branch for prompts
    for rows, numbers in zip(session.past().values(), kept, strict=True):
        assert rows.shape == numbers.shape
        assert np.abs(rows - numbers).max() <= BOUND


def test_nothing_is_compiled(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor for another prompt."""
    session = program.session(capacity=60)
    x, mask = text(1, 40)
    say(session, x, mask, (3, 1, 2))

    def compiled(*_: object) -> None:
        raise AssertionError("compiled once more")

    monkeypatch.setattr(compile_open, "compile_open", compiled)
    monkeypatch.setattr(compiler, "compile_model", compiled)
    before = {name: rows.ctypes.data for name, rows in session.past().items()}
    got = say(session, x, mask, (1, 4, *[1] * 9))
    assert before == {n: rows.ctypes.data for n, rows in session.past().items()}
    session.rewind(0)
    again = say(session, x, mask, (3, 1, 2, 1, 4, *[1] * 9))
    assert np.abs(again[:, 6:] - got).max() <= BOUND
    assert not session.reason and len(program.variants) == 0


def test_a_stack_besides(cache: Cache) -> None:
    """The branch for prompts gives it whole, the other one in parts."""
    model = parser.parse_model(STACKED)
    session = nanoloom.compile(model, threads=1, cache=cache).session(capacity=3)
    x, _ = text(2, 90)
    x = x[..., :4]
    for count in (5, 1, 1, 4, *[1] * 79):
        end = session.length + count
        new = x[:, end - count : end]
        got = session({"x": new})["y"]
        wanted = new - x[:, :end].sum(1, dtype=np.float64, keepdims=True)
        error = np.finfo(np.float32).eps * (
            1 + np.abs(x[:, :end]).sum(1, keepdims=True)
        )
        assert (np.abs(got - wanted) <= 90 * error).all()
    assert (session.past()["past"] == np.stack([x, -x])).all()
    assert not session.reason and session.length == 90


def test_a_bound(cache: Cache) -> None:
    dims = {"past": (1, 9)}
    session = nanoloom.compile(decoder(), threads=1, cache=cache, dims=dims).session()
    x, mask = text(1, 12)
    wanted, *_ = in_pieces(x, mask, (1, 6, 2))
    assert np.abs(say(session, x, mask, (1, 6, 2)) - wanted).max() <= BOUND
    with pytest.raises(InputError, match="9 tokens are kept, and at most 9 can be"):
        say(session, x, mask, (1,))
    assert not session.reason


def test_no_library(program: Program, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="use_cache_branch has one branch for the fir"):
        program.save(tmp_path / "decoder.so", session=True)
