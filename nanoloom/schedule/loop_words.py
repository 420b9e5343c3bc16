"""A script's operations for the loops of a stage's vector code."""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.nest.extent import Lanes
from nanoloom.nest.loop import How, Loop
from nanoloom.nest.statement import Statement
from nanoloom.schedule.inner_loops import is_point


def loop_words(
    stage: Statement, loops: tuple[Loop, ...]
) -> Iterator[tuple[str, dict[str, object]]]:
    """nanoloom's own operations for the loops of vector code, with their values."""
    vectors = [loop for loop in reversed(loops) if loop.how is How.VECTOR]
    for loop in (*vectors, *(x for x in loops if x not in vectors)):
        axis = stage.place(loop.axis)
        if isinstance(loop.trips, Lanes):
            values = {"axis": axis, **width(loop.trips), "chains": loop.chains}
            yield "vectorize", {**values, "form": loop.form}
        elif loop.how is How.UNROLLED:
            word = "unroll_and_jam" if is_point(loop) else "unroll"
            yield word, {"axis": axis, "count": loop.trips}
        elif loop.ahead:
            yield "pipeline", {"axis": axis}


def width(lanes: Lanes) -> dict[str, object]:
    """Of vectors, in a word's fields."""
    return {"lanes": lanes, "scalable": lanes.scalable}
