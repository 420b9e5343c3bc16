"""A report as one HTML page, which asks nothing of a network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import jinja2

from nanoloom.explain.report import Explanation, KernelReport
from nanoloom.explain.text import facts, loop_title, slowest_first, title
from nanoloom.explain.units import percent, seconds, size

TEMPLATE = "page.html.j2"
COLOURS = ("#3b6ea8", "#7aa6d1")
SLOW = "#b00020"
WIDTH = 1000.0  # of the picture, in its own units


@dataclass(frozen=True)
class Bar:
    """A kernel's part of a run."""

    number: int
    x: float
    width: float
    colour: str
    title: str


@dataclass(frozen=True)
class LayerTable:
    """A profile's rows, as readers see them."""

    summary: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def page(report: Explanation, profile: LayerTable | None = None) -> str:
    """The page; the slowest kernel first."""
    kernels = slowest_first(report)
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("nanoloom.explain", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )

    def number(name: str) -> int | str:
        return numbers.get(name, "")

    def time(value: float | None) -> str:
        return "" if value is None else seconds(value)

    filters = {"number": number, "percent": percent, "size": size, "time": time}
    made.filters |= filters
    return made.get_template(TEMPLATE).render(
        report=report,
        title=title(report),
        kernels=list(enumerate(kernels)),
        bars=list(bars(kernels)),
        profile=profile,
        facts=lambda kernel: facts(kernel, report),
        loop_title=loop_title,
    )


def bars(kernels: Iterable[KernelReport]) -> Iterator[Bar]:
    """The kernels' times beside each other; none where nothing was measured."""
    timed = [(number, k) for number, k in enumerate(kernels) if k.measured]
    whole, x = sum(kernel.measured or 0.0 for _, kernel in timed), 0.0
    for number, kernel in timed:
        width = WIDTH * (kernel.measured or 0.0) / whole
        colour = SLOW if kernel.fallbacks else COLOURS[number % 2]
        text = f"{', '.join(kernel.layers)}: {seconds(kernel.measured or 0.0)}"
        yield Bar(number, round(x, 2), round(width, 2), colour, text)
        x += width
