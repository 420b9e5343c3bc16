"""The dataflow paper's figures as pictures (matplotlib).

Figures 2, 7a and 7b: bars for each layer and anchor.  Figures 8 and 9: bars for each
network or layer and contender.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nanoloom.schedule.dataflow.dataflow import KINDS
from nanoloom_papers.reproduce import flow_figures
from nanoloom_papers.reproduce.pictures import panels, png
from nanoloom_papers.reproduce.yflows import Row, gain, to_basic_output, to_output

Value = Callable[[Row, str], float | None]
FIGURES: dict[str, tuple[str, str, Value]] = {
    "figure-2": ("Basic dataflows", "time, of output's", to_basic_output),
    "figure-7a": ("Best extended dataflows", "times as fast as basic", gain),
    "figure-7b": ("Best extended dataflows", "time, of output's", to_output),
}
COLORS = {"output": "tab:blue", "weight": "tab:orange", "input": "tab:green"}
WIDE = 0.8  # of the room of a group of bars


def pictures(rows: Sequence[Row]) -> dict[str, bytes]:
    """PNG files by name: a figure for each element type."""
    return {
        f"{name}-{element}.png": drawn(
            [row for row in rows if row.layer.element == element],
            f"{title}, {element}",
            label,
            value,
        )
        for name, (title, label, value) in FIGURES.items()
        for element in dict.fromkeys(row.layer.element for row in rows)
    }


def drawn(rows: Sequence[Row], title: str, label: str, value: Value) -> bytes:
    """A panel a stride and size of a vector variable."""
    strides = sorted({row.layer.stride for row in rows})
    registers = sorted({row.layer.registers for row in rows})
    figure, axes = panels(len(strides), len(registers), (6.0, 3.4))
    for i, stride in enumerate(strides):
        for j, count in enumerate(registers):
            own = [
                row
                for row in rows
                if (row.layer.stride, row.layer.registers) == (stride, count)
            ]
            bars(axes[i][j], own, value)
            axes[i][j].set_title(f"stride {stride}, registers {count}", size=9)
            axes[i][j].set_ylabel(label, size=8)
    figure.suptitle(title)
    return png(figure)


def bars(panel: Any, rows: Sequence[Row], value: Value) -> None:
    """A group for each layer, a bar for each anchor."""
    width = WIDE / len(KINDS)
    for number, anchor in enumerate(KINDS):
        heights = [value(row, anchor) or 0.0 for row in rows]
        places = [place + number * width for place in range(len(rows))]
        panel.bar(places, heights, width, label=anchor, color=COLORS[anchor])
    names = [f"{x.layer.filter}, {x.layer.size}, {x.layer.filters}" for x in rows]
    panel.set_xticks([n + width for n in range(len(rows))], names, rotation=90, size=6)
    panel.axhline(1, color="black", linewidth=0.6)
    if rows:
        panel.legend(fontsize=7)


def network_pictures(rows: Sequence[flow_figures.Row]) -> dict[str, bytes]:
    """Figures 8 and 9, PNG files by name: times of all, of nanoloom's."""
    found: dict[str, bytes] = {}
    for number in dict.fromkeys(row.subject.figure for row in rows):
        own = [row for row in rows if row.subject.figure == number]
        parts = list(dict.fromkeys((row.subject.element, row.threads) for row in own))
        figure, axes = panels(len(parts), 1, (7.0, 3.0))
        for place, part in enumerate(parts):
            here = [r for r in own if (r.subject.element, r.threads) == part]
            contender_bars(axes[place][0], here)
            axes[place][0].set_title(f"{part[0]}, threads: {part[1]}", size=9)
        found[f"figure-{number}.png"] = png(figure)
    return found


def contender_bars(panel: Any, rows: Sequence[flow_figures.Row]) -> None:
    """A group for each network, a bar for each contender."""
    keys = list(dict.fromkeys(key for row in rows for key in row.seconds))
    width = WIDE / max(1, len(keys))
    for number, key in enumerate(keys):
        heights = [row.times(key) or 0.0 for row in rows]
        places = [place + number * width for place in range(len(rows))]
        panel.bar(places, heights, width, label=key)
    names = [row.subject.name for row in rows]
    panel.set_xticks(range(len(rows)), names, size=7)
    panel.set_ylabel("time, of nanoloom's", size=8)
    panel.set_yscale("log")
    if keys:
        panel.legend(fontsize=6, ncols=3)
