"""A fusion as a value: which stage is computed at which loop of what reads it.

A kernel's nest carries those that made it one kernel (`LoopNest.plan`), and its
schedule is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fusion:
    """producer, consumer: stages.  at: the loop of the consumer in whose steps the
    producer is computed.

    footprint: its points in a step.  recompute: points that are computed more than
    once, of all steps.  bytes: of its whole result, which is written nowhere and read
    from nowhere but a step's own memory.  step_bytes: of that.
    """

    producer: str
    consumer: str
    at: str
    footprint: int
    recompute: int
    bytes: int
    step_bytes: int
