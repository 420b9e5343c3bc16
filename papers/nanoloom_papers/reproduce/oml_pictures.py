"""Figures of the OML-vect paper, and of its section VI-C, as bars by layer."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom_papers.reproduce.oml_results import (
    BASE,
    COSTS,
    CYCLES,
    FOUND,
    MEMORY,
    RISCV,
    SECONDS,
    STRIDES,
    WHOLE_MODELS,
    X86,
    Result,
    values,
)
from nanoloom_papers.reproduce.pictures import panels, png

# Of a file: figure, quantity, and whose is 1 in it; "" for numbers as they are.
FIGURES = {
    "figure-3": (STRIDES, "seconds", "none"),
    "figure-7": (FOUND, "reductions", ""),
    "figure-8": (X86, "seconds", BASE),
    "figure-9": (RISCV, "instructions, vlen 512", BASE),
    "figure-9-loads": (RISCV, "vector loads, vlen 512", BASE),
    "figure-9-stores": (RISCV, "vector stores, vlen 512", BASE),
    "figure-9-cycles": (RISCV, CYCLES.format("sifive-x280"), BASE),
    "figure-9-cycles-x86": (RISCV, CYCLES.format("broadwell"), BASE),
    "whole-models": (WHOLE_MODELS, "seconds", BASE),
    "section-vi-c-memory": (COSTS, MEMORY, BASE),
    "section-vi-c-x86": (COSTS, SECONDS.format("x86-64"), BASE),
    "section-vi-c-riscv": (COSTS, SECONDS.format("riscv64"), BASE),
}
WIDE = 0.8  # of the room of a group of bars


def pictures(results: Sequence[Result]) -> dict[str, bytes]:
    """PNG files by name, of the figures that something was measured for."""
    found: dict[str, bytes] = {}
    for name, (figure, quantity, base) in FIGURES.items():
        own = [r for r in results if (r.figure, r.quantity) == (figure, quantity)]
        if any(each.value is not None for each in own):
            found[f"{name}.png"] = bars(own, figure, quantity, base)
    return found


def bars(own: Sequence[Result], title: str, quantity: str, base: str) -> bytes:
    """A group for each layer, a bar for each contender."""
    figure, axes = panels(1, 1, (9.0, 3.4))
    panel = axes[0][0]
    layers = list(dict.fromkeys(each.layer for each in own))
    contenders = list(dict.fromkeys(each.contender for each in own))
    ones = values(own, title, quantity, base)
    for number, name in enumerate(contenders):
        heights = values(own, title, quantity, name)
        shown = [
            heights.get(each, 0.0) / (ones.get(each, 1.0) if base else 1.0)
            for each in layers
        ]
        width = WIDE / len(contenders)
        places = [place + number * width for place in range(len(layers))]
        panel.bar(places, shown, width, label=name)
    panel.set_xticks([n + WIDE / 2 for n in range(len(layers))], layers, size=8)
    panel.set_ylabel(f"{quantity}, of {base}'s" if base else quantity, size=8)
    panel.legend(fontsize=7, ncols=3)
    figure.suptitle(title)
    return png(figure)
