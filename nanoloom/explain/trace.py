"""A profile as a timeline: JSON of trace events, or Perfetto's own track events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nanoloom.errors import Error
from nanoloom.explain.profile import Profile

TRACK, SEQUENCE = 1, 1  # of Perfetto: the only ones


@dataclass(frozen=True)
class Slice:
    """name, and nanoseconds from the first run.  step: its number, -1 of a run."""

    name: str
    begin: float
    duration: float
    step: int = -1


def slices(found: Profile) -> Iterator[Slice]:
    """Each run, and its steps one behind the other within it."""
    for number, (began, row) in enumerate(zip(found.begins, found.runs, strict=True)):
        at = began * 1e9
        yield Slice(f"run {number}", at, float(row.sum()))
        for step, taken in enumerate(row.tolist()):
            yield Slice(found.names[step], at, taken, step)
            at += taken


def trace(found: Profile, model: str) -> dict[str, Any]:
    """Events as Perfetto and Chrome's tracing read them: a slice for each step."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": model}},
        {
            "ph": "M",
            "name": "thread_name",
            "pid": 1,
            "tid": 1,
            "args": {"name": f"steps, {found.threads} threads"},
        },
    ]
    for each in slices(found):
        event = {"ph": "X", "name": each.name, "pid": 1, "tid": 1}
        event |= {"ts": each.begin / 1e3, "dur": each.duration / 1e3}
        events.append(event if each.step < 0 else event | {"args": {"step": each.step}})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def perfetto_trace(found: Profile, model: str) -> bytes:
    """The same as Perfetto's protocol buffers; raises Error without the package."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder
    except ImportError:
        hint = "pip install 'nanoloom[profile]', or name a file .json"
        raise Error("perfetto is not installed", hint=hint) from None
    kinds: Any = messages.TrackEvent
    builder: Any = TraceProtoBuilder()
    track = builder.add_packet().track_descriptor
    track.uuid = TRACK
    track.name = f"{model}: steps, {found.threads} threads"

    def event(at: float, kind: int, name: str = "") -> None:
        packet = builder.add_packet()
        packet.timestamp = round(at)
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.track_event.type = kind
        packet.track_event.track_uuid = TRACK
        if name:
            packet.track_event.name = name

    ends: list[float] = []
    for each in slices(found):
        while len(ends) > (each.step >= 0):  # a run stays around its steps
            event(ends.pop(), kinds.TYPE_SLICE_END)
        event(each.begin, kinds.TYPE_SLICE_BEGIN, each.name)
        ends.append(each.begin + each.duration)
    while ends:
        event(ends.pop(), kinds.TYPE_SLICE_END)
    made: bytes = builder.serialize()
    return made
