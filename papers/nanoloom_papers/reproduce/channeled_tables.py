"""Chapter H's measurements as a table, as CSV, JSON and a picture."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nanoloom_papers.reproduce.channeled_forms import FORMS, TITLES, tile_of
from nanoloom_papers.reproduce.channeled_peers import OTHERS
from nanoloom_papers.reproduce.measurement import Row
from nanoloom_papers.reproduce.pictures import panels, png
from nanoloom_papers.reproduce.tables import Sheet, csv_of, whole

NAMES = {**TITLES, **{peer.key: peer.name for peer in OTHERS}}
COLORS = {"nanoloom": "tab:orange", "halide": "tab:purple", "loops": "tab:gray"}
FIELDS = (
    "contender", "name", "schedule", "register_tile", "size", "threads",
    "median_seconds", "best_seconds", "gflops", "percent_of_peak", "halide_percent",
    "peak_gflops", "note",
)  # fmt: skip


def keys(row: Row) -> list[str]:
    """Everybody of a row, in the order of the table."""
    return [key for key in NAMES if key in row.times or key in row.absent]


def records(row: Row) -> list[dict[str, Any]]:
    """One flat record a contender, in FIELDS' order."""
    return [record(row, key) for key in keys(row)]


def record(row: Row, key: str) -> dict[str, Any]:
    times, tile = row.times.get(key), ""
    if key in FORMS:
        tile = str(tile_of(key, row.limits.target))
    values = (
        key,
        row.names.get(key, NAMES[key]),
        NAMES[key] if key in TITLES else "",
        tile,
        row.chain.size,
        row.threads,
        times.median if times else None,
        times.best if times else None,
        row.gflops(key),
        row.of_peak(key),
        of_halide(row, key),
        row.peak,
        row.absent.get(key, ""),
    )
    return dict(zip(FIELDS, values, strict=True))


def of_halide(row: Row, key: str) -> float | None:
    """The speed in percent of Halide's; None if one was not measured."""
    ours, theirs = row.gflops(key), row.gflops("halide")
    return 100 * ours / theirs if ours and theirs and key != "halide" else None


def as_csv(row: Row) -> str:
    return csv_of(FIELDS, records(row))


def as_dict(row: Row, target: str) -> dict[str, Any]:
    """What `--json` prints: the records, and all rates that were measured."""
    rates = {**asdict(row.limits.peaks), "level3": row.limits.level3}
    return {"target": target, "results": records(row), "rates": [rates]}


def sheet(row: Row) -> Sheet:
    """Everybody who was measured; who was not, and why, in the notes."""
    measured = [key for key in keys(row) if key in row.times]
    cells = tuple(
        (
            NAMES[key],
            tile_of(key, row.limits.target).short if key in FORMS else "",
            f"{1000 * row.times[key].median:.4g}",
            whole(row.gflops(key)),
            whole(row.of_peak(key)),
            whole(of_halide(row, key)),
        )
        for key in measured
    )
    columns = ("schedule", "tile", ">ms", ">GFLOP/s", ">%peak", ">%Halide")
    notes = [
        "tile: pixels x vectors of channels in registers",
        f"%peak: of the measured peak, which takes its turns: {whole(row.peak)} GFLOP/s"
        if row.peak
        else "no peak is known for this target",
        f"the work is {row.chain.flops / 1e9:.3g} GFLOP",
    ]
    notes += [f"not measured: {NAMES[key]}: {why}" for key, why in row.absent.items()]
    title = f"Channeled convolution {row.chain.size}, 1 thread"
    return Sheet(title, columns, cells, tuple(notes))


def picture(row: Row) -> bytes:
    """A PNG file: percent of the measured peak, GFLOP/s where none is known."""
    measured = [key for key in keys(row) if key in row.times]
    figure, axes = panels(1, 1, (7.0, 3.4))
    panel = axes[0][0]
    values = [
        (row.of_peak(key) if row.peak else row.gflops(key)) or 0.0 for key in measured
    ]
    colors = [COLORS.get(key, "tab:blue") for key in measured]
    drawn = panel.barh([NAMES[key] for key in measured], values, color=colors)
    panel.bar_label(drawn, fmt="%.0f", size=8, padding=2)
    panel.invert_yaxis()
    panel.set_xlabel("% of measured peak" if row.peak else "GFLOP/s", size=9)
    if row.peak:
        panel.axvline(100, color="tab:red", linestyle="--", linewidth=0.8)
    panel.margins(x=0.1)
    panel.set_title(f"Channeled convolution {row.chain.size}", size=10)
    return png(figure)
