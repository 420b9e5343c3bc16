"""Instructions and cycles of the forms of loops over sizes (matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nanoloom.target.tail_forms import MASKED_REMAINDER
from nanoloom_papers.reproduce.pictures import panels, png
from nanoloom_papers.reproduce.scalable_results import CYCLES, INSTRUCTIONS, Result

BASE = MASKED_REMAINDER  # whose number is 1


def pictures(results: Sequence[Result]) -> dict[str, bytes]:
    """PNG files by name: a panel for each kernel and machine, a line for each form."""
    found: dict[str, bytes] = {}
    for quantity in (INSTRUCTIONS, CYCLES):
        own = [x for x in results if x.quantity == quantity and x.value]
        if own:
            found[f"{quantity}.png"] = lines(quantity, own)
    return found


def lines(quantity: str, own: Sequence[Result]) -> bytes:
    kernels = list(dict.fromkeys(x.kernel for x in own))
    machines = list(dict.fromkeys(x.machine for x in own))
    figure, axes = panels(len(kernels), len(machines), (2.9, 2.4))
    for row, kernel in enumerate(kernels):
        for column, machine in enumerate(machines):
            some = [x for x in own if (x.kernel, x.machine) == (kernel, machine)]
            panel(axes[row][column], some)
            axes[row][column].set_title(f"{kernel}, {machine}", size=8)
    figure.suptitle(f"{quantity}, of the peeled loop's with a masked remainder")
    return png(figure)


def panel(axes: Any, own: Sequence[Result]) -> None:
    """Each form's number over the sizes, of the base's."""
    ones = {x.size: x.value for x in own if x.form == BASE}
    for form in dict.fromkeys(x.form for x in own):
        mine = {x.size: x.value for x in own if x.form == form and ones.get(x.size)}
        sizes = sorted(mine)
        heights = [(mine[n] or 0) / (ones[n] or 1) for n in sizes]
        axes.plot(sizes, heights, marker="o", markersize=3, label=form)
    axes.set_xscale("log", base=2)
    axes.axhline(1, color="tab:red", linestyle="--", linewidth=0.8)
    axes.set_xlabel("numbers in a row", size=7)
    axes.tick_params(labelsize=7)
    if own:
        axes.legend(fontsize=6)
