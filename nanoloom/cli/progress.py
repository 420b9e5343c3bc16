"""What the compiler is doing, on stderr, for anything that takes over a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.report import Report

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0  # seconds without a sign of life
WORDS = {
    "graph": "simplifying the graph",
    "linalg": "lowering the operators",
    "kernels": "cutting into kernels",
    "read": "reading the model",
    "start": "starting the compiler",
    "schedule": "compiling kernels",
    "workers": "compiling kernels",
    "runtime": "compiling the runtime",
    "weights": "writing weights",
    "link": "linking",
    "load": "loading",
    "run": "running",
}


@dataclass
class Watch(Report):
    """A report that also shows a bar.  whole: seconds of its `with`."""

    doing: str = "reading the model"
    whole: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.progress = self.advance
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._done, self._total = 0, 0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._started = 0.0

    @contextmanager
    def waiting(self, name: str) -> Generator[None]:
        """A part of the time, shown beside the bar."""
        self.say(WORDS.get(name, name))
        with super().waiting(name):
            yield

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
        self._started = time.perf_counter()
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.whole = time.perf_counter() - self._started
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
