"""A text in pieces gives what the whole does, and nothing is compiled meanwhile."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom import compile_open, compiler
from nanoloom.api.open_program import OpenProgram
from nanoloom.api.program import Program
from nanoloom.api.sessions.compiled_session import CompiledSession
from nanoloom.api.sessions.session import Session
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from tests.api.sessions import models

Array = np.ndarray
# Sums of at most 70 products of numbers below 10.
BOUND = 80 * np.finfo(np.float32).eps * 10


@pytest.fixture(scope="module")
def program(cache: Cache) -> Program:
    return nanoloom.compile(models.decoder(), threads=1, cache=cache)


def text(batch: int, length: int) -> tuple[Array, Array]:
    """Words, and a mask that leaves some of them out."""
    random = np.random.default_rng([batch, length])
    mask = np.where(random.random((batch, length)) < 0.2, -50, 0).astype(np.float32)
    return random.integers(0, models.WORDS, (batch, length)), mask


def say(session: Session, ids: Array, mask: Array, count: int) -> Array:
    """The logits of the next words."""
    end = session.length + count
    new = ids[:, session.length : end]
    made = session({"input_ids": new, "attention_mask": mask[:, :end]})
    assert list(made) == ["logits"] and session.length == end
    return made["logits"]


@pytest.mark.parametrize("batch", [1, 3])
def test_pieces_are_the_whole(program: Program, batch: int) -> None:
    """Prompts and single words by turns, beyond the capacity, and back."""
    ids, mask = text(batch, 41)
    wanted = models.whole(ids, mask)
    session = program.session(capacity=7)
    made = [say(session, ids, mask, count) for count in (5, 1, 1, 6, 1, 2, 1)]
    assert not session.reason
    session.rewind(13)
    made = [np.concatenate(made, 1)[:, :13]]
    made += [say(session, ids, mask, 1) for _ in range(13, 36)]
    made += [say(session, ids, mask, 5)]
    got = np.concatenate(made, 1)
    assert np.abs(got - wanted["logits"]).max() <= BOUND
    assert np.abs(wanted["logits"]).max() > 100 * BOUND
    wrong = np.roll(got, 1, axis=1)
    assert np.abs(wrong - wanted["logits"]).max() > BOUND
    for past, rows in session.past().items():
        present = wanted[session.pairs[past]]
        assert rows.shape == present.shape
        assert np.abs(rows - present).max() <= BOUND


def test_nothing_for_a_word(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first words nothing is compiled, and rows stay where they are."""
    ids, mask = text(1, 60)
    session = program.session(capacity=60)
    for _ in range(2):
        say(session, ids, mask, 9)
        say(session, ids, mask, 1)

    def compiled(*_: object) -> None:
        raise AssertionError("compiled once more")

    monkeypatch.setattr(compile_open, "compile_open", compiled)
    monkeypatch.setattr(compiler, "compile_model", compiled)
    before = {name: rows.ctypes.data for name, rows in session.past().items()}
    for count in (*[1] * 20, 3, *[1] * 10, 7):
        say(session, ids, mask, count)
    assert before == {n: rows.ctypes.data for n, rows in session.past().items()}
    assert len(program.variants) == 0


def test_a_mask_whose_length_has_a_name(cache: Cache) -> None:
    """It is the sum of what is kept and what is new."""
    model = models.decoder(total="total")
    session = nanoloom.compile(model, threads=1, cache=cache).session()
    ids, mask = text(1, 9)
    made = [say(session, ids, mask, count) for count in (4, 1, 1, 3)]
    wanted = models.whole(ids, mask)["logits"]
    assert np.abs(np.concatenate(made, 1) - wanted).max() <= BOUND
    assert not session.reason
    with pytest.raises(InputError, match="not what the others make it"):
        session({"input_ids": ids[:, :1], "attention_mask": mask[:, :5]})


def test_another_batch_begins_again(program: Program) -> None:
    session = program.session()
    say(session, *text(1, 4), 4)
    with pytest.raises(InputError, match=r"\[1, 2, 8\] is kept of each token"):
        say(session, *text(3, 9), 1)
    session.reset()
    assert say(session, *text(3, 9), 2).shape == (3, 2, models.WORDS)


def test_another_batch_behind_a_rewind_to_nothing(program: Program) -> None:
    """Larger, smaller, and the first again: what is kept is of this batch alone."""
    session = program.session(capacity=3)
    for batch in (1, 3, 2, 1):
        ids, mask = text(batch, 9)
        wanted = models.whole(ids, mask)["logits"]
        got = np.concatenate([say(session, ids, mask, n) for n in (4, 1, 4)], 1)
        assert np.abs(got - wanted).max() <= BOUND
        assert {x.shape[0] for x in session.past().values()} == {batch}
        session.rewind(0)


