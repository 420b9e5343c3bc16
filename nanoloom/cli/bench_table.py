"""What `nanoloom bench` found, as a table, as JSON, as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoloom.errors import Error

if TYPE_CHECKING:
    from nanoloom.inspect.timing import Times


@dataclass(frozen=True)
class Entry:
    """One row: a system, its times, how far its outputs are from nanoloom's."""

    name: str
    times: Times
    difference: float | None


@dataclass
class BenchTable:
    """The table; its first entry is nanoloom.  absent: peers that did not run, and why.

    flops: of the contractions, None if not known; peak: GFLOP/s measured in this run.
    """

    model: Path
    threads: int
    flops: int | None
    peak: float = 0.0
    entries: list[Entry] = field(default_factory=list[Entry])
    absent: dict[str, str] = field(default_factory=dict[str, str])

    def gflops(self, entry: Entry) -> float | None:
        """10^9 operations of the contractions a second, at the median."""
        return None if self.flops is None else self.flops / entry.times.median / 1e9

    def speedup(self, entry: Entry) -> float:
        """How many times as fast nanoloom is."""
        return entry.times.median / self.entries[0].times.median


def answer(board: BenchTable) -> dict[str, Any]:
    """What `--json` prints."""
    entries = [
        {
            "name": entry.name,
            "median_seconds": entry.times.median,
            "best_seconds": entry.times.best,
            "gflops": board.gflops(entry),
            "nanoloom_speedup": board.speedup(entry),
            "largest_difference": None
            if entry.difference is None
            else float_or_text(entry.difference),
        }
        for entry in board.entries
    ]
    return {
        "model": str(board.model),
        "threads": board.threads,
        "repetitions": len(board.entries[0].times.seconds),
        "contraction_flops": board.flops,
        "peak_gflops": board.peak,
        "results": entries,
        "absent": board.absent,
    }


def float_or_text(value: float) -> float | str:
    """Infinity, which JSON lacks, as text."""
    return str(value) if value == float("inf") else value


def show(board: BenchTable) -> None:
    """The table, and under it what is needed to read it."""
    from nanoloom.cli.terminal import indented, out, plural, table

    count = len(board.entries[0].times.seconds)
    title = (
        f"{board.model.name}: {plural(board.threads, 'thread')}, median of"
        f" {plural(count, 'repetition')}"
    )
    columns = [
        "-",
        ">median",
        ">best",
        ">GFLOP/s",
        ">of peak",
        ">nanoloom is",
        ">off by",
    ]
    if board.flops is None:
        columns = [name for name in columns if name not in (">GFLOP/s", ">of peak")]
    screen = out()
    screen.print(table(title, columns, [row(board, entry) for entry in board.entries]))
    screen.print()
    peak = (
        f"measured peak of {plural(board.threads, 'thread')}: {board.peak:.0f} GFLOP/s"
    )
    if board.flops is not None:
        peak += f"; {board.flops / 1e9:.3g} GFLOP a run in contractions"
    screen.print(indented(peak, 0, "dim"))
    for reason in board.absent.values():
        screen.print(indented(f"not measured: {reason}", 0))


def row(board: BenchTable, entry: Entry) -> list[str]:
    """An entry as cells."""
    from nanoloom.explain.units import seconds

    own = entry is board.entries[0]
    cells = [entry.name, seconds(entry.times.median), seconds(entry.times.best)]
    rate = board.gflops(entry)
    if rate is not None:
        part = f"{100 * rate / board.peak:.0f} %" if board.peak else ""
        cells += [f"{rate:.3g}", part]
    cells.append("" if own else f"{board.speedup(entry):.2f}x")
    cells.append("" if entry.difference is None else f"{entry.difference:.0e}")
    return cells


def require_matplotlib() -> None:
    """Raise Error, before anything is measured, if nothing can be drawn."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise Error("--plot needs matplotlib", hint="pip install matplotlib")


def draw(board: BenchTable, path: Path) -> None:
    """A bar for each system, the shortest is the fastest; whole or not at all."""
    import io

    from matplotlib.figure import Figure

    from nanoloom.cli import output_files

    entries = board.entries[::-1]
    figure = Figure(figsize=(8, 1.2 + 0.5 * len(entries)), layout="constrained")
    axes = figure.subplots()
    times = [1e3 * entry.times.median for entry in entries]
    colors = ["tab:orange" if e is board.entries[0] else "tab:gray" for e in entries]
    bars = axes.barh([entry.name for entry in entries], times, color=colors)
    axes.bar_label(bars, fmt="%.3g ms", padding=3)
    axes.set_xlabel("median milliseconds, less is better")
    axes.set_title(f"{board.model.name}, threads: {board.threads}")
    axes.margins(x=0.15)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lstrip(".") or "png", dpi=150)
    with output_files.written(path) as file:
        file.write(drawn.getvalue())
