"""What other packages add to the command: verbs, and strategies with their options.

A package whose name begins with nanoloom- registers them as entry points: a Verb in the
group nanoloom.commands, Strategies in the group nanoloom.strategies.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoloom.cli.failures import say

if TYPE_CHECKING:
    from nanoloom.options import Strategy

COMMANDS, STRATEGIES = "nanoloom.commands", "nanoloom.strategies"
EXTRA = "pip install 'nanoloom[papers]', or ./papers in nanoloom's folder,"


@dataclass(frozen=True)
class Verb:
    """A command: its function's docstring is its help, the example ends it."""

    name: str
    function: Callable[..., int]
    example: str


@dataclass(frozen=True)
class Strategies:
    """Words of --strategy, and options beside it.

    options: types of arguments as typer has them, None where nothing is given.  make:
    the value of a word, with those options that are given as keywords; it may raise
    typer.BadParameter.
    """

    names: tuple[str, ...]
    options: Mapping[str, Any]
    make: Callable[..., Strategy]


@functools.cache
def verbs() -> tuple[Verb, ...]:
    return tuple(x for x in loaded(COMMANDS) if isinstance(x, Verb))


@functools.cache
def strategies() -> tuple[Strategies, ...]:
    return tuple(x for x in loaded(STRATEGIES) if isinstance(x, Strategies))


def loaded(group: str) -> Iterator[object]:
    """The objects of a group; what cannot be imported is left out with a warning."""
    for name, place in registered(group).items():
        module, _, attribute = place.partition(":")
        try:
            yield getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            say(f"nanoloom: warning: {name} is left out, it does not load: {error}")


def registered(group: str) -> dict[str, str]:
    """module:attribute by name, the first of each along sys.path.

    Read here: importlib.metadata takes longer to load than all that a short command
    does.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        for file in sorted(Path(folder).glob("nanoloom_*.dist-info/entry_points.txt")):
            for name, place in entries(file.read_text("utf-8"), group):
                found.setdefault(name, place)
    return found


def entries(text: str, group: str) -> Iterator[tuple[str, str]]:
    """The pairs of a group of an entry_points.txt."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and "=" in line:
            name, _, place = line.partition("=")
            yield name.strip(), place.strip()


def elsewhere(name: str) -> Verb:
    """In the place of a verb whose package is not installed."""

    def missing() -> int:
        from nanoloom.cli.failures import USAGE

        say(f"nanoloom: {name} is of the package nanoloom-papers; {EXTRA} brings it")
        return USAGE

    return Verb(name, missing, "")
