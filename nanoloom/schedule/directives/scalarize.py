"""Stages whose numbers are computed one by one, though they have vectors."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.loop import How, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.directive import refuse
from nanoloom.schedule.directives.note import Note


@dataclass(frozen=True)
class Scalarize(Note):
    """for j: for jv: y[jv] = f(x[jv])  ->  for j: y[j] = f(x[j])

    Of a stage whose function has no form on vectors, an exp of f64: it is called for
    each number.  What is computed beside it keeps its loops.  A `Vectorize` that cannot
    be carried out is refused without it.
    """

    stage: str

    def require(self, nest: LoopNest, placement: Placement) -> None:
        if not any(x.how is How.VECTOR for x in placement.loops):
            refuse(self, f"{self.stage} has no vectors: it is computed one by one")
