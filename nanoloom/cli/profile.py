"""nanoloom profile: where a model's time goes, layer by layer."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.bench import Repeat
from nanoloom.cli.failures import DONE, say
from nanoloom.cli.lowering_options import AS_IT_IS, Lowering, with_lowering

if TYPE_CHECKING:
    from nanoloom.explain.profile import Layer, Profile

EXAMPLE = "Example: nanoloom profile model.onnx --dim batch=1 --trace model.json"
SHOWN = 20  # layers in the table
Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE.json",
        help="Write a timeline of the runs, which ui.perfetto.dev opens.",
    ),
]
Every = Annotated[
    bool, typer.Option("--all", help=f"List every layer, not the {SHOWN} slowest.")
]


@with_lowering
def profile(
    model: words.Model,
    inputs: words.Inputs = None,
    dims: words.Sizes = None,
    threads: words.Threads = None,
    precision: words.Precision = "f32",
    unchecked: words.Unchecked = False,
    exact_conv: words.ExactConv = False,
    lowering: Lowering = AS_IT_IS,
    repeat: Repeat = None,
    every: Every = False,
    trace: Trace = None,
    seed: words.Seed = 0,
    json: words.Json = False,
    cache: words.CacheFolder = None,
    no_cache: words.NoCache = False,
    debug: words.Debug = False,
) -> int:
    """Time every layer of a model, and say what it computes and moves."""
    del debug
    from nanoloom.cli.model_inputs import Request, inputs_for, open_program
    from nanoloom.cli.progress import Watch
    from nanoloom.explain import profile as measured

    request = Request(
        model,
        words.sizes(dims),
        words.pairs(inputs, "--input", "NAME=FILE.npy"),
        seed,
        threads,
        words.known_precision(precision),
        cache,
        no_cache,
        unchecked,
        exact_conv=exact_conv,
        lowering=lowering,
    )
    check_trace(trace)
    with Watch() as watch:
        program = open_program(request, watch)
        given = inputs_for(program, request)
        program.variant(program.checked(given.arrays))
        watch.say("timing every layer")
        found = measured.profile(program, given.arrays, repeat)
    write_trace(trace, found, model)
    tell(found, given.random, seed, every=every, json=json)
    return DONE


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


def write_trace(path: Path | None, found: Profile, model: Path) -> None:
    """The timeline, if it is wanted."""
    from nanoloom.cli import output_files
    from nanoloom.explain.profile import trace

    if path is not None:
        output_files.write_text(path, json_text.dumps(trace(found, model.name)))


def check_trace(path: Path | None) -> None:
    """Refuse now what could not be written after the measurement."""
    from nanoloom.cli import output_files

    if path is None:
        return
    if path.suffix != ".json":
        reason = f"{path} does not end in .json"
        raise typer.BadParameter(reason, param_hint="--trace")
    output_files.check_replaceable(path, ".json")


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

    order = sorted(found.layers, key=lambda layer: -layer.seconds)
    shown = order if every else order[:SHOWN]
    rows = [row(layer, found.inside) for layer in shown]
    left = order[len(shown) :]
    if left:
        rest = sum(layer.seconds for layer in left)
        share = f"{rest / found.inside:.1%}" if found.inside else ""
        rows.append([plural(len(left), "other"), "", seconds(rest), "", share, "", ""])
    runs, threads = plural(len(found.runs), "run"), plural(found.threads, "thread")
    title = f"{seconds(found.whole)} a run (median of {runs}, {threads})"
    names = ("-layer", ">steps", ">time", ">spread", ">share", ">Gop/s", ">GB/s")
    out().print(table(title, names, rows))
    outside = found.whole - found.inside
    note = f"outside of steps: {seconds(max(0.0, outside))} a run"
    out().print(note, markup=False, style="dim", soft_wrap=True)


def row(layer: Layer, whole: float) -> list[str]:
    """A line of the table; spread: from the 10th to the 90th percentile."""
    from nanoloom.explain.units import seconds

    spread = (layer.high - layer.low) / layer.seconds if layer.seconds else 0.0
    return [
        layer.name,
        str(len(layer.steps)),
        seconds(layer.seconds),
        f"{spread:.0%}",
        f"{layer.seconds / whole:.1%}" if whole else "",
        f"{layer.rate / 1e9:.1f}" if layer.operations else "",
        f"{layer.bandwidth / 1e9:.1f}" if layer.bytes else "",
    ]
