"""What `nanoloom quantize` says of each layer: a table, or a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cli.terminal import indented, out, plural, table
from nanoloom.explain.units import seconds

if TYPE_CHECKING:
    from nanoloom.quantization.report import LayerReport, QuantizationReport

COLUMNS = ["-layer", "operator", "computed in", ">adds error"]
TIMED = [">in floats", ">quantized", ">faster"]
COLORS = {"floats": "tab:gray", "integers": "tab:orange"}
ROW = 0.22  # inches of a layer in a picture


def show(report: QuantizationReport, model: Path, path: Path) -> None:
    """The table, and under it what it comes to."""
    screen = out()
    is_timed = report.seconds is not None
    columns = COLUMNS + (TIMED if is_timed else [])
    rows = [row(layer, is_timed=is_timed) for layer in report.layers]
    title = f"{model.name}: {plural(len(report.layers), 'layer')}"
    screen.print(table(title, columns, rows))
    screen.print()
    for text in reasons(report):
        screen.print(indented(text, 0))
    for text in totals(report):
        screen.print(indented(text, 0))
    screen.print(indented(f"wrote {path}", 0, "bold"))


def row(layer: LayerReport, *, is_timed: bool) -> list[str]:
    """A layer as cells."""
    error = "" if layer.error is None else f"{layer.error:.1e}"
    cells = [layer.node, layer.operator, layer.computed, error]
    if is_timed and layer.seconds and layer.float_seconds:
        faster = f"{layer.float_seconds / layer.seconds:.2f}x"
        cells += [seconds(layer.float_seconds), seconds(layer.seconds), faster]
    elif is_timed:
        cells += ["", "", ""]
    return cells


def reasons(report: QuantizationReport) -> list[str]:
    """Why layers are in floats, those of one reason together."""
    kinds: dict[str, list[str]] = {}
    for layer in report.layers:
        if layer.computed == "floats":
            kinds.setdefault(layer.reason, []).append(layer.node)
    found: list[str] = []
    for why, names in kinds.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        found.append(f"in floats: {', '.join(names[:3])}{more}: {why}")
    return found


def totals(report: QuantizationReport) -> list[str]:
    """Errors of outputs, bytes, time."""
    count = plural(report.samples, "random sample" if report.random else "sample")
    limit = report.max_error
    at_most = f" of at most {limit:.3g}" if math.isfinite(limit) else ""
    found = [
        f"output {name}: error {error:.3g}{at_most}, on {count}"
        for name, error in report.outputs.items()
    ]
    if not report.outputs:
        found.append("outputs are not compared: there are no samples")
    before, after = (n / 1e6 for n in (report.float_bytes, report.bytes))
    found.append(f"weights: {before:.3g} MB, now {after:.3g} MB")
    if report.seconds and report.float_seconds:
        faster = report.float_seconds / report.seconds
        found.append(
            f"a run, {plural(report.threads, 'thread')}:"
            f" {seconds(report.float_seconds)} in floats, now"
            f" {seconds(report.seconds)}: {faster:.2f}x as fast"
        )
    return found


def draw(report: QuantizationReport, model: Path, path: Path) -> None:
    """A bar for the error of each layer, and for its speed where it was timed."""
    import io

    from matplotlib.figure import Figure

    from nanoloom.cli import output_files

    layers = report.layers[::-1]
    kinds = 2 if report.seconds is not None else 1
    size = (6 * kinds + 2, 1.5 + ROW * len(layers))
    figure = Figure(figsize=size, layout="constrained")
    plots = figure.subplots(1, kinds, sharey=True, squeeze=False)[0]
    names = [layer.node[-40:] for layer in layers]
    places = range(len(layers))
    colors = [COLORS.get(x.computed, "tab:blue") for x in layers]
    plots[0].barh(places, [x.error or 0.0 for x in layers], color=colors)
    plots[0].set_yticks(places, names, fontsize=6)
    plots[0].set_xlabel("error that the layer adds; gray: left in floats")
    if kinds == 2:
        faster = [(x.float_seconds or 0) / (x.seconds or 1) for x in layers]
        plots[1].barh(places, faster, color=colors)
        plots[1].axvline(1, color="black", linewidth=0.5)
        plots[1].set_xlabel("times as fast as in floats")
    figure.suptitle(model.name)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lstrip(".") or "png", dpi=100)
    with output_files.written(path) as file:
        file.write(drawn.getvalue())
