"""Whisper: an encoder of sound, and a decoder that makes masks and places itself."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom import compile_open, compiler
from nanoloom.cache import Cache
from tests.api.sessions import whisper

Array = np.ndarray
TOKENS = 9
# Sums of at most 24 products of numbers below 20, of seven operators in a row.
BOUND = 7 * 24 * np.finfo(np.float32).eps * 20


def reference(model: onnx.ModelProto, given: dict[str, Array]) -> dict[str, Array]:
    made = ReferenceEvaluator(model).run(None, given)  # type: ignore[arg-type] - a dict
    return {x.name: y for x, y in zip(model.graph.output, made, strict=True)}  # type: ignore[arg-type] - a list


def sound(batch: int) -> Array:
    random = np.random.default_rng(batch)
    return random.standard_normal((batch, whisper.MELS, whisper.FRAMES), np.float32)


@pytest.mark.parametrize("batch", [1, 3])
def test_states_of_a_sound(cache: Cache, batch: int) -> None:
    program = nanoloom.compile(whisper.encoder(), threads=1, cache=cache)
    given = {"input_features": sound(batch)}
    got = program(given)["last_hidden_state"]
    want = reference(whisper.encoder(), given)["last_hidden_state"]
    assert (abs(got - want) <= BOUND).all()
    assert not (abs(got[:, ::-1] - want) <= BOUND).all()


def test_the_first_tokens_of_any_number(cache: Cache) -> None:
    program = nanoloom.compile(whisper.first(), threads=1, cache=cache)
    for batch, count in ((1, 4), (2, 3)):
        got = program(start(batch, count))
        want = reference(whisper.first(), start(batch, count))
        assert all((abs(got[name] - want[name]) <= BOUND).all() for name in want)
    assert not program.open.reason


def start(batch: int, count: int) -> dict[str, Array]:
    random = np.random.default_rng([batch, count])
    ids = random.integers(0, whisper.WORDS, (batch, count))
    states = random.standard_normal((batch, whisper.SOURCE, whisper.WIDTH), np.float32)
    return {"input_ids": ids, "encoder_hidden_states": states}


@pytest.mark.parametrize("batch", [1, 2])
def test_a_text_is_continued(
    cache: Cache, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The places of a batch are small matrices that depend on what is kept."""
    given = start(batch, TOKENS)
    ids = given["input_ids"]
    want = reference(whisper.first(), given)["logits"]
    session = nanoloom.compile(whisper.later(), threads=1, cache=cache).session()
    session.start(reference(whisper.first(), {**given, "input_ids": ids[:, :3]}))
    pieces = [session({"input_ids": ids[:, 3:4]})["logits"]]

    def compiled(*_: object) -> None:
        raise AssertionError("compiled once more")

    monkeypatch.setattr(compile_open, "compile_open", compiled)
    monkeypatch.setattr(compiler, "compile_model", compiled)
    pieces += [session({"input_ids": ids[:, i : i + 1]})["logits"] for i in range(4, 9)]
    assert not session.reason and session.length == TOKENS
    got = np.concatenate(pieces, 1)
    assert (abs(got - want[:, 3:]) <= BOUND).all()
    assert not (abs(np.roll(got, 1, 1) - want[:, 3:]) <= BOUND).all()


def test_several_tokens_behind_others(cache: Cache) -> None:
    given = start(2, TOKENS)
    ids = given["input_ids"]
    want = reference(whisper.first(), given)["logits"]
    session = nanoloom.compile(whisper.later(), threads=1, cache=cache).session()
    session.start(reference(whisper.first(), {**given, "input_ids": ids[:, :3]}))
    got = [session({"input_ids": ids[:, a:b]})["logits"] for a, b in ((3, 5), (5, 9))]
    assert not session.reason
    assert (abs(np.concatenate(got, 1) - want[:, 3:]) <= BOUND).all()
