"""A profile as a timeline: JSON of trace events, or Perfetto's own track events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nanoloom.errors import Error
from nanoloom.explain.profile import Profile
from nanoloom.runtime.slices import BEGIN, THREAD

SEQUENCE = 1  # of Perfetto: the only one
STEPS = 1  # the track of the steps; those of the threads follow


@dataclass(frozen=True)
class Slice:
    """name, and nanoseconds from the first run.  step: its number, -1 of a run."""

    name: str
    begin: float
    duration: float
    step: int = -1
    track: int = STEPS


def tracks(found: Profile) -> dict[int, str]:
    """Their names."""
    threads = range(1, len(numbers_of_threads(found)) + 1)
    names = {STEPS + number: f"thread {number}" for number in threads}
    return {STEPS: f"steps, {found.threads} threads", **names}


def numbers_of_threads(found: Profile) -> dict[int, int]:
    """From 1, in the order in which they began."""
    seen = (int(each) for rows in found.slices for each in rows[:, THREAD])
    return {each: number for number, each in enumerate(dict.fromkeys(seen), 1)}


def of_threads(found: Profile) -> Iterator[Slice]:
    """What each did, a track each, in the runs in which they were noted."""
    numbers = numbers_of_threads(found)
    for began, rows in zip(found.begins, found.slices, strict=False):
        for thread, step, begin, end in rows[np.argsort(rows[:, BEGIN])].tolist():
            at, track = began * 1e9 + begin, STEPS + numbers[thread]
            yield Slice(found.names[step], at, end - begin, step, track)


def of_steps(found: Profile) -> Iterator[Slice]:
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
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": model}}
    ]
    for track, name in tracks(found).items():
        event = {"ph": "M", "name": "thread_name", "pid": 1, "tid": track}
        events.append(event | {"args": {"name": name}})
    for each in (*of_steps(found), *of_threads(found)):
        event = {"ph": "X", "name": each.name, "pid": 1, "tid": each.track}
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
    for number, name in tracks(found).items():
        track = builder.add_packet().track_descriptor
        track.uuid, track.name = number, f"{model}: {name}"

    def event(at: float, kind: int, track: int, name: str = "") -> None:
        packet = builder.add_packet()
        packet.timestamp = round(at)
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        if name:
            packet.track_event.name = name

    ends: list[float] = []
    for each in of_steps(found):
        while len(ends) > (each.step >= 0):  # a run stays around its steps
            event(ends.pop(), kinds.TYPE_SLICE_END, STEPS)
        event(each.begin, kinds.TYPE_SLICE_BEGIN, STEPS, each.name)
        ends.append(each.begin + each.duration)
    while ends:
        event(ends.pop(), kinds.TYPE_SLICE_END, STEPS)
    for each in of_threads(found):
        event(each.begin, kinds.TYPE_SLICE_BEGIN, each.track, each.name)
        event(each.begin + each.duration, kinds.TYPE_SLICE_END, each.track)
    made: bytes = builder.serialize()
    return made
