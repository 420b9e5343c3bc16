"""One tensor that stacks the keys and values of layers grows in place."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom import compile_open, compiler
from nanoloom.api.program import Program
from nanoloom.api.sessions.session import Session
from nanoloom.cache import Cache
from tests.api.sessions import stacked

Array = np.ndarray
# Sums of at most 40 products, and shares of as many, of numbers below 30.
BOUND = 80 * np.finfo(np.float32).eps * 30
COUNTS = (5, 1, 1, 6, 1, 2, 1)


def text(batch: int, length: int) -> Array:
    random = np.random.default_rng([batch, length])
    return random.standard_normal((batch, length, stacked.WIDTH), np.float32)


def in_pieces(
    form: str, x: Array, counts: tuple[int, ...]
) -> tuple[Array, list[Array]]:
    """What ONNX's reference gives when its outputs are its next inputs."""
    reference = ReferenceEvaluator(stacked.decoder(form))
    pasts = [str(name) for name in reference.input_names if name != "x"]
    shape = (len(x), stacked.HEADS, 0, stacked.HEAD)
    front = (2,) if form == "turned" else (stacked.LAYERS, 2)
    kept = [np.zeros((*front, *shape), np.float32) for _ in pasts]
    made: list[Array] = []
    for begin, end in pairwise(np.cumsum([0, *counts])):
        given = {"x": x[:, begin:end], **dict(zip(pasts, kept, strict=True))}
        y, *kept = map(np.asarray, reference.run(None, given))
        made.append(y)
    return np.concatenate(made, 1), kept


def say(session: Session, x: Array, counts: tuple[int, ...]) -> Array:
    made: list[Array] = []
    for count in counts:
        given = session({"x": x[:, session.length : session.length + count]})
        assert list(given) == ["y"]
        made.append(given["y"])
    return np.concatenate(made, 1)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("form", stacked.FORMS)
def test_a_prompt_and_tokens(cache: Cache, form: str) -> None:
    program = nanoloom.compile(stacked.decoder(form), threads=1, cache=cache)
    for batch in (1, 3):
        x = text(batch, sum(COUNTS))
        wanted, kept = in_pieces(form, x, COUNTS)
        session = program.session(capacity=7)
        got = say(session, x, COUNTS)
        assert not session.reason
        assert np.abs(got - wanted).max() <= BOUND
        assert np.abs(np.roll(got, 1, 1) - wanted).max() > BOUND
        for rows, numbers in zip(session.past().values(), kept, strict=True):
            assert rows.shape == numbers.shape
            assert np.abs(rows - numbers).max() <= BOUND


@pytest.fixture(scope="module")
def program(cache: Cache) -> Program:
    return nanoloom.compile(stacked.decoder("gathered"), threads=1, cache=cache)


def test_nothing_is_compiled_or_moved(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows stay in one block, in which those of each part lie behind each other."""
    session = program.session(capacity=30)
    x = text(1, 30)
    say(session, x, (4, 1))

    def compiled(*_: object) -> None:
        raise AssertionError("compiled once more")

    monkeypatch.setattr(compile_open, "compile_open", compiled)
    monkeypatch.setattr(compiler, "compile_model", compiled)
    (before,) = session.past().values()
    first = before.copy()
    say(session, x, (1, 3, *[1] * 20))
    (after,) = session.past().values()
    assert after.ctypes.data == before.ctypes.data
    assert (after[..., :5, :] == first).all()
    assert after[1, 0].base is after.base and not session.reason
    part = after[1, 0].transpose(2, 0, 1, 3)
    assert part.shape == (29, 1, 3, 4) and part.flags.c_contiguous


def test_back_and_beyond(program: Program) -> None:
    """What is forgotten is said again, and room is doubled on the way."""
    x = text(2, 150)
    counts = (9, 1, 1, 70, *[1] * 3, 66)
    wanted, _ = in_pieces("gathered", x, counts)
    session = program.session(capacity=3)
    whole = say(session, x, counts)
    session.rewind(10)
    again = say(session, x, (1, 2))
    assert np.abs(whole - wanted).max() <= BOUND
    assert np.abs(again[:, :1] - whole[:, 10:11]).max() <= BOUND
    assert session.room >= 150 and session.length == 13


def test_going_on_from_another_model(program: Program) -> None:
    x = text(1, 9)
    wanted, (kept,) = in_pieces("gathered", x, (6, 1, 2))
    _, (first,) = in_pieces("gathered", x, (6,))
    session = program.session()
    session.start({"present": first})
    got = say(session, x, (1, 2))
    assert np.abs(got - wanted[:, 6:]).max() <= BOUND
    assert np.abs(session.past()["past"] - kept).max() <= BOUND
    assert not session.reason


def test_in_a_library(program: Program, tmp_path: Path) -> None:
    """Each part is kept by itself there; Python shows them as one."""
    library = program.save(tmp_path / "decoder.so", session=True)
    header = library.with_suffix(".h").read_text()
    last = "present[1, 1, :, :, :, :], f32[new + past, batch, 3, 4]"
    assert f" * keeps 3: {last}\n" in header
    x = text(3, sum(COUNTS))
    wanted, (kept,) = in_pieces("gathered", x, COUNTS)
    session = nanoloom.load(library).session()
    assert session.pairs == {"past": "present"}
    assert np.abs(say(session, x, COUNTS) - wanted).max() <= BOUND
    assert np.abs(session.past()["past"] - kept).max() <= BOUND


def test_what_is_copied(cache: Cache) -> None:
    """Layers in another order than they were taken in are no stack that grows."""
    end = "present = Concat<axis = 0>(all_1, all_0)"
    model = stacked.decoder("gathered", end)
    session = nanoloom.compile(model, threads=1, cache=cache).session()
    x = text(1, 4)
    say(session, x, (2, 1))
    reason = "output present: its Concat does not put one value behind past"
    assert session.reason == reason
    again = session.past()["past"].copy()
    say(session, x, (1,))
    assert (session.past()["past"][0, ..., :3, :] == again[1]).all()
