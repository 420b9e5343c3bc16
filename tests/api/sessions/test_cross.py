"""Keys and values of an encoder are given once; a text in pieces is the whole."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom import compile_open
from nanoloom.api.program import Program
from nanoloom.api.sessions.session import Session
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from tests.api.sessions import cross

Array = np.ndarray
LENGTH = 9
# Sums of at most 32 products of numbers below 20, three behind each other.
BOUND = 3 * 40 * np.finfo(np.float32).eps * 20


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    return nanoloom.compile(cross.later(), threads=1, cache=cache)


def text(batch: int, source: int) -> tuple[Array, dict[str, Array]]:
    """Words, and what there is of an encoder."""
    random = np.random.default_rng([batch, source])
    ids = random.integers(0, cross.WORDS, (batch, LENGTH))
    states = random.standard_normal((batch, source, cross.WIDTH)).astype(np.float32)
    mask = np.where(random.random((batch, source)) < 0.2, -1000, 0).astype(np.float32)
    return ids, {"encoder_hidden_states": states, "encoder_attention_mask": mask}


def made_first(ids: Array, encoder: dict[str, Array]) -> dict[str, Array]:
    """All of a text at once, by ONNX's reference."""
    model, new = cross.first(), ids.shape[1]
    given = {"input_ids": ids, "attention_mask": cross.causal(new, new), **encoder}
    made = ReferenceEvaluator(model).run(None, given)
    return {x.name: y for x, y in zip(model.graph.output, made, strict=True)}  # type: ignore[arg-type] - a list


def say(session: Session, ids: Array, count: int, **encoder: Array) -> Array:
    end = session.length + count
    new = ids[:, session.length : end]
    words = {"input_ids": new, "attention_mask": cross.causal(count, end)}
    return session({**words, **encoder})["logits"]


@pytest.mark.parametrize(("batch", "source"), [(1, 13), (2, 21)])
def test_a_text_goes_on_from_another_models_outputs(
    program: Program, batch: int, source: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, encoder = text(batch, source)
    want = made_first(ids, encoder)["logits"]
    session = program.session()
    made = made_first(ids[:, :4], encoder)
    session.start({**made, "encoder_attention_mask": encoder["encoder_attention_mask"]})
    assert session.length == 4
    pieces = [say(session, ids, count) for count in (1, 2)]
    with monkeypatch.context() as still:
        still.setattr(compile_open, "compile_open", None)
        pieces += [say(session, ids, 1) for _ in range(2)]
    assert not session.reason
    got = np.concatenate(pieces, 1)
    assert (abs(got - want[:, 4:]) <= BOUND).all()
    assert not (abs(np.roll(got, 1, 1) - want[:, 4:]) <= BOUND).all()


def test_one_program_takes_encoders_of_any_length(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = program.session()
    for source in (5, 19, 30):
        ids, encoder = text(1, source)
        session.start({**made_first(ids[:, :4], encoder), **encoder})
        got = say(session, ids, 1)
        want = made_first(ids[:, :5], encoder)["logits"][:, 4:]
        assert (abs(got - want) <= BOUND).all()
        monkeypatch.setattr(compile_open, "compile_open", None)  # the first was all


def test_what_is_given_once_stays_until_a_reset(program: Program) -> None:
    ids, encoder = text(1, 13)
    made = made_first(ids, encoder)
    given = {
        "encoder_attention_mask": encoder["encoder_attention_mask"],
        "past_key_values_0_encoder_key": made["present_0_encoder_key"],
        "past_key_values_0_encoder_value": made["present_0_encoder_value"],
    }
    session = program.session()
    assert session.once == given.keys()
    got = [say(session, ids, 3, **given), say(session, ids, 1)]
    want = made["logits"][:, :4]
    assert (abs(np.concatenate(got, 1) - want) <= BOUND).all()
    session.reset()
    with pytest.raises(InputError, match=r"encoder_attention_mask, .* is missing"):
        say(session, ids, 1)


def test_what_is_given_once_is_what_it_was(program: Program) -> None:
    """The arrays are the caller's, who may write another text into them."""
    ids, encoder = text(1, 13)
    made = made_first(ids, encoder)
    given = {
        "encoder_attention_mask": encoder["encoder_attention_mask"].copy(),
        "past_key_values_0_encoder_key": made["present_0_encoder_key"].copy(),
        "past_key_values_0_encoder_value": made["present_0_encoder_value"].copy(),
    }
    session = program.session()
    say(session, ids, 3, **given)
    for array in given.values():
        array.fill(-7)
    got = say(session, ids, 1)
    assert (abs(got - made["logits"][:, 3:4]) <= BOUND).all()


def test_names_that_are_said(program: Program) -> None:
    session = program.session(once=["attention_mask"])
    assert session.once == {"attention_mask"}
    with pytest.raises(InputError, match="words is no input, or grows"):
        program.session(once=["words"])
    with pytest.raises(InputError, match="decoder_key is no input, or grows"):
        program.session(once=["past_key_values_0_decoder_key"])


def test_starts_that_do_not_fit(program: Program) -> None:
    session = program.session()
    with pytest.raises(InputError, match="nothing is given for past_key_values_0_dec"):
        session.start({"present_0_decoder_key": np.zeros((1, 4, 3, 8), np.float32)})
    made = {
        f"present_0_decoder_{name}": np.zeros((1, 4, length, 8), np.float32)
        for name, length in (("key", 3), ("value", 2))
    }
    with pytest.raises(InputError, match="dimension past is 2 here and 3 in input"):
        session.start(made)
    model = cross.later()
    model.graph.input[4].type.tensor_type.shape.dim[2].dim_param = "past_values"
    with pytest.raises(InputError, match=r"of \[2, 3\] tokens, not of as many"):
        nanoloom.compile(model, threads=1).session().start(made)
