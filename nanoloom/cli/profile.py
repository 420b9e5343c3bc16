"""nanoloom profile: where a model's time goes, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli import profile_files as files
from nanoloom.cli.bench import Repeat
from nanoloom.cli.failures import DONE, say
from nanoloom.cli.request import Request, with_options

if TYPE_CHECKING:
    from nanoloom.explain.profile import Layer, Profile
    from nanoloom.explain.report import Explanation

EXAMPLE = "Example: nanoloom profile model.onnx --dim batch=1 --trace model.json"
SHOWN = 20  # layers in the table
COLUMNS = (
    "-layer", ">steps", ">time", ">spread", ">share", ">waiting", ">Gop/s", ">GB/s",
    ">roof",
)  # fmt: skip
Every = Annotated[
    bool, typer.Option("--all", help=f"List every layer, not the {SHOWN} slowest.")
]


@with_options("emulate")
def profile(
    request: Request,
    repeat: Repeat = None,
    every: Every = False,
    trace: files.Trace = None,
    html: files.Html = None,
    overlay: files.Overlay = None,
    annotate: files.Annotate = None,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """Time every layer of a model, and say what it computes and moves."""
    del debug
    wanted = files.ProfileFiles(trace, html, overlay, annotate)
    wanted.check(request.model)
    found, random = measure(request, repeat, wanted)
    tell(found, random, request.seed, every=every, json=json)
    return DONE


def measure(
    request: Request, runs: int | None, wanted: files.ProfileFiles
) -> tuple[Profile, Sequence[str]]:
    """The profile, its files written, and the inputs that nobody gave."""
    from nanoloom.cli.model_inputs import inputs_for, open_program
    from nanoloom.cli.progress import Watch
    from nanoloom.explain import profile as measured
    from nanoloom.explain.page import LayerTable
    from nanoloom.target import peaks

    with Watch() as watch:
        program = open_program(request, watch)
        given = inputs_for(program, request)
        arrays = program.checked(given.arrays)
        program.variant(arrays)
        watch.say("measuring this machine")
        rates = peaks.measure(program.options.target, program.threads)
        watch.say("timing every layer")
        found = measured.profile(program, given.arrays, runs, rates)
        table = LayerTable(
            summary(found), [x.lstrip("->") for x in COLUMNS], rows(found)
        )

        def explained() -> Explanation:
            return program.explain(given.arrays, runs=runs)

        wanted.write(found, request.model, explained, table)
    return found, given.random


def tell(
    found: Profile, random: Sequence[str], seed: int, *, every: bool, json: bool
) -> None:
    """What was measured, and which inputs nobody gave."""
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.model_inputs import random_note

    if json:
        print(as_json(answer(found)))
        return
    show(found, every=every)
    if random:
        say(random_note(random, seed))


def answer(found: Profile) -> dict[str, Any]:
    """What `--json` prints; times in seconds."""
    return {
        "seconds": found.whole,
        "seconds_in_steps": found.inside,
        "threads": found.threads,
        "runs": len(found.runs),
        "layers": [asdict(layer) for layer in found.layers],
    }


def show(found: Profile, *, every: bool) -> None:
    """The same for readers, the slowest first."""
    from nanoloom.cli.terminal import out, plural, table
    from nanoloom.explain.units import seconds

    every_row = rows(found)
    shown = every_row if every else every_row[:SHOWN]
    left = slowest_first(found)[len(shown) :]
    if left:
        rest = sum(layer.seconds for layer in left)
        share = f"{rest / found.inside:.1%}" if found.inside else ""
        empty = [""] * (len(COLUMNS) - 5)
        other = [plural(len(left), "other"), "", seconds(rest), "", share, *empty]
        shown = [*shown, other]
    out().print(table(summary(found), COLUMNS, shown))
    outside = found.whole - found.inside
    note = f"outside of steps: {seconds(max(0.0, outside))} a run"
    out().print(note, markup=False, style="dim", soft_wrap=True)


def slowest_first(found: Profile) -> list[Layer]:
    return sorted(found.layers, key=lambda layer: -layer.seconds)


def rows(found: Profile) -> list[list[str]]:
    """A line for each layer."""
    return [row(layer, found.inside) for layer in slowest_first(found)]


def summary(found: Profile) -> str:
    """What was measured, in a line."""
    from nanoloom.cli.terminal import plural
    from nanoloom.explain.units import seconds

    runs, threads = plural(len(found.runs), "run"), plural(found.threads, "thread")
    return f"{seconds(found.whole)} a run (median of {runs}, {threads})"


def row(layer: Layer, whole: float) -> list[str]:
    """A line of the table; spread: from the 10th to the 90th percentile."""
    from nanoloom.explain.units import percent, seconds

    spread = (layer.high - layer.low) / layer.seconds if layer.seconds else 0.0
    return [
        layer.name,
        str(len(layer.steps)),
        seconds(layer.seconds),
        f"{spread:.0%}",
        f"{layer.seconds / whole:.1%}" if whole else "",
        percent(layer.waiting),
        f"{layer.rate / 1e9:.1f}" if layer.operations else "",
        f"{layer.bandwidth / 1e9:.1f}" if layer.bytes else "",
        percent(layer.share),
    ]
