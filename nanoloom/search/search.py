"""Schedules of a program's kernels by running candidates, within so many seconds.

The kernels that take most of the time come first.  What was found is kept: the same
kernel is not searched again, for whatever model.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from nanoloom.binary.kernel import CompiledKernel
from nanoloom.cache import Cache, key
from nanoloom.errors import Error
from nanoloom.kernels.program import Kernel, Program
from nanoloom.nest.granularity import FEWEST_TASKS
from nanoloom.nest.steps import number
from nanoloom.runtime.threads import default_threads
from nanoloom.schedule.language import Schedule
from nanoloom.search.candidates import candidates
from nanoloom.search.measure import TimeKernels, are_floats, sizes_of
from nanoloom.target.facts import Target
from nanoloom.workers.jobs import MakeKernel
from nanoloom.workers.pool import Pool
from nanoloom.workers.process import Crashed

GAIN = 0.97  # of the chosen schedule's time that another one takes, at most
Found = tuple[tuple[str, Schedule], ...]


@dataclass
class Search:
    """target: this machine.  until: a time by the monotonic clock."""

    target: Target
    cache: Cache
    workers: Pool
    until: float

    def best(self, kernel: Kernel) -> Schedule | None:
        """The fastest schedule of a kernel; None for the chosen one, or no time."""
        name = key("search", kernel.text, self.target)
        kept = self.cache.get(name)
        if kept == b"":
            return None
        if kept is None and time.monotonic() > self.until:
            return None
        known = candidates(kernel.nest, self.target)
        if kept is not None:
            return next((s for s in known if str(s).encode() == kept), None)
        try:
            fastest = self.measured(kernel, known) if len(known) > 1 else None
        except Crashed:  # of the candidates one: nothing is known, nor kept, of any
            return None
        self.cache.put(name, str(fastest).encode() if fastest else b"")
        return fastest

    def measured(self, kernel: Kernel, known: Sequence[Schedule]) -> Schedule | None:
        """The fastest of some schedules, if it is not the first.

        Only such as leave the threads of a program as many tasks.  Raises Crashed.
        """
        made = self.compiled([self.job(kernel, schedule) for schedule in known])
        if made[0] is None:
            return None
        enough = min(tasks_of(made[0]), FEWEST_TASKS)
        usable = [
            (schedule, code)
            for schedule, code in zip(known, made, strict=True)
            if code is not None and tasks_of(code) >= enough and not needs_tiles(code)
        ]
        if len(usable) < 2 or usable[0][0] != known[0]:
            return None
        codes = tuple(code for _, code in usable)
        nest, shapes = kernel.nest, kernel.shapes
        trial = TimeKernels(
            codes,
            (kernel.name,) * len(codes),
            tuple(sizes_of(nest, shapes, CompiledKernel.from_bytes(c)) for c in codes),
            are_floats(nest, len(shapes)),
            max(0.1, self.until - time.monotonic()),
        )
        answer = self.workers.submit(trial, 0, 1).result()
        if answer.failure is not None:
            raise answer.failure.exception()
        seconds = cast("list[float]", answer.value)
        best = min(range(len(codes)), key=lambda n: seconds[n])
        return usable[best][0] if seconds[best] < GAIN * seconds[0] else None

    def job(self, kernel: Kernel, schedule: Schedule) -> MakeKernel:
        script = schedule.to_transform(kernel.nest)
        return MakeKernel(kernel.name, kernel.text, script, False, self.target)

    def compiled(self, jobs: Sequence[MakeKernel]) -> list[bytes | None]:
        """Objects, from the cache where it has them; None for what does not compile."""
        found = {job: self.cache.get(job.entry) for job in jobs}
        missing = [job for job, code in found.items() if code is None]
        for job, code in zip(missing, self.asked(missing), strict=True):
            if isinstance(code, bytes):
                self.cache.put(job.entry, code)
                found[job] = code
        return [found[job] for job in jobs]

    def asked(self, jobs: Sequence[MakeKernel]) -> list[object]:
        """What workers answer; None where a schedule does not go, or MLIR crashed."""
        most = default_threads()
        waiting = [self.workers.submit(job, 0, most) for job in jobs]
        made: list[object] = []
        for future in waiting:
            try:
                made.append(future.result().value)
            except Crashed:
                made.append(None)
        return made


def tasks_of(code: bytes) -> int:
    """Of a compiled kernel's largest phase."""
    return max(CompiledKernel.from_bytes(code).tasks, default=0)


def needs_tiles(code: bytes) -> bool:
    """Whether it uses tile registers, which a thread must ask the system for."""
    return CompiledKernel.from_bytes(code).needs_tiles


def search(
    program: Program,
    target: Target,
    here: Target,
    seconds: float,
    cache: Cache,
    workers: Pool,
    progress: Callable[[str, int, int], None] | None = None,
) -> Found:
    """Schedules that are faster than the chosen ones, by the names of kernels.

    here: this machine.  Raises Error for a target that is another one.
    """
    if target.arch != here.arch or not target.extensions <= here.extensions:
        raise Error(
            f"candidates for {target} do not run on this machine, {here}",
            hint="search on a machine of that kind, or leave the search out",
        )
    searching = Search(target, cache, workers, time.monotonic() + seconds)
    kernels = by_work(program)
    found: list[tuple[str, Schedule]] = []
    for done, kernel in enumerate(kernels):
        best = searching.best(kernel)
        if best is not None:
            found.append((kernel.name, best))
        if progress is not None:
            progress("search", done + 1, len(kernels))
    return tuple(found)


def by_work(program: Program) -> list[Kernel]:
    """The kernels, those with most points of loops in all of their calls first."""
    calls = Counter(call.kernel for call in program.calls)

    def points(kernel: Kernel) -> int:
        stages = kernel.nest.stages
        return calls[kernel.name] * sum(prod(map(number, s.extents)) for s in stages)

    return sorted(program.kernels.values(), key=points, reverse=True)
