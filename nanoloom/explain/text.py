"""A report as lines for a terminal: each with a style, "" for none."""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.explain.report import ARITHMETIC, Demand, Explanation, KernelReport
from nanoloom.explain.units import amount, percent, seconds, size

Line = tuple[str, str]  # text, style
RED, BOLD, DIM = "red", "bold", "dim"


def lines_of(report: Explanation, *, whole: bool) -> Iterator[Line]:
    """whole: with the loops and the assembly of each kernel."""
    yield title(report), BOLD
    for note in report.notes:
        yield note, DIM
    for kernel in slowest_first(report):
        yield "", ""
        yield from kernel_lines(kernel, report, whole=whole)
    lost = [node.name for node in report.nodes if not node.kernels]
    if lost:
        yield "", ""
        yield f"nodes that are in no kernel: {', '.join(lost)}", ""


def title(report: Explanation) -> str:
    """What was explained, and how long a run takes."""
    what = f"{report.model or 'model'} for {report.target}, {report.precision}"
    if report.measured is None:
        return f"{what}: not measured"
    threads = f"{report.threads} thread{'s' * (report.threads != 1)}"
    runs = f"median of {report.runs} run{'s' * (report.runs != 1)}, {threads}"
    return f"{what}: {seconds(report.measured)} a run ({runs})"


def slowest_first(report: Explanation) -> list[KernelReport]:
    """The kernels; in the order in which they run where nothing was measured."""
    return sorted(report.kernels, key=lambda kernel: -(kernel.measured or 0.0))


def kernel_lines(
    kernel: KernelReport, report: Explanation, *, whole: bool
) -> Iterator[Line]:
    """One kernel."""
    yield f"{kernel.name}: {some(kernel.layers)}", BOLD
    for name, text in facts(kernel, report):
        yield f"  {name:<11}{text}", ""
    for each in kernel.fused:
        again = f", {each.again:,} points again" if each.again else ""
        text = f"{each.producer} at {each.at} of {each.consumer}"
        yield f"  fused      {text}: saves {size(each.saved)}{again}", ""
    for tensor in kernel.not_fused:
        text = f"-> {some(tensor.readers)}: {size(tensor.bytes)}; {tensor.why}"
        yield f"  not fused  {text}", ""
    for text in kernel.fallbacks:
        yield f"  ! {text}", RED
    if whole:
        yield from block("loops", kernel.loops)
        yield from block("schedule", kernel.directives)
        yield from block(loop_title(kernel), kernel.assembly)
        costs = "\n".join(
            f"{'*' if x.chosen else ' '} {x.cost:6.2f}  {x.reason}"
            for x in kernel.candidates
        )
        yield from block("candidates: predicted cycles for the least work", costs)


def facts(kernel: KernelReport, report: Explanation) -> Iterator[tuple[str, str]]:
    """What a kernel does and takes, a row a fact."""
    yield "nodes", some(kernel.nodes, 12)
    yield "calls", str(kernel.calls)
    if kernel.measured is not None:
        low, high = seconds(kernel.low or 0), seconds(kernel.high or 0)
        share = kernel.measured / report.measured if report.measured else None
        of_run = f", {percent(share)} of a run" if share is not None else ""
        yield "measured", f"{seconds(kernel.measured)} ({low} to {high}){of_run}"
    if kernel.predicted is not None:
        yield "predicted", seconds(kernel.predicted)
    if kernel.cost is not None:
        yield "cost", f"{kernel.cost:.2f} cycles for the least work that there is"
    if kernel.limit:
        yield "limit", kernel.limit
    for demand in kernel.demands:
        if demand.amount:
            yield demand.resource, demand_text(demand, kernel.measured)
    yield "why", kernel.reason


def demand_text(demand: Demand, measured: float | None) -> str:
    """An amount, how fast that was, and its share of the measured roof."""
    counts = demand.resource == ARITHMETIC
    text = amount(demand.amount, "op") if counts else size(demand.amount)
    if measured:
        text += f", {amount(demand.amount / measured, 'op/s' if counts else 'B/s')}"
    if demand.rate and measured:
        share = demand.amount / demand.rate / measured
        text += f", {share:.0%} of what was measured here"
    return text


def loop_title(kernel: KernelReport) -> str:
    if not kernel.inner_loops:
        return "assembly, without a loop"
    return f"assembly of the longest of {kernel.inner_loops} innermost loops"


def block(name: str, text: str) -> Iterator[Line]:
    """A text under a title; nothing for none."""
    if text:
        yield f"  {name}", DIM
        for line in text.splitlines():
            yield f"    {line}", ""


def some(names: tuple[str, ...], most: int = 3) -> str:
    """Names, the first few of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
