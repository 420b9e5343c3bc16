"""What a kernel takes at least of each resource: arithmetic and bandwidth, as measured.

The arithmetic of a stage runs at the measured rate of the unit that its nanokernel
uses, or at the clock that the measured rate of f32 tells.  Bytes that come into the
first-level cache come from the second.  From memory come a kernel's operands that are
larger than the last cache, and weights where those of the model are.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.cost.estimate import estimate
from nanoloom.explain.report import ARITHMETIC, L2, MEMORY, Demand
from nanoloom.explain.work import bytes_of, counted, operations_of
from nanoloom.nest.contraction import bits
from nanoloom.nest.loop import TileCode
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement
from nanoloom.schedule.predicted_cost import Work, work
from nanoloom.target.facts import Target
from nanoloom.target.peaks import Peaks

UNITS = {"amx-bf16": "bf16-amx", "amx-int8": "u8s8-amx", "bf16-dot": "bf16"}


@dataclass(frozen=True)
class Roof:
    """peaks: what was measured, None for nothing.  weights: bytes of the model's."""

    target: Target
    threads: int
    weights: int
    peaks: Peaks | None = None

    def rate(self, what: str, tasks: int) -> float | None:
        """Operations or bytes a second, of as many threads as there are tasks for."""
        if self.peaks is None:
            return None
        count = self.threads if tasks > 1 else 1
        found = self.peaks.best(what, count)
        return found * 1e9 if found else None

    def clock(self, tasks: int) -> float | None:
        """Cycles a second of all these threads together."""
        found = self.rate("f32", tasks)
        return found / self.target.flops_per_cycle(bits("f32")) if found else None

    def demands(self, nest: LoopNest, tasks: int) -> tuple[Demand, ...]:
        """Of a scheduled nest, arithmetic first; () where its sizes are not known."""
        operations, size = counted(nest)
        if not size:
            return ()
        least = self.least_arithmetic(nest, tasks)
        rate = operations / least if least else None
        moved = estimate(nest, (), self.target).moved("l1")
        return (
            Demand(ARITHMETIC, operations, rate),
            Demand(L2, moved, self.rate("l2", tasks)),
            Demand(MEMORY, self.from_memory(nest), self.rate("memory", tasks)),
        )

    def least_arithmetic(self, nest: LoopNest, tasks: int) -> float | None:
        """Seconds of all stages at their rates."""
        clock = self.clock(tasks)
        if clock is None:
            return None
        found = 0.0
        for stage in nest.stages:
            rate = None
            if stage.is_contraction:
                unit = unit_of(stage, nest.placement(stage.name).by)
                rate = self.rate(unit, tasks) if unit else None
            if rate is not None:
                found += operations_of(stage) / rate
            else:
                found += work(nest, stage, self.target).least / clock
        return found

    def from_memory(self, nest: LoopNest) -> int:
        """Bytes that no cache can hold from one run, or kernel, to the next."""
        last = self.target.caches.l3 or self.target.caches.l2
        found = bytes_of(nest, (Role.CONSTANT,)) if self.weights > last else 0
        moving = bytes_of(nest, (Role.INPUT, Role.RESULT))
        return found + (moving if moving > last else 0)


def unit_of(product: Statement, code: TileCode | None) -> str:
    """The measured rate that a product runs at; "" where its instructions have none."""
    left, right = (read.element for read in product.reads)
    if code is None or code.family == "fma":
        return left if {left, right} in ({"f32"}, {"f64"}) else ""
    if code.family == "int8-dot":
        return "s8s8" if (left, right) == ("s8", "s8") else "u8s8"
    return UNITS.get(code.family, "")


def limit_of(nest: LoopNest, target: Target) -> str:
    """The port, or latency, that the stage with most cycles waits for."""
    most = Work(0, 0)
    for stage in nest.stages:
        known = 1.0 if nest.placement(stage.name).by else None
        found = work(nest, stage, target, known)
        most = max(most, found, key=lambda each: each.cycles)
    return most.limit
