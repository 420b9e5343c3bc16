"""The scanner keeps every byte of a model but the large weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from nanoloom.errors import ModelError
from nanoloom.frontend.proto_walk import tensors
from nanoloom.frontend.wire import THRESHOLD, Scanner, encode
from tests.frontend import models


def strip(content: bytes) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(Scanner(content, "test", "here").strip())


def restore(stripped: onnx.ModelProto, content: bytes) -> onnx.ModelProto:
    """Put the bytes that the references point to back into the proto."""
    for tensor, _ in tensors(stripped, ""):
        if tensor.external_data:
            facts = {entry.key: entry.value for entry in tensor.external_data}
            assert facts["location"] == "here"
            start = int(facts["offset"])
            tensor.raw_data = content[start : start + int(facts["length"])]
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    return stripped


def with_typed_data() -> onnx.ModelProto:
    tensor = helper.make_tensor("w", onnx.TensorProto.FLOAT, [40, 40], [0.5] * 1600)
    made = models.linear(40, 40)
    made.graph.initializer[0].CopyFrom(tensor)
    return made


def with_constants_everywhere() -> onnx.ModelProto:
    big = numpy_helper.from_array(np.ones((30, 50), np.float32), "big")
    function = helper.make_function(
        "local",
        "F",
        ["a"],
        ["r"],
        [
            helper.make_node("Constant", [], ["c"], value=big),
            helper.make_node("MatMul", ["a", "c"], ["r"]),
        ],
        [helper.make_opsetid("", 18)],
    )
    made = models.branches()
    made.functions.append(function)
    made.graph.node.append(helper.make_node("Constant", [], ["k"], value=big))
    return made


MODELS = (models.linear, models.branches, with_typed_data, with_constants_everywhere)


@pytest.mark.parametrize("make", MODELS)
def test_nothing_is_lost(make) -> None:
    whole = make()
    content = whole.SerializeToString()
    assert restore(strip(content), content) == whole


@pytest.mark.parametrize("make", (models.linear, models.branches))
def test_large_weights_are_left_out(make) -> None:
    content = make().SerializeToString()
    assert strip(content).ByteSize() < 1500 < THRESHOLD < len(content)


def test_small_and_typed_weights_stay() -> None:
    stripped = strip(with_typed_data().SerializeToString())
    assert len(stripped.graph.initializer[0].float_data) == 1600
    assert stripped.graph.initializer[1].HasField("raw_data")


def test_of_two_raw_datas_the_last_counts() -> None:
    tensor = models.weight("w", (37, 53))
    first = onnx.TensorProto(raw_data=b"x" * 6000).SerializeToString()
    twice = first + tensor.SerializeToString()
    graph = encode(5 << 3 | 2) + encode(len(twice)) + twice
    content = encode(7 << 3 | 2) + encode(len(graph)) + graph
    stripped = strip(content)
    assert stripped.graph.initializer[0].raw_data == b""
    assert restore(stripped, content).graph.initializer[0] == tensor


def test_a_last_small_raw_data_wins_over_a_large_one() -> None:
    twice = b"".join(
        onnx.TensorProto(raw_data=data).SerializeToString()
        for data in (b"x" * 6000, b"abcd")
    )
    graph = encode(5 << 3 | 2) + encode(len(twice)) + twice
    content = encode(7 << 3 | 2) + encode(len(graph)) + graph
    assert strip(content).graph.initializer[0].raw_data == b"abcd"


def test_out_of_patience_copies_unseen() -> None:
    content = models.branches().SerializeToString()
    scanner = Scanner(content, "test", "here", fields_left=2)
    assert onnx.ModelProto.FromString(scanner.strip()) == models.branches()


@given(st.integers(0, 2**64 - 1))
def test_numbers_are_read_as_written(value: int) -> None:
    text = encode(value)
    assert Scanner(text, "test", "").number_at(0, len(text)) == (value, len(text))


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_copied_or_refused(content: bytes) -> None:
    try:
        assert Scanner(content, "test", "").strip() == content
    except ModelError as error:
        assert "\n" not in str(error)
