"""nanoloom score: the rows of a Parquet file, by all cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE, say

if TYPE_CHECKING:
    from nanoloom.cli.progress import Watch
    from nanoloom.scoring import Scorer
    from nanoloom.scoring.parquet import Report

EXAMPLE = "Example: nanoloom score model.onnx rows.parquet -o scores.parquet --keep id"

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="An ONNX file, or what `nanoloom compile` made."
    ),
]
Given = Annotated[Path, typer.Argument(metavar="INPUT.parquet", help="The rows.")]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="OUT.parquet", help="Where the result is written."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="INPUT=COLUMN",
        help="The column of an input, or several with commas between as its features; "
        "may be repeated.",
    ),
]
Wanted = Annotated[
    list[str] | None,
    typer.Option(
        "--only-output", metavar="NAME", help="One of the outputs; may be repeated."
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="COLUMN", help="A column to copy; may be repeated."),
]
BatchRows = Annotated[
    int,
    typer.Option("--batch-rows", min=1, metavar="N", help="Rows that run together."),
]
Mask = Annotated[
    str | None,
    typer.Option(
        "--mask",
        metavar="INPUT",
        help="The input that says which positions count: rows are filled up then.",
    ),
]
Fill = Annotated[
    list[str] | None,
    typer.Option(
        "--fill", metavar="INPUT=NUMBER", help="With what (0); may be repeated."
    ),
]
Reproducible = Annotated[
    bool, typer.Option("--reproducible", help="Each row alone: the same bits always.")
]
Level = Annotated[
    str | None,
    typer.Option("--level", metavar="CPU", help="Code for this CPU: x86-64-v3."),
]
Errors = Annotated[
    str,
    typer.Option(
        "--errors", metavar="WHAT", help="Of rows: raise, or column to go on."
    ),
]
Convert = Annotated[
    bool,
    typer.Option("--convert", help="Cast columns of other types, also inexactly."),
]


def score(
    model: Model,
    given: Given,
    output: Output,
    columns: Columns = None,
    keep: Keep = None,
    outputs: Wanted = None,
    dims: words.Sizes = None,
    batch_rows: BatchRows = 64,
    mask: Mask = None,
    fill: Fill = None,
    reproducible: Reproducible = False,
    level: Level = None,
    errors: Errors = "raise",
    convert: Convert = False,
    threads: words.Threads = None,
    json: words.Json = False,
    cache: words.CacheFolder = None,
    debug: words.Debug = False,
) -> int:
    """Score the rows of a Parquet file; a run that was killed is continued."""
    del debug
    from nanoloom.cli.progress import Watch
    from nanoloom.scoring import Scorer

    require_different(model, given, output)
    with Watch() as watch:
        scorer = Scorer(
            model,
            columns=column_names(columns),
            outputs=outputs or None,
            keep=keep or (),
            dims=words.sizes(dims),
            batch_rows=batch_rows,
            mask=mask,
            fill=fills(fill),
            reproducible=reproducible,
            level=known_level(level),
            errors=known_errors(errors),
            convert=convert,
            threads=threads,
            cache=cache,
        )
        report = scored(scorer, given, output, watch)
    tell(report, output, as_json=json)
    return DONE


def scored(scorer: Scorer, given: Path, output: Path, watch: Watch) -> Report:
    """The file, with a bar.  Raises Error without pyarrow."""
    scorer.tables  # noqa: B018 - raises here where pyarrow is missing
    from nanoloom.scoring.parquet import score_file

    def advance(done: int, total: int) -> None:
        watch.say("scoring rows", done, total)

    return score_file(scorer, given, output, advance)


def require_different(model: Path, given: Path, output: Path) -> None:
    from nanoloom.cache.file_operations import is_same
    from nanoloom.cli.emit_choices import STDOUT
    from nanoloom.cli.output_files import check_replaceable

    reason = ""
    if output.is_dir():
        reason = f"{output} is a folder"
    if output == STDOUT:
        reason = "-: a table is not printed; name a file .parquet"
    if reason:
        raise typer.BadParameter(reason, param_hint="--output")
    check_replaceable(output, ".parquet")
    for what, path in (("model", model), ("input", given)):
        if is_same(path, output):
            reason = f"the result would replace the {what}"
            raise typer.BadParameter(reason, param_hint="--output")


def column_names(given: Sequence[str] | None) -> dict[str, list[str]]:
    found = words.pairs(given, "--column", "x=age,size")
    return {name: value.split(",") for name, value in found.items()}


def fills(given: Sequence[str] | None) -> dict[str, float]:
    """Numbers by input; raises typer.BadParameter for what is none."""
    found: dict[str, float] = {}
    for name, value in words.pairs(given, "--fill", "ids=0").items():
        try:
            found[name] = int(value) if value.lstrip("-").isdecimal() else float(value)
        except ValueError:
            reason = f"{name}={value}: {value!r} is no number"
            raise typer.BadParameter(reason, param_hint="--fill") from None
    return found


def known_level(name: str | None) -> str | None:
    from nanoloom.cli.session import on_the_command_line
    from nanoloom.target import by_name

    if name is not None:
        with on_the_command_line("--level"):
            by_name(name)
    return name


def known_errors(word: str) -> str:
    from nanoloom.scoring.settings import ERRORS

    if word not in ERRORS:
        reason = f"{word} is none of {', '.join(ERRORS)}"
        raise typer.BadParameter(reason, param_hint="--errors")
    return word


def tell(report: Report, output: Path, *, as_json: bool) -> None:
    """What was done, on stdout."""
    new = report.rows - report.resumed
    rate = new / report.seconds if report.seconds else 0.0
    if as_json:
        from nanoloom.cli import arrays

        print(arrays.as_json(answer(report, output, rate)))
        return
    from nanoloom.cli.terminal import plural
    from nanoloom.explain.units import seconds

    if report.resumed:
        say(f"nanoloom: continued; {plural(report.resumed, 'row')} were there")
    if report.errors:
        say(f"nanoloom: {plural(report.errors, 'row')} could not be scored")
    took = f"{seconds(report.seconds)}, {rate:.0f} rows/s"
    print(f"{plural(report.rows, 'row')} -> {output} ({took})")


def answer(report: Report, output: Path, rate: float) -> dict[str, Any]:
    return {
        "rows": report.rows,
        "resumed_rows": report.resumed,
        "error_rows": report.errors,
        "threads": report.threads,
        "seconds": report.seconds,
        "rows_per_second": rate,
        "file": str(output),
    }
