"""Tables and progress of the benchmarks on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar

from nanoloom.cli.terminal import indented, table
from nanoloom_papers.reproduce.tables import Sheet

WIDTH = 140  # where the output is no terminal: tables are not cut
_LISTS: list[list[Sheet]] = []  # of `printed`, while they are open


@contextmanager
def printed() -> Generator[list[Sheet]]:
    """The tables that are printed meanwhile."""
    found: list[Sheet] = []
    _LISTS.append(found)
    try:
        yield found
    finally:
        _LISTS.remove(found)


def print_sheet(sheet: Sheet) -> None:
    """A table with its notes below."""
    for found in _LISTS:
        found.append(sheet)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    console.print(table(sheet.title, sheet.columns, sheet.rows))
    for note in sheet.notes:
        console.print(indented(note, 2, "dim"))
    console.print()


class Progress:
    """What is measured now, on stderr: a bar, or a line each without a terminal.

    total: how many there will be, 0 where nobody knows.
    """

    def __init__(self, total: int) -> None:
        self.console = Console(file=sys.stderr, highlight=False)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total or None)
        self._done, self._total = 0, total

    def say(self, doing: str, done: int = 0, total: int = 0) -> None:
        """Change the words beside the bar."""
        del done, total
        self._bar.update(self._task, description=doing)

    def advance(self, line: str = "") -> None:
        """One more is done."""
        self._done += 1
        self._bar.advance(self._task)
        if not self.console.is_terminal:
            all_of = f" of {self._total}" if self._total else ""
            told = f"{self._done}{all_of} {line}".strip()
            self.console.print(told, soft_wrap=True, markup=False)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()