def test_where_positions_end(program: Program) -> None:
    ids, mask = text(1, 90)
    session = program.session()
    say(session, ids, mask, 69)
    say(session, ids, mask, 1)
    with pytest.raises(nanoloom.Error, match=r"index 70 is outside -70..69"):
        say(session, ids, mask, 1)
    assert session.length == 70
    with pytest.raises(InputError, match="71 of 70 tokens"):
        session.rewind(71)


@pytest.mark.parametrize("capacity", [-1, 1.5])
def test_room_is_a_number_of_rows(program: Program, capacity: int) -> None:
    told = f"capacity is a whole number of rows, not {capacity}"
    with pytest.raises(InputError, match=re.escape(told)):
        program.session(capacity)


def test_rows_that_it_starts_from_stay_as_they_are(cache: Cache) -> None:
    """They are the caller's, also where a rewind leaves room in them."""
    model = onnx.parser.parse_model(
        models.HEAD_TEXT + "g (float[batch, new, 2] x, float[batch, past, 2] past)"
        " => (float[batch, all, 2] present)"
        "{ present = Concat<axis = 1>(past, x) }"
    )
    session = nanoloom.compile(model, threads=1, cache=cache).session()
    given = np.zeros((1, 9, 2), np.float32)
    given.flags.writeable = False
    session.start({"past": given})
    session.rewind(4)
    session({"x": np.ones((1, 2, 2), np.float32)})
    kept = session.past()["past"]
    assert kept[0, :, 0].tolist() == [0, 0, 0, 0, 1, 1]
    assert not given.any()
    with pytest.raises(InputError, match=r"length is a whole number, not 1\.5"):
        session.rewind(1.5)  # type: ignore[arg-type]  # what a caller may give


def test_a_token_copies_no_keys(program: Program) -> None:
    """A copy would lie in the arena, which has no room for it behind 4096 tokens."""
    session = program.session()
    assert isinstance(session, CompiledSession)
    ids, mask = text(1, 4)
    say(session, ids, mask, 3)
    say(session, ids, mask, 1)
    keys = models.GROUPS * 4096 * models.HEAD * 4  # bytes
    rooms: list[int] = []
    for numbers, opened in zip(({"sequence": 3}, {}), all_sizes(session), strict=True):
        made = opened.variant(1)
        assert made is not None
        dims = {"batch": 1, "past": 4096} | numbers
        rooms.append(made.bound({d: dims[d] for d in made.dims}).library.arena_bytes)
    assert rooms[0] > keys  # a prompt's rows share keys that are turned
    assert rooms[1] < keys / 8


def all_sizes(session: CompiledSession) -> list[OpenProgram]:
    """Its programs: that of prompts, that of a token."""
    programs = session._programs  # pyright: ignore[reportPrivateUsage]  # nobody else asks
    return list(programs.values())


def test_what_is_copied(cache: Cache) -> None:
    """Keys that are changed again are no rows behind others."""
    changed = models.DECODER.replace(
        "present_0_key = Concat<axis = 2>(past_key_values_0_key, k2)",
        "k9 = Concat<axis = 2>(past_key_values_0_key, k2) present_0_key = Neg(k9)",
    ).replace("k3 = Unsqueeze(present_0_key", "k3 = Unsqueeze(k9")
    program = nanoloom.compile(models.decoder(changed), threads=1, cache=cache)
    ids, mask = text(1, 9)
    session = program.session()
    say(session, ids, mask, 5)
    rows = session.past()["past_key_values_0_key"].copy()
    assert session.reason == "output present_0_key: it is made by Neg, not by Concat"
    assert program.open.reason == "" and len(program.variants) == 0
    say(session, ids, mask, 2)
    again = session.past()["past_key_values_0_key"]
    assert again.shape == (1, 2, 7, 8) and (again[:, :, :5] == -rows).all()


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ({"a": "present_0_key"}, "a is no input"),
        ({"past_key_values_0_key": "b"}, "b no output"),
        ({}, "no input and output that are named past and present"),
        ({"past_key_values_0_key": "present_0_key"}, "0 of its dimensions are its own"),
    ],
)
def test_pairs_that_are_none(
    program: Program, pairs: dict[str, str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        program.session(pairs=pairs)


def test_a_model_without_past(cache: Cache) -> None:
    model = onnx.parser.parse_model(
        models.HEAD_TEXT + "g (float[n] x) => (float[n] y) { y = Relu(x) }"
    )
    with pytest.raises(InputError, match="named past and present"):
        nanoloom.compile(model, threads=1, cache=cache).session()
