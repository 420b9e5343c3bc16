"""A damaged model loads or is refused in one sentence; nothing else ever happens."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from nanoloom.errors import Error
from nanoloom.frontend import inputs, symbolic_dims
from nanoloom.frontend.onnx import load
from nanoloom.frontend.problems import problems
from tests.frontend import models

MEMORY = 10**8  # bytes that inputs may take here


def constants() -> onnx.ModelProto:
    numbers = helper.make_node("Constant", [], ["c"], value_floats=[1.0, float("nan")])
    other = helper.make_node("Constant", [], ["k"], value=models.weight("k", (2, 3)))
    node = helper.make_node("Conv", ["x", "k"], ["y"], pads=[1, 1])
    return models.chain([numbers, other, node])


BASES = (
    models.linear().SerializeToString(),
    models.linear(3, 4).SerializeToString(),
    models.branches().SerializeToString(),
    models.calls().SerializeToString(),
    constants().SerializeToString(),
)
MESSAGES = settings(max_examples=250, deadline=None)


def use(content: bytes) -> None:
    """Load a model and everything in it; only an `Error` of one line may come out."""
    try:
        model = load(content)
        for graph in model.graphs():
            for value in graph.initializers.values():
                assert value.const_value is not None
                value.const_value.numpy()
        for problem in problems(model):
            assert "\n" not in str(problem)
        bound = symbolic_dims.bind(
            model, dict.fromkeys(symbolic_dims.symbols(model), 3)
        )
        inputs.random_inputs(inputs.input_specs(bound), memory=MEMORY)
        ir.to_proto(bound)
    except Error as error:
        assert len(str(error).splitlines()) == 1


def test_cut_off_anywhere() -> None:
    content = BASES[1]
    for size in range(len(content)):
        use(content[:size])
    use(BASES[0][:5000])


@given(st.sampled_from(BASES), st.data())
@MESSAGES
def test_changed_bytes(content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        # The front of the file is its structure, the back mostly numbers.
        limit = data.draw(st.sampled_from((min(300, len(damaged)), len(damaged))))
        damaged[data.draw(st.integers(0, limit - 1))] = data.draw(st.integers(0, 255))
    use(bytes(damaged))


@given(st.sampled_from(BASES), st.data())
@MESSAGES
def test_inserted_and_removed_bytes(content: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(content)))
    gap = data.draw(st.integers(0, 40))
    use(content[:at] + data.draw(st.binary(max_size=20)) + content[at + gap :])


@given(st.binary(max_size=300))
@MESSAGES
def test_any_bytes(content: bytes) -> None:
    use(content)
    use(b"\x08\x09" + content)


NAMES = ["", "x", "y", "w", "b", "a", "r", "then_w", "flag", "local", "ai.onnx", "Add",
         "If", "Loop", "Twice", "com.microsoft", "slope", "value", "batch", "batch+1",
         "0*8**3", "?", "-1", "n//0", "\n"]  # fmt: skip
NUMBERS = [*range(-2, 29), 37, 40, 53, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63)]
VALUES: dict[int, st.SearchStrategy] = {
    FieldDescriptor.TYPE_STRING: st.sampled_from(NAMES),
    FieldDescriptor.TYPE_BYTES: st.sampled_from([b"", b"abc", b"\xff", b"\0" * 5000]),
    FieldDescriptor.TYPE_FLOAT: st.sampled_from([0.0, 1.0, float("nan")]),
    FieldDescriptor.TYPE_DOUBLE: st.sampled_from([0.0, 1.0, float("inf")]),
}


def messages(message: Message) -> list[Message]:
    found = [message]
    for descriptor, values in message.ListFields():
        if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in values if descriptor.is_repeated else (values,):
                found += messages(inner)
    return found


def is_in_range(field: FieldDescriptor, value: object) -> bool:
    small = field.cpp_type in (FieldDescriptor.CPPTYPE_INT32,)
    return not (small and isinstance(value, int) and not -(2**31) <= value < 2**31)


def change(model: Message, draw: Callable) -> None:
    """Set, add or remove one field of one message, well-formed but maybe senseless."""
    everywhere = messages(model)
    message = draw(st.sampled_from(everywhere))
    field = draw(st.sampled_from(list(message.DESCRIPTOR.fields)))
    if draw(st.integers(0, 3)) == 0:
        message.ClearField(field.name)
        return
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        same = [m for m in everywhere if m.DESCRIPTOR is field.message_type]
        content = draw(st.sampled_from(same)).SerializeToString() if same else b""
        target = getattr(message, field.name)
        (target.add() if field.is_repeated else target).MergeFromString(content)
        return
    if field.type == FieldDescriptor.TYPE_ENUM:
        numbers = [value.number for value in list(field.enum_type.values)]
        value = draw(st.sampled_from(numbers))
    else:
        value = draw(VALUES.get(field.type, st.sampled_from(NUMBERS)))
    if not is_in_range(field, value) or (field.type == 4 and value < 0):
        return
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


@given(st.sampled_from(BASES[1:]), st.data())
@settings(max_examples=200, deadline=None)
def test_senseless_messages(content: bytes, data: st.DataObject) -> None:
    model = onnx.ModelProto.FromString(content)
    for _ in range(data.draw(st.integers(1, 3))):
        change(model, data.draw)
    use(model.SerializeToString())


def test_the_undamaged_models_load() -> None:
    """Otherwise the tests above would prove nothing."""
    for content in BASES:
        model = load(content)
        assert problems(model) == []
        assert all(
            np.isfinite(value.const_value.numpy()).all()
            for value in model.graph.initializers.values()
            if value.const_value is not None
        )
