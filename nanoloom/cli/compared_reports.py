"""What got slower from one report to another, for a terminal or a program."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanoloom.explain.compare import Change
    from nanoloom.explain.report import Explanation


def show_comparison(before: Explanation, after: Explanation, *, json: bool) -> None:
    """The groups of kernels on stdout, what got slower by most first."""
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.terminal import out, table
    from nanoloom.explain.compare import compare
    from nanoloom.explain.text import title

    changes = compare(before, after)
    if json:
        seconds = {"before": before.measured, "after": after.measured}
        print(as_json({**seconds, "changes": [asdict(each) for each in changes]}))
        return
    screen = out()
    for report in (before, after):
        screen.print(title(report), markup=False, soft_wrap=True)
    columns = ("-layers", ">before", ">after", ">ratio", "", "~differences")
    screen.print(table("", columns, map(row, changes)))


def row(change: Change) -> list[str]:
    from nanoloom.explain.text import some
    from nanoloom.explain.units import seconds

    ratio = "" if change.ratio is None else f"{change.ratio:.2f}"
    times = seconds(change.before), seconds(change.after), ratio
    return [some(change.layers), *times, change.verdict, "; ".join(change.differences)]
