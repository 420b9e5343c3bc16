"""Tables and lines on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nanoloom.cli.failures import printable

UNFOLDED = 10_000  # columns, more than any table has


def out() -> Console:
    """Standard output; made when needed, so that it follows a redirection.

    Only a terminal, or COLUMNS, makes lines short: what reads a pipe wants them whole.
    """
    whole = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=UNFOLDED if whole else None)


def err() -> Console:
    """Standard error, the same."""
    return Console(highlight=False, stderr=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A light table.

    A column that begins with `>` stands to the right; with `~` it is folded where the
    terminal is too narrow, with `-` cut.  Others keep their width.
    """
    made = Table(
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for column in columns:
        title = column.lstrip(">~-")
        signs = column.removesuffix(title)
        made.add_column(
            title,
            justify="right" if ">" in signs else "left",
            overflow="fold" if "~" in signs else "ellipsis",
            no_wrap="~" not in signs,
        )
    for row in rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


def indented(text: str, by: int, style: str = "") -> Padding:
    """A paragraph with a margin on its left."""
    return Padding(Text(printable(text), style), (0, 0, 0, by), expand=False)


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
