"""Measured rows as pictures, in the manner of the paper's figures (matplotlib)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from nanoloom_papers.reproduce.measurement import Row
from nanoloom_papers.reproduce.nanokernels import TITLES
from nanoloom_papers.reproduce.tables import NAMES

COLORS = {
    "nanoloom": "tab:orange",
    "onednn": "tab:blue",
    "pytorch": "tab:cyan",
    "openvino": "tab:purple",
    "openblas": "tab:green",
    "onnxruntime": "tab:gray",
}


def can_draw() -> bool:
    """Whether matplotlib is there."""
    return find_spec("matplotlib") is not None


def pictures(rows: Sequence[Row]) -> dict[str, bytes]:
    """PNG files by name: bars of percent of peak a kind, and lines over threads."""
    found: dict[str, bytes] = {}
    for kind in dict.fromkeys(row.chain.kind for row in rows):
        own = [row for row in rows if row.chain.kind == kind]
        found[f"{kind}.png"] = bars(TITLES[kind], own)
        found[f"{kind}-threads.png"] = lines(TITLES[kind], own)
    return found


def bars(title: str, rows: Sequence[Row]) -> bytes:
    """A panel an arithmetic and number of threads; a group of bars a size."""
    arithmetics = list(dict.fromkeys(row.chain.arithmetic for row in rows))
    counts = list(dict.fromkeys(row.threads for row in rows))
    figure, axes = panels(len(arithmetics), len(counts), (5.0, 2.8))
    for i, arithmetic in enumerate(arithmetics):
        for j, threads in enumerate(counts):
            own = [
                row
                for row in rows
                if (row.chain.arithmetic, row.threads) == (arithmetic, threads)
            ]
            bar_panel(axes[i][j], own)
            axes[i][j].set_title(f"{TITLES[arithmetic]}, threads: {threads}", size=9)
    figure.suptitle(title)
    return png(figure)


def bar_panel(axes: Any, rows: Sequence[Row]) -> None:
    """Percent of the measured peak; GFLOP/s where no peak is known."""
    keys = [key for key in NAMES if any(key in row.times for row in rows)]
    relative = all(row.peak for row in rows)
    width = 0.8 / max(1, len(keys))
    for place, key in enumerate(keys):
        heights = [
            (row.of_peak(key) if relative else row.gflops(key)) or 0.0 for row in rows
        ]
        xs = [x + (place - (len(keys) - 1) / 2) * width for x in range(len(rows))]
        drawn = axes.bar(xs, heights, width, label=NAMES[key], color=COLORS[key])
        axes.bar_label(drawn, fmt="%.0f", size=6)
    axes.set_xticks(range(len(rows)), [row.chain.size for row in rows], size=8)
    axes.set_ylabel("% of measured peak" if relative else "GFLOP/s", size=8)
    if relative:
        axes.axhline(100, color="tab:red", linestyle="--", linewidth=0.8)
    if keys:
        axes.legend(fontsize=6, ncols=3)
    axes.margins(y=0.2)


def lines(title: str, rows: Sequence[Row]) -> bytes:
    """Figures 5 to 7: percent of each peer's speed over threads, a panel a size."""
    arithmetics = list(dict.fromkeys(row.chain.arithmetic for row in rows))
    sizes = list(dict.fromkeys(row.chain.size for row in rows))
    figure, axes = panels(len(arithmetics), len(sizes), (3.2, 2.6))
    for i, arithmetic in enumerate(arithmetics):
        for j, size in enumerate(sizes):
            own = [
                row
                for row in rows
                if (row.chain.arithmetic, row.chain.size) == (arithmetic, size)
            ]
            line_panel(axes[i][j], own)
            axes[i][j].set_title(f"{TITLES[arithmetic]}, {size}", size=8)
    figure.suptitle(f"{title}: nanoloom's speed in percent of a peer's")
    return png(figure)


def line_panel(axes: Any, rows: Sequence[Row]) -> None:
    for key in NAMES:
        shares = [(row.threads, row.against(key)) for row in rows if key != "nanoloom"]
        points = [(x, y) for x, y in shares if y is not None]
        if points:
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, marker="o", label=NAMES[key], color=COLORS[key])
    axes.axhline(100, color="tab:red", linestyle="--", linewidth=0.8)
    axes.set_xticks(sorted({row.threads for row in rows}))
    axes.set_xlabel("threads", size=8)
    axes.set_ylabel("%", size=8)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6)


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure with a grid of axes, always of two dimensions."""
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(size[0] * columns + 1, size[1] * rows + 0.6), layout="constrained"
    )
    return figure, figure.subplots(rows, columns, squeeze=False)


def png(figure: Any) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=130)
    return drawn.getvalue()
