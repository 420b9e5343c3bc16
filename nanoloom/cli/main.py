"""The command `nanoloom`: a table of verbs, and the way from words to exit status."""

from __future__ import annotations

import functools
import gc
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from nanoloom.cli import (
    bench,
    cache,
    check,
    compile,
    demo,
    explain,
    licences,
    operators,
    plugins,
    profile,
    quantize,
    run,
    score,
    targets,
    verify,
)
from nanoloom.cli.failures import (
    DONE,
    USAGE,
    guarded,
    is_debugging,
    open_standard_files,
    say,
)
from nanoloom.cli.plugins import Verb
from nanoloom.errors import ModelWarning
from nanoloom.garbage import COLLECTED
from nanoloom.lazy_import import load_later

VERBS = (
    Verb("run", run.run, run.EXAMPLE),
    Verb("compile", compile.compile, compile.EXAMPLE),
    Verb("check", check.check, check.EXAMPLE),
    Verb("verify", verify.verify, verify.EXAMPLE),
    Verb("bench", bench.bench, bench.EXAMPLE),
    Verb("profile", profile.profile, profile.EXAMPLE),
    Verb("explain", explain.explain, explain.EXAMPLE),
    Verb("score", score.score, score.EXAMPLE),
    Verb("quantize", quantize.quantize, quantize.EXAMPLE),
    Verb("operators", operators.operators, operators.EXAMPLE),
    Verb("targets", targets.targets, targets.EXAMPLE),
    Verb("cache", cache.cache, cache.EXAMPLE),
    Verb("licences", licences.licences, licences.EXAMPLE),
    Verb("demo", demo.demo, demo.EXAMPLE),
)
# Verbs of a package beside nanoloom, which says so where that is not installed.
ELSEWHERE = ("analyze", "reproduce")
ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


def verbs() -> tuple[Verb, ...]:
    """Those that are here, and then those of other packages."""
    return VERBS + plugins.verbs()


def build() -> typer.Typer:
    """The application with every verb of the table."""
    app = typer.Typer(
        name="nanoloom",
        help="Turn a neural network into vector code.",
        epilog="Example: nanoloom run model.onnx",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(version)
    for verb in verbs():
        app.command(verb.name, epilog=verb.example)(exiting(verb.function))
    for name in sorted({*ELSEWHERE} - {verb.name for verb in verbs()}):
        missing = exiting(plugins.elsewhere(name).function)
        words = {**ANY_WORDS, "help_option_names": []}
        app.command(name, hidden=True, context_settings=words)(missing)
    return app


def exiting(verb: Callable[..., int]) -> Callable[..., None]:
    """The verb as typer wants it: its status raised, its signature kept."""

    @functools.wraps(verb)
    def command(*args: object, **kwargs: object) -> None:
        raise typer.Exit(verb(*args, **kwargs))

    return command


def print_version(wanted: bool) -> None:
    if wanted:
        from nanoloom import __version__

        print(f"nanoloom {__version__}")
        raise typer.Exit(DONE)


Version = Annotated[
    bool,
    typer.Option(
        "--version", is_eager=True, callback=print_version, help="Print the version."
    ),
]


def print_cmake_dir(wanted: bool) -> None:
    if wanted:
        from nanoloom.cpp import FOLDER

        print(FOLDER)
        raise typer.Exit(DONE)


CMakeDir = Annotated[
    bool,
    typer.Option(
        "--cmake-dir",
        is_eager=True,
        callback=print_cmake_dir,
        help="Print the folder for cmake -Dnanoloom_DIR=.",
    ),
]


def print_rust_dir(wanted: bool) -> None:
    if wanted:
        from nanoloom.rust import FOLDER

        print(FOLDER)
        raise typer.Exit(DONE)


RustDir = Annotated[
    bool,
    typer.Option(
        "--rust-dir",
        is_eager=True,
        callback=print_rust_dir,
        help="Print the folder of the crate, a path for Cargo.toml.",
    ),
]


def version(
    show: Version = False, cmake: CMakeDir = False, rust: RustDir = False
) -> None:
    """Turn a neural network into vector code."""
    del show, cmake, rust


def one_line(message: Warning | str, *_: object) -> str:
    """A warning as other messages are: without the place that it comes from."""
    return f"nanoloom: warning: {message}\n"


LIST = "--against"  # of peers


def empty_word(given: Sequence[str]) -> str:
    """The option that is given an empty word, "an argument" for none, "" for no such.

    A script gives one where its variable is not set; as a path it would be the current
    folder.  A list of peers may have none.
    """
    for before, word in zip(("", *given), given, strict=False):
        if LIST in (before, word.removesuffix("=")):
            continue
        if not word:
            return before if before.startswith("-") else "an argument"
        if re.fullmatch("--[a-z-]+=", word):
            return word[:-1]
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """The console entry; arguments: those of the process by default."""
    if arguments is None:  # the process does nothing else
        gc.set_threshold(COLLECTED)
        open_standard_files()
        load_later()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not is_debugging(given):
        warnings.simplefilter("ignore")  # of libraries: not for users
        warnings.filterwarnings("default", category=ModelWarning)
        warnings.formatwarning = one_line

    def work() -> int:
        if empty := empty_word(given):
            say(f"nanoloom: {empty} is empty; give a value, or leave it out")
            return USAGE
        try:
            build()(given, prog_name="nanoloom")
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):
                raise end.__context__ from None  # libraries end so, each with its own
            return end.code if isinstance(end.code, int) else DONE
        return DONE

    return guarded(work, given)
