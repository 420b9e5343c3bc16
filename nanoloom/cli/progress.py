"""What the compiler is doing, on stderr, for anything that takes over a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0  # seconds without a sign of life
WORDS = {
    "graph": "simplifying the graph",
    "linalg": "lowering the operators",
    "kernels": "cutting into kernels",
    "schedule": "compiling kernels",
    "vector": "compiling kernels",
    "llvm": "compiling kernels",
    "object": "compiling kernels",
}


@dataclass
class Watch:
    """A `nanoloom.compiler.Report` that also shows a bar; that one imports MLIR.

    seconds: of each stage, added up over kernels.  Used in a `with`.
    """

    doing: str = "reading the model"
    workers: int | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    kernels: int = 0
    cached: int = 0
    progress: Callable[[str, int, int], None] | None = None

    def __post_init__(self) -> None:
        self.progress = self.advance
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._done, self._total = 0, 0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """A part of the work: its time is added to `seconds`."""
        self.say(WORDS.get(name, name))
        started = time.perf_counter()
        yield
        self.add({name: time.perf_counter() - started})

    def add(self, seconds: Mapping[str, float]) -> None:
        """What the workers measured."""
        for name, passed in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + passed

    def advance(self, what: str, done: int, total: int) -> None:
        """The hook of the compiler: so many kernels are done."""
        del what
        with self._lock:
            self._done, self._total = done, total
            self._refresh()

    def say(self, doing: str, done: int | None = None, total: int = 0) -> None:
        """Change the words beside the bar (and, with `done`, its length)."""
        with self._lock:
            self.doing = doing
            if done is not None:
                self._done, self._total = done, total
            self._refresh()

    def __enter__(self) -> Watch:
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away; what is printed next begins on a clean line."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            bar, self._bar, self._timer = self._bar, None, None
        if bar is not None:
            bar.stop()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        console = Console(stderr=True)
        with self._lock:
            if self._timer is None:  # stopped meanwhile
                return
            if not console.is_terminal:
                console.print(f"nanoloom: {self.doing} ...", highlight=False)
                return
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task(self.doing, total=None)
            self._refresh()
            self._bar.start()

    def _refresh(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                description=self.doing,
                completed=self._done,
                total=self._total or None,
            )
