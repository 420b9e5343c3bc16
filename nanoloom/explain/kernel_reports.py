"""The report of each kernel of a compiled model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nanoloom.compiler import scheduled
from nanoloom.emit import emit_kernels
from nanoloom.explain.assembly import longest_loop
from nanoloom.explain.compiled_model import CompiledModel
from nanoloom.explain.fallbacks import fallbacks
from nanoloom.explain.not_fused import not_fused
from nanoloom.explain.report import (
    ARITHMETIC,
    Demand,
    Fused,
    KernelReport,
    NotFused,
    RunnerUp,
)
from nanoloom.explain.roof import Roof, limit_of
from nanoloom.kernels.program import Kernel, Program
from nanoloom.nest.fusion import plan_of
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.printer import print_nest
from nanoloom.schedule.language import Schedule

SCRIPT = "a script of the user's: its loops are not known"


@dataclass(frozen=True)
class Reporter:
    """Reports kernels.

    times: seconds of each step (columns) in each run (rows), None for no measurement.
    """

    model: CompiledModel
    roof: Roof
    times: np.ndarray | None = None

    def reports(self, wanted: Sequence[str]) -> list[KernelReport]:
        """Of some kernels, in this order."""
        texts: dict[str, str] = {}
        kernels = [self.model.program.kernels[name] for name in wanted]
        options = self.model.options
        emit_kernels(
            kernels, "asm", options, lambda _, name, text: texts.update({name: text})
        )
        return [self.report(kernel, texts[kernel.name]) for kernel in kernels]

    def report(self, kernel: Kernel, assembly: str) -> KernelReport:
        calls = [c for c in self.model.program.calls if c.kernel == kernel.name]
        nodes = tuple(dict.fromkeys(node for call in calls for node in call.nodes))
        schedule, nest = self.schedules[kernel.name], self.nests.get(kernel.name)
        given = isinstance(schedule, str)
        loop, count = longest_loop(assembly)
        made = KernelReport(
            kernel.name,
            tuple(dict.fromkeys(call.layer or call.kernel for call in calls)),
            nodes,
            len(calls),
            loops=print_nest(nest or kernel.nest),
            directives=str(schedule),
            reason=SCRIPT if given else schedule.reason,
            assembly=loop,
            inner_loops=count,
            demands=self.demands(kernel.name),
            not_fused=tuple(self.apart.get(kernel.name, ())),
        )
        if nest is not None and not given:
            made = self.predicted(made, schedule, nest)
            target, floats = self.model.options.target, self.model.floats
            slow = fallbacks(nest, schedule, target, nodes, floats)
            made = replace(made, fallbacks=slow, fused=fused(nest))
        return self.measured(made)

    @cached_property
    def schedules(self) -> dict[str, Schedule | str]:
        """Of the program's kernels, and those that a length of a sum apart has."""
        every = self.model.whole.kernels | self.model.program.kernels
        return {name: scheduled(k, self.model.options) for name, k in every.items()}

    @cached_property
    def nests(self) -> dict[str, LoopNest]:
        """The same as loops; not of scripts."""
        every = self.model.whole.kernels | self.model.program.kernels
        return {
            name: schedule.apply(every[name].nest)
            for name, schedule in self.schedules.items()
            if not isinstance(schedule, str)
        }

    @cached_property
    def apart(self) -> dict[str, list[NotFused]]:
        return not_fused(self.model.program)

    @cached_property
    def steps(self) -> list[str]:
        return list(self.model.steps())

    def tasks(self, kernel: str) -> int:
        """Of its largest phase; of what sizes decide about, many."""
        found = self.model.compiled[kernel].tasks
        return max((abs(n) for n in found), default=1)

    def demands(self, kernel: str) -> tuple[Demand, ...]:
        """Of all calls of it, each for the length of its sums."""
        pairs = zip(self.model.program.calls, self.model.whole.calls, strict=True)
        own = [call.kernel for shared, call in pairs if shared.kernel == kernel]
        if not own or any(name not in self.nests for name in own):
            return ()
        tasks = self.tasks(kernel)
        each = {n: self.roof.demands(self.nests[n], tasks) for n in set(own)}
        rows = zip(*(each[name] for name in own), strict=False)
        return tuple(added(row) for row in rows)

    def predicted(
        self, made: KernelReport, schedule: Schedule, nest: LoopNest
    ) -> KernelReport:
        """With what the model of cost says: of arithmetic, and of each bandwidth."""
        rows = tuple(
            RunnerUp(x.reason, round(x.cost, 3), x.directives == schedule.directives)
            for x in schedule.candidates
        )
        cost = next((row.cost for row in rows if row.chosen), None)
        limit, taken = limit_of(nest, self.model.options.target), None
        for each in made.demands:
            if each.seconds is None:
                continue
            own = each.resource == ARITHMETIC
            seconds = each.seconds * (cost or 1.0) if own else each.seconds
            if taken is None or seconds > taken:
                taken, limit = seconds, limit if own else each.resource
        return replace(made, cost=cost, predicted=taken, limit=limit, candidates=rows)

    def measured(self, made: KernelReport) -> KernelReport:
        """With the time of its steps."""
        if self.times is None:
            return made
        mine = [n for n, name in enumerate(self.steps) if name == made.name]
        sums = self.times[:, mine].sum(axis=1)
        low, middle, high = (float(x) for x in np.quantile(sums, [0.1, 0.5, 0.9]))
        return replace(made, measured=middle, low=low, high=high)


def added(row: Sequence[Demand]) -> Demand:
    """One demand of several calls: the amounts, and the rate of all together."""
    amount = sum(each.amount for each in row)
    seconds = [each.seconds for each in row]
    whole = sum(each for each in seconds if each is not None)
    known = None not in seconds and whole > 0
    return Demand(row[0].resource, amount, amount / whole if known else row[0].rate)


def fused(nest: LoopNest) -> tuple[Fused, ...]:
    """What the kernel computes inside of a loop, and writes nowhere."""
    return tuple(
        Fused(x.producer, x.consumer, x.at, 2 * x.bytes, x.recompute)
        for x in plan_of(nest)
    )


def kernels_with(node: str, program: Program) -> tuple[str, ...]:
    """The kernels that have operations of a node of the model."""
    found = (call.kernel for call in program.calls if node and node in call.nodes)
    return tuple(dict.fromkeys(found))
