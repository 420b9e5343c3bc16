"""What of a kernel is slower than it could be: seen in its loops, said in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nanoloom.explain.work import bytes_of
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import number, whole
from nanoloom.nest.steps import points as points_of
from nanoloom.schedule.directives.scalarize import Scalarize
from nanoloom.schedule.language import Schedule
from nanoloom.target.facts import Target

# Points of a stage from which on it is said that they are computed one by one.
MANY = 64


def fallbacks(
    nest: LoopNest,
    schedule: Schedule | None,
    target: Target,
    nodes: Sequence[str],
    floats: Mapping[str, str],
) -> tuple[str, ...]:
    """Of a scheduled nest.  floats: nodes of a quantized network that are computed in
    floats, each with its reason."""
    found = [*scalar_loops(nest, schedule, target), *copies(nest)]
    found += [f"in floats: {node}: {floats[node]}" for node in nodes if node in floats]
    return tuple(found)


def scalar_loops(
    nest: LoopNest, schedule: Schedule | None, target: Target
) -> Iterator[str]:
    """Stages whose points are computed one by one."""
    if target.is_scalar:
        return
    words = schedule.directives if schedule else ()
    called = {word.stage for word in words if isinstance(word, Scalarize)}
    for stage in nest.stages:
        if stage.name in called or stage.calls:
            functions = ", ".join(x for x in stage.body if x.startswith("math."))
            why = f": {functions} has no form on vectors" if functions else ""
            yield f"scalar loop: {stage.name}{why}"
        elif is_scalar(nest, stage):
            yield f"scalar loop: {stage.name} has no vectors"


def is_scalar(nest: LoopNest, stage: Statement) -> bool:
    placement = nest.placement(stage.name)
    vectors = any(isinstance(loop.trips, Lanes) for loop in placement.loops)
    works = bool(stage.reads) or stage.inside is not None
    many = points_of(whole(stage)) >= MANY
    long = any(number(axis.extent) > 1 for axis in stage.axes)
    return works and many and long and not vectors and placement.by is None


def copies(nest: LoopNest) -> Iterator[str]:
    """A kernel that computes nothing: it moves numbers to where others want them."""
    if nest.stages and all(moves(stage) for stage in nest.stages):
        read = bytes_of(nest, (Role.RESULT,)) if is_known(nest) else 0
        yield f"copy: it only moves numbers{f', {read:,} bytes' if read else ''}"


def is_known(nest: LoopNest) -> bool:
    return all(isinstance(n, int) for b in nest.buffers for n in b.shape)


def moves(stage: Statement) -> bool:
    return not stage.body and not stage.is_reduction
