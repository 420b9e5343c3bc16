"""The table of --time-report: all of a command's time, by what it was spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanoloom.cli.progress import Watch

# The stages that are this process's own, in their order, and what others are asked for.
WORDS = {
    "read": "the model, its shapes",
    "start": "the compiler's libraries",
    "graph": "simplified",
    "linalg": "operators lowered",
    "kernels": "cut, fused, placed",
    "sizes": "samples joined",
    "schedule": "chosen",
    "search": "schedules tried",
    "workers": "waited for",
    "runtime": "in C, where the cache has none",
    "weights": "in the layouts of kernels",
    "link": "with the runtime",
    "load": "checked, mapped",
    "run": "once",
}


def show_times(watch: Watch) -> None:
    """On stderr: what passed here adds up to the whole; below, what workers did."""
    from nanoloom.cli.terminal import err, plural, table
    from nanoloom.explain.units import seconds

    rest = watch.whole - sum(watch.passed.values())
    order = [name for name in WORDS if name in watch.passed]
    order += [name for name in watch.passed if name not in WORDS]
    rows = [[n, seconds(watch.passed[n]), WORDS.get(n, "")] for n in order]
    rows += [["rest", seconds(rest), ""], ["whole", seconds(watch.whole), ""]]
    err().print(table("", ("stage", ">time", ""), rows))
    if not watch.kernels:
        return
    told = f"{plural(watch.kernels, 'kernel')}, {watch.cached} from the cache"
    others = {n: t for n, t in watch.seconds.items() if n not in watch.passed}
    rows = [[n, seconds(t), ""] for n, t in others.items()]
    rows.append(["all workers", seconds(sum(others.values())), told])
    err().print(table("", ("in workers", ">time", ""), rows))
