"""Where a compilation's time goes: what `--time-report` prints."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from nanoloom.errors import noting


class _Within(threading.local):
    """Seconds of the stages that ended inside of the one that a thread is in."""

    seconds = 0.0


@dataclass
class Report:
    """Seconds by stage; a stage within another one counts for itself alone.

    seconds: of work, added up over kernels and processes.  passed: of this process, in
    which it also waits for others.  workers: kernels compiled at once; None for as many
    as there are usable CPUs.
    """

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    passed: dict[str, float] = field(default_factory=dict[str, float])
    kernels: int = 0
    cached: int = 0
    progress: Callable[[str, int, int], None] | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        self._within = _Within()

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """A part of the work."""
        with self.waiting(name), noting(f"stage {name}"):
            before = self.passed.get(name, 0.0)
            yield
        self.add({name: self.passed[name] - before})

    @contextmanager
    def waiting(self, name: str) -> Generator[None]:
        """A time in which others work, who say their own seconds."""
        around, self._within.seconds = self._within.seconds, 0.0
        started = time.perf_counter()
        try:
            yield
        finally:
            whole = time.perf_counter() - started
            own = whole - self._within.seconds
            self.passed[name] = self.passed.get(name, 0.0) + own
            self._within.seconds = around + whole

    def add(self, seconds: Mapping[str, float]) -> None:
        """What other processes measured."""
        for name, passed in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + passed
