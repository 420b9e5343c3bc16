"""Bars as SVG, written by hand: the same text from the same numbers, everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLORS = ("#4878a8", "#d08a3c", "#5a9a68")
BAR, GAP, LEFT, RIGHT, TOP = 11, 9, 150, 60, 56  # pixels
WIDTH = 720
FONT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True)
class Bars:
    """Groups of bars from 0, by names, and a line at 1."""

    title: str
    names: Sequence[str]  # of the bars of a group
    groups: Mapping[str, Sequence[float]]

    def to_svg(self) -> str:
        step = len(self.names) * BAR + GAP
        height = TOP + step * len(self.groups) + GAP
        scale = (WIDTH - LEFT - RIGHT) / max(map(max, self.groups.values()))
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{height}" viewBox="0 0 {WIDTH} {height}" {FONT}>',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            text(LEFT, 20, self.title, 'font-weight="bold"'),
        ]
        for index, name in enumerate(self.names):
            x = LEFT + 120 * index
            lines.append(rectangle(x, 30, 12, COLORS[index]))
            lines.append(text(x + 18, 40, name))
        for row, (group, values) in enumerate(self.groups.items()):
            top = TOP + row * step
            middle = top + len(self.names) * BAR / 2 + 4
            lines.append(text(LEFT - 8, middle, group, 'text-anchor="end"'))
            for index, value in enumerate(values):
                y = top + index * BAR
                lines.append(rectangle(LEFT, y, value * scale, COLORS[index]))
                label = text(LEFT + value * scale + 5, y + 9, f"{value:.2f}")
                lines.append(label.replace("<text", '<text font-size="10"'))
        x = LEFT + scale
        lines.append(
            f'<path d="M{x:.1f} {TOP - 6}V{height - GAP}" stroke="black" '
            'stroke-dasharray="4 3"/>'
        )
        return "\n".join([*lines, "</svg>", ""])


def text(x: float, y: float, words: str, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}"'
    return f"<text {place} {more}".rstrip() + f">{escape(words)}</text>"


def rectangle(x: float, y: float, width: float, color: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR - 1}" '
        f'fill="{color}"/>'
    )
