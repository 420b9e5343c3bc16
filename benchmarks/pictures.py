"""Measured models as a picture (matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.systems import Measured
from nanoloom_papers.reproduce.contenders import NANOLOOM
from nanoloom_papers.reproduce.pictures import COLORS, panels, png
from nanoloom_papers.reproduce.tables import NAMES


def relative_times(rows: Sequence[Measured]) -> bytes:
    """A panel a number of threads: each system's time over nanoloom's, as a PNG."""
    counts = list(dict.fromkeys(row.threads for row in rows))
    width = max(5.0, 0.9 * len(rows) / max(1, len(counts)))
    figure, axes = panels(len(counts), 1, (width, 3.0))
    for place, count in enumerate(counts):
        panel = axes[place][0]
        own = [
            row for row in rows if row.threads == count and NANOLOOM.key in row.times
        ]
        keys = [key for key in NAMES if any(key in row.times for row in own)]
        bar = 0.8 / max(1, len(keys))
        for index, key in enumerate(keys):
            found = [(x, row) for x, row in enumerate(own) if key in row.times]
            xs = [x + (index - (len(keys) - 1) / 2) * bar for x, _ in found]
            heights = [
                row.times[key].median / row.times[NANOLOOM.key].median
                for _, row in found
            ]
            drawn = panel.bar(xs, heights, bar, label=NAMES[key], color=COLORS[key])
            texts = [f"{1e3 * row.times[key].median:.3g}" for _, row in found]
            panel.bar_label(drawn, labels=texts, size=6)
        panel.axhline(1, color="tab:red", linestyle="--", linewidth=0.8)
        names = [f"{row.task.name}\n{row.kind}" for row in own]
        panel.set_xticks(range(len(own)), names, size=7)
        panel.set_ylabel("time, nanoloom = 1", size=8)
        panel.set_title(f"threads: {count} (labels: milliseconds)", size=9)
        panel.margins(y=0.15)
        if keys:
            panel.legend(fontsize=6, ncols=len(keys))
    return png(figure)
