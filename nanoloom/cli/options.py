"""The words that several verbs share, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from nanoloom.cache import CACHE_VARIABLE
from nanoloom.cli.failures import CACHE_OPTION, DEBUG_OPTION

if TYPE_CHECKING:
    from nanoloom import options

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="An ONNX file, or a .pt2 of PyTorch.")
]
ModelOrText = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="An ONNX file, a .pt2 of PyTorch, or linalg in a file .mlir.",
    ),
]
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        "-d",
        metavar="NAME=VALUE",
        help="A number for a named dimension; may be repeated.",
    ),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        "-d",
        metavar="NAME=VALUE",
        help="A number for a named dimension, or bounds: length=1..512; may be "
        "repeated.",
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=FILE.npy",
        help="An input array; may be repeated. Those not given are random.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Of the random inputs.")
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        "-t",
        min=1,
        max=1024,
        metavar="N",
        help="Threads to run with (default: the CPUs granted to this process).",
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        "--precision", metavar="TYPE", help="Of products of floats: f32 or bf16."
    ),
]
Unchecked = Annotated[
    bool,
    typer.Option("--unchecked", help="Do not look whether indices are in range."),
]
ExactConv = Annotated[
    bool,
    typer.Option("--exact-conv", help="Convolutions by sums of products, no Winograd."),
]
Schedule = Annotated[
    Path | None,
    typer.Option(
        "--schedule",
        metavar="FILE",
        help="Transform scripts, as --emit schedule writes.",
    ),
]
Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="LAYER",
        help="With --emit all: a layer, a kernel, or a pattern. Default: all of them.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="In the functions of a library, nanoloom_NAME_create; default: from OUT.",
    ),
]
Session = Annotated[
    bool,
    typer.Option(
        "--session",
        help="A library that keeps past keys and values from one run to the next.",
    ),
]
Deep = Annotated[
    bool,
    typer.Option(
        "--deep", help="Compile every kernel, too; they are kept for the next command."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        CACHE_OPTION,
        envvar=CACHE_VARIABLE,
        metavar="DIR",
        help="Where compiled code is kept.",
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Neither use compiled code nor keep it.")
]
TimeReport = Annotated[
    bool, typer.Option("--time-report", help="Print where the time went.")
]
Debug = Annotated[
    bool, typer.Option(DEBUG_OPTION, help="Show the traceback of an error.")
]


def pairs(words: Sequence[str] | None, option: str, like: str) -> dict[str, str]:
    """NAME=VALUE words as a dict; the first = separates.

    Raises typer.BadParameter for a word without = or a name given twice.
    """
    found: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise typer.BadParameter(f"{word!r} is not like {like}", param_hint=option)
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint=option)
        found[name] = value
    return found


def known_precision(word: str) -> options.Precision:
    """The word after `--precision`; raises typer.BadParameter for an unknown one."""
    from nanoloom import options

    known: tuple[options.Precision, ...] = get_args(options.Precision)
    for precision in known:
        if precision == word:
            return precision
    reason = f"{word} is none of {', '.join(known)}"
    raise typer.BadParameter(reason, param_hint="--precision")


def sizes(words: Sequence[str] | None) -> dict[str, int | tuple[int, int]]:
    """`--dim` words as numbers, and those like length=1..512 as pairs of bounds."""
    found: dict[str, int | tuple[int, int]] = {}
    for name, value in pairs(words, "--dim", "batch=2 or length=1..512").items():
        least, dots, most = value.partition("..")
        if dots:
            found[name] = _whole(name, value, least or "0"), _whole(name, value, most)
        else:
            found[name] = _whole(name, value, value)
    return found


def dimensions(words: Sequence[str] | None) -> dict[str, int]:
    """`--dim` words as numbers; raises typer.BadParameter for anything else."""
    found = pairs(words, "--dim", "batch=2")
    return {name: _whole(name, value, value) for name, value in found.items()}


def _whole(name: str, value: str, word: str) -> int:
    """A word of a `--dim` as a number; the message has all of it."""
    if not (word.isascii() and word.isdigit() and len(word) <= 18):
        raise typer.BadParameter(
            f"{name}={value}: {word!r} is no whole number from 0 on, below 10^18",
            param_hint="--dim",
        )
    return int(word)
