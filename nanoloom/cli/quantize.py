"""nanoloom quantize: a model in 8 bits, or with weights of 4 or 8, made of samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE, say

if TYPE_CHECKING:
    from nanoloom.cli.progress import Watch
    from nanoloom.quantization.quantize import Quantized

EXAMPLE = "Example: nanoloom quantize model.onnx samples/ -o model.int8.onnx"
METHODS = ("minmax", "entropy", "percentile")
BITS, BLOCKS = (4, 8), (16, 32, 64, 128, 256)
FOR_SPEED = (
    "nanoloom: WARNING: samples are random: this model is for measuring speed ONLY; its"
    " ranges and errors say nothing about real data"
)
Samples = Annotated[
    Path | None,
    typer.Argument(
        metavar="[SAMPLES]",
        help="A folder of .npy files, or .npz with an array for each input.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="OUT.onnx",
        help="Default: MODEL.int8.onnx, or MODEL.w4.onnx, in this folder.",
    ),
]
Weights = Annotated[
    int | None,
    typer.Option(
        "--weights", metavar="BITS", help="Quantize weights alone: 4 or 8 bits."
    ),
]
Block = Annotated[
    int,
    typer.Option(
        "--block", metavar="N", help="With --weights: numbers that share a scale."
    ),
]
Calibration = Annotated[
    str,
    typer.Option(
        "--calibration",
        metavar="METHOD",
        help="How ranges are found: minmax, entropy, or percentile (99.99 %).",
    ),
]
KeepFloat = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-float",
        metavar="NODE",
        help="A node that stays in floats; may be repeated.",
    ),
]
MaxError = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="E",
        help="Of each output, |difference| / |output| (default: 0.1, none for random "
        "samples): layers stay in floats for it.",
    ),
]
Random = Annotated[
    int,
    typer.Option(
        "--random",
        min=0,
        max=10_000,
        metavar="N",
        help="N samples of random numbers: for measuring speed only.",
    ),
]
NoTimes = Annotated[
    bool, typer.Option("--no-times", help="Do not time layers and models.")
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE.png", help="Draw the layers (matplotlib)."),
]


def quantize(
    model: words.Model,
    samples: Samples = None,
    out: Out = None,
    weights: Weights = None,
    block: Block = 32,
    calibration: Calibration = "minmax",
    keep_float: KeepFloat = None,
    max_error: MaxError = None,
    random: Random = 0,
    dims: words.Dims = None,
    seed: words.Seed = 0,
    threads: words.Threads = None,
    no_times: NoTimes = False,
    json: words.Json = False,
    plot: Plot = None,
    cache: words.CacheFolder = None,
    no_cache: words.NoCache = False,
    debug: words.Debug = False,
) -> int:
    """Quantize a model; layers that would be wrong stay in floats."""
    del debug
    from nanoloom.cli.progress import Watch
    from nanoloom.cli.session import open_cache

    check_words(weights, block, calibration, max_error)
    path = place(model, out, weights)
    check_places(model, path, plot)
    given: dict[str, Any] = {
        "samples": samples,
        "weights": weights,
        "block": block,
        "calibration": calibration,
        "keep_float": tuple(keep_float or ()),
        "max_error": max_error,
        "random": random,
        "seed": seed,
        "dims": words.dimensions(dims),
        "times": not no_times,
        "threads": threads,
        "cache": open_cache(cache, no_cache),
    }
    if random:
        say(FOR_SPEED)
    with Watch() as watch:
        made = asked(model, given, watch)
        watch.say("writing the model", 0, 0)
        made.save(path)
    tell(model, path, made, plot, json=json)
    return DONE


def asked(model: Path, given: dict[str, Any], watch: Watch) -> Quantized:
    """The quantized model."""
    with watch.waiting("start"):
        from nanoloom.quantization.quantize import quantize as made
    return made(model, **given, progress=watch.say)


def check_words(
    weights: int | None, block: int, calibration: str, max_error: float | None
) -> None:
    """Raise BadParameter for a word that is wrong whatever the model is."""
    one_of(weights, (None, *BITS), "--weights")
    one_of(block, BLOCKS, "--block")
    one_of(calibration, METHODS, "--calibration")
    if max_error is not None and not max_error > 0:
        reason = f"{max_error:g} is no number above 0"
        raise typer.BadParameter(reason, param_hint="--max-error")


def one_of(word: object, known: tuple[object, ...], option: str) -> None:
    if word not in known:
        listed = ", ".join(str(each) for each in known if each is not None)
        raise typer.BadParameter(f"{word} is none of {listed}", param_hint=option)


def place(model: Path, out: Path | None, weights: int | None) -> Path:
    """The file to write."""
    kind = "int8" if weights is None else f"w{weights}"
    return out or Path(f"{model.stem}.{kind}.onnx")


def check_places(model: Path, out: Path, plot: Path | None) -> None:
    """Refuse now what could not be written after the work."""
    from nanoloom.cli import output_files
    from nanoloom.cli.bench import check_plot

    output_files.require_other(out, model)
    output_files.check_replaceable(out, ".onnx")
    check_plot(plot)


def tell(
    model: Path, path: Path, made: Quantized, plot: Path | None, *, json: bool
) -> None:
    """The report, as a table, as JSON, as a picture."""
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.quantize_table import draw, show

    report = made.report
    if plot is not None:
        draw(report, model, plot)
    if json:
        facts = {"model": str(model), "out": str(path), **report.as_dict()}
        print(as_json(facts))
    else:
        show(report, model, path)
