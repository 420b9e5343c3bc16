"""What a profile is written as: timelines, node data, a copy of the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from nanoloom.errors import Error
from nanoloom.explain.node_times import annotated, overlay
from nanoloom.explain.profile import Layer, Profile
from nanoloom.explain.trace import of_steps, of_threads, perfetto_trace
from tests.explain.models import SLOW, model

LAYERS = (
    Layer("MatMul_0", (0, 1), 3e-5, 2e-5, 4e-5, 10**6, 10**4, 1e-5, ("MatMul_0", "R")),
    Layer("Exp_4", (2,), 1e-5, 1e-5, 1e-5),
)
NAMES = ("MatMul_0", "MatMul_0", "Exp_4")
RUNS = np.array([[10, 20, 30], [11, 21, 31]])
OUTPUTS = {"MatMul_0": ("m",), "R": ("y",), "Exp_4": ("z",)}
FOUND = Profile(LAYERS, NAMES, 1e-4, 2, RUNS, (0.0, 1e-6), OUTPUTS)


def named(path: Path, proto: ModelProto) -> Path:
    onnx.save(proto, path)
    return path


def test_steps_lie_within_their_run() -> None:
    found = list(of_steps(FOUND))
    runs = [each for each in found if each.step < 0]
    assert [(x.begin, x.duration) for x in runs] == [(0, 60), (1000, 63)]
    for run, row in zip(runs, RUNS, strict=True):
        own = [x for x in found if x.step >= 0 and 0 <= x.begin - run.begin < 70]
        assert [x.duration for x in own] == row.tolist()
        assert own[-1].begin + own[-1].duration == run.begin + run.duration


def test_track_events_are_nested() -> None:
    """Each slice ends what began last, and time does not go back."""
    trace = messages.Trace()
    trace.ParseFromString(perfetto_trace(FOUND, "slow.onnx"))
    (track, *events) = trace.packet
    assert "slow.onnx" in track.track_descriptor.name
    waiting: list[str] = []
    times = [packet.timestamp for packet in events]
    assert times == sorted(times)
    for packet in events:
        if packet.track_event.type == messages.TrackEvent.TYPE_SLICE_BEGIN:
            waiting.append(packet.track_event.name)
            assert len(waiting) == 1 + (packet.track_event.name in NAMES)
        else:
            waiting.pop()
    assert not waiting and len(events) == 2 * 2 * (1 + len(NAMES))


def test_threads_have_tracks_of_their_own() -> None:
    """Each of its own number, beside that of the steps, in the runs that were noted."""
    rows = np.array([[77, 0, 0, 9], [55, 0, 2, 8], [77, 1, 12, 30], [55, 2, 31, 59]])
    found = replace(FOUND, slices=(rows,))
    own = [(x.track, x.name, x.begin, x.duration) for x in of_threads(found)]
    assert own == [
        (2, "MatMul_0", 0, 9), (3, "MatMul_0", 2, 6), (2, "MatMul_0", 12, 18),
        (3, "Exp_4", 31, 28),
    ]  # fmt: skip
    trace = messages.Trace()
    trace.ParseFromString(perfetto_trace(found, "slow.onnx"))
    tracks = [
        x.track_descriptor for x in trace.packet if x.HasField("track_descriptor")
    ]
    assert [x.uuid for x in tracks] == [1, 2, 3]
    assert tracks[2].name == "slow.onnx: thread 2"
    of = [x.track_event.track_uuid for x in trace.packet if x.HasField("track_event")]
    assert (of.count(2), of.count(3)) == (4, 4)


def test_node_data_has_a_value_for_each_layer() -> None:
    found = overlay(FOUND)
    assert found["results"] == {"m": {"value": 3e-5}, "z": {"value": 1e-5}}
    assert [each["stop"] for each in found["gradient"]] == [0.0, 1.0]


def test_a_copy_says_times_and_whose_they_are(tmp_path: Path) -> None:
    place = named(tmp_path / "slow.onnx", model(SLOW))
    copy = annotated(place, FOUND, tmp_path / "copy.onnx")
    onnx.checker.check_model(copy)
    said = {
        node.output[0]: {x.key: x.value for x in node.metadata_props}
        for node in copy.graph.node
    }
    assert said["m"]["nanoloom.time"] == "30.0 us"
    assert said["m"]["nanoloom.share_of_roof"] == "33%"
    assert said["y"] == {"nanoloom.computed_with": "MatMul_0"}
    assert not said["t"] and said["z"]


def test_a_copy_finds_its_weights(tmp_path: Path) -> None:
    proto = model(SLOW)
    weight = helper.make_tensor("c", TensorProto.FLOAT, [1], b"\0\0\0\0", raw=True)
    proto.graph.initializer.append(weight)
    place = tmp_path / "apart.onnx"
    onnx.save(proto, place, save_as_external_data=True, size_threshold=0)
    annotated(place, FOUND, tmp_path / "copy.onnx")
    with pytest.raises(Error, match="weights are in files beside it"):
        annotated(place, FOUND, tmp_path / "other" / "copy.onnx")
