"""A merged decoder that reads an encoder: the first call makes its keys and values."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, compose, helper
from onnx_ir import serde

import nanoloom
from nanoloom import compile_open, compiler
from nanoloom.api.sessions.session import Session
from nanoloom.cache import Cache
from nanoloom.errors import Unsupported
from nanoloom.graph.encoder_kv_cache import keep_encoder_caches
from tests.api.sessions import whisper
from tests.api.sessions.test_whisper import BOUND, TOKENS, reference, start

Array = np.ndarray
PAST = [f"past_key_values_0_encoder_{kind}" for kind in ("key", "value")]


def branch(model: onnx.ModelProto, name: str) -> onnx.GraphProto:
    """The nodes of a model with names of their own, which reads what is outside."""
    kept = onnx.GraphProto()
    kept.CopyFrom(model.graph)
    inputs = [x.name for x in kept.input]
    weights = [x.name for x in kept.initializer]
    del kept.input[:], kept.initializer[:]
    made = compose.add_prefix_graph(kept, f"{name}/")
    outside = {f"{name}/{x}": x for x in (*inputs, *weights)}
    for node in made.node:
        names = [outside.get(x, x) for x in node.input]
        del node.input[:]
        node.input.extend(names)
    return made


def merged(gives: str) -> onnx.ModelProto:
    """gives: what the branch for tokens makes of an encoder's keys and values.

    A Constant is one without rows.
    """
    first, later = whisper.first(), whisper.later()
    for kind, past in zip(("key", "value"), PAST, strict=True):
        name = f"present_0_encoder_{kind}"
        node = helper.make_node(gives, [past], [name])
        if gives == "Constant":
            zeros = helper.make_tensor("nothing", TensorProto.FLOAT, [0, 2, 1, 8], [])
            node = helper.make_node("Constant", [], [name], value=zeros)
        later.graph.node.append(node)
        shape = ["b", 2, "s", 8]
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        later.graph.output.append(output)
    outputs = [x.name for x in first.graph.output]
    last = {x.name: x for x in later.graph.output}
    del later.graph.output[:]
    later.graph.output.extend(last[name] for name in outputs)
    choice = helper.make_node(
        "If",
        ["use_cache_branch"],
        outputs,
        then_branch=branch(later, "later"),
        else_branch=branch(first, "first"),
    )
    chooser = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    given = {x.name: x for x in (*first.graph.input, *later.graph.input)}
    for name in PAST:
        given[name].type.tensor_type.shape.dim[2].dim_param = "source_out"
    weights = {x.name: x for x in (*later.graph.initializer, *first.graph.initializer)}
    made = [*first.graph.output]
    for output in made[1:3]:
        output.type.tensor_type.shape.dim[2].dim_param = "total"
    inputs = [*given.values(), chooser]
    graph = helper.make_graph([choice], "g", inputs, made, [*weights.values()])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def say(session: Session, ids: Array, count: int, **given: Array) -> Array:
    end = session.length + count
    made = session({"input_ids": ids[:, session.length : end], **given})
    assert list(made) == ["logits"] and session.length == end
    return made["logits"]


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize(("batch", "gives"), [(1, "Constant"), (2, "Identity")])
def test_keys_of_an_encoder_are_computed_once(
    cache: Cache, batch: int, gives: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = start(batch, TOKENS)
    ids, states = given["input_ids"], given["encoder_hidden_states"]
    want = reference(whisper.first(), given)
    program = nanoloom.compile(merged(gives), threads=1, cache=cache)
    session = program.session(capacity=TOKENS)
    assert len(session.pairs) == 2 and {*PAST} <= session.once
    pieces = [say(session, ids, 3, encoder_hidden_states=states)]
    pieces.append(say(session, ids, 1))
    kept = session.past()

    def compiled(*_: object) -> None:
        raise AssertionError("compiled once more")

    monkeypatch.setattr(compile_open, "compile_open", compiled)
    monkeypatch.setattr(compiler, "compile_model", compiled)
    pieces += [say(session, ids, 1) for _ in range(5)]
    assert not session.reason
    for name, array in session.past().items():
        assert array.ctypes.data == kept[name].ctypes.data  # neither moved nor made
        made = want[name.replace("past_key_values", "present")]
        assert (abs(array - made) <= BOUND).all()
    assert session.past().keys() > {*PAST}
    got = np.concatenate(pieces, 1)
    assert (abs(got - want["logits"]) <= BOUND).all()
    assert not (abs(np.roll(got, 1, 1) - want["logits"]) <= BOUND).all()


def test_another_text(cache: Cache) -> None:
    """The first call after a rewind makes keys and values of other states."""
    session = nanoloom.compile(merged("Constant"), threads=1, cache=cache).session()
    given = start(1, TOKENS)
    for states in (given["encoder_hidden_states"], given["encoder_hidden_states"] / 2):
        session.rewind(0)
        pieces = [say(session, given["input_ids"], 3, encoder_hidden_states=states)]
        pieces += [say(session, given["input_ids"], count) for count in (1, 2)]
        want = reference(whisper.first(), {**given, "encoder_hidden_states": states})
        got = np.concatenate(pieces, 1)
        assert (abs(got - want["logits"][:, :6]) <= BOUND).all()
    assert not session.reason


def test_keys_that_each_token_changes(cache: Cache) -> None:
    """What the outputs are is the next call's inputs, and why is said."""
    model = merged("Neg")
    session = nanoloom.compile(model, threads=1, cache=cache).session()
    given = start(1, TOKENS)
    ids, encoder = given["input_ids"], given["encoder_hidden_states"]
    names = [x.name for x in model.graph.input if x.name.startswith("past")]
    past = {name: np.zeros((1, 2, 0, 8), np.float32) for name in names}
    for begin, end in ((0, 3), (3, 4), (4, 5)):
        got = say(session, ids, end - begin, encoder_hidden_states=encoder)
        now = {"input_ids": ids[:, begin:end], "encoder_hidden_states": encoder}
        made = reference(
            model, {**now, **past, "use_cache_branch": np.array([begin > 0])}
        )
        assert (abs(got - made["logits"]) <= BOUND).all()
        past = {x: made[x.replace("past_key_values", "present")] for x in names}
    assert "it is not past_key_values_0_encoder_key" in session.reason


def test_keys_that_are_read_before_they_are_there() -> None:
    model = serde.deserialize_model(whisper.later())
    pairs = [(PAST[0], "logits")]
    with pytest.raises(Unsupported, match="is read where nothing is kept yet"):
        keep_encoder_caches(model.graph, pairs, starts=True)
