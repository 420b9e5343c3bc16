"""A fusion: a producer is computed at a loop of its consumer.

Legality is the affine footprint of what the consumer reads in a step of that loop
(nest/footprint.py): the producer computes just these points there, those again that
several steps read.  What it saves is the bytes of its result, which need no place but a
step's own.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.nest.footprint import footprint_inside
from nanoloom.nest.loop import plain
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.plan import Fusion
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import (
    bytes_inside,
    computed,
    points,
    read_inside,
    steps_around,
    whole,
)


def fusion(nest: LoopNest, producer: str, consumer: str, at: str) -> Fusion:
    """What it would mean to compute a stage at a loop of one that reads it."""
    return described(placed_at(nest, producer, consumer, at), nest.stage(producer))


def placed(nest: LoopNest, fusion: Fusion) -> LoopNest:
    """The nest with a fusion that it may not have yet."""
    if nest.placement(fusion.producer).at == (fusion.consumer, fusion.at):
        return nest
    return placed_at(nest, fusion.producer, fusion.consumer, fusion.at)


def placed_at(nest: LoopNest, producer: str, consumer: str, at: str) -> LoopNest:
    """for i: f[i] = ..; for io: g(f[..])  ->  for io: { f of what g reads; g }"""
    reader = nest.stage(consumer)
    sizes = footprint_inside(reader, nest.placement(consumer), at)
    stage = nest.stage(producer)
    made = plain(stage, read_inside(nest, stage, consumer, sizes))
    return nest.moved(replace(made, at=(consumer, at)))


def described(nest: LoopNest, stage: Statement) -> Fusion:
    """The fusion of a stage that a nest has inside of another one's loop."""
    at = nest.placement(stage.name).at
    assert at is not None, "asked of a stage inside of another one's loop"
    around = steps_around(nest, stage)
    inside = around[-1].sizes
    again = computed(stage, around) - points(whole(stage))
    made = [write.buffer for write in stage.writes]
    all_bytes = bytes_inside(nest, stage, whole(stage))
    step_bytes = bytes_inside(nest, stage, inside)
    return Fusion(
        stage.name,
        *at,
        points(inside),
        max(0, again),
        sum(all_bytes[name] for name in made),
        sum(step_bytes[name] for name in made),
    )


def plan_of(nest: LoopNest) -> tuple[Fusion, ...]:
    """The fusions that a scheduled nest has, in the order of its stages.

    Not those of numbers that sums begin with.
    """
    return tuple(
        described(nest, stage)
        for stage in nest.stages
        if nest.placement(stage.name).at is not None
        and (stage.reads or stage.inside is not None)
    )
