"""What run, verify, bench, profile and explain are asked: their common options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoloom.cli import options as words
from nanoloom.cli.emulation import Emulate, machine_named
from nanoloom.cli.lowering_options import (
    AS_IT_IS,
    Lowering,
    declared,
    with_lowering,
)
from nanoloom.cli.via import GRAPH, Via, model_by

if TYPE_CHECKING:
    from nanoloom.options import Precision
    from nanoloom.runtime.emulation import Machine

Verb = Callable[..., int]


@dataclass(frozen=True)
class Request:
    """The words of these options, as they are meant.

    dims: `--dim`, numbers and pairs of bounds.  inputs: a file a name.
    """

    model: Path
    dims: Mapping[str, int | tuple[int, int]]
    inputs: Mapping[str, str]
    seed: int
    threads: int | None
    cache: Path | None
    no_cache: bool
    unchecked: bool
    exact_conv: bool
    precision: Precision = "f32"
    emulate: Machine | None = None
    lowering: Lowering | None = None
    schedule: Path | None = None
    target: str | None = None  # of another CPU, which does not run here


# In the order of --help: the words of each, what is taken without them, their meaning.
OPTIONS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "model": (words.Model, Parameter.empty, Path),
    "via": (Via, GRAPH, str),
    "inputs": (
        words.Inputs, None, lambda said: words.pairs(said, "--input", "NAME=FILE.npy")
    ),
    "dims": (words.Sizes, None, words.sizes),
    "seed": (words.Seed, 0, int),
    "threads": (words.Threads, None, lambda said: said),
    "precision": (words.Precision, "f32", words.known_precision),
    "unchecked": (words.Unchecked, False, bool),
    "exact_conv": (words.ExactConv, False, bool),
    "lowering": (Lowering, AS_IT_IS, lambda said: said),
    "schedule": (words.Schedule, None, lambda said: said),
    "emulate": (Emulate, None, machine_named),
    "cache": (words.CacheFolder, None, lambda said: said),
    "no_cache": (words.NoCache, False, bool),
}  # fmt: skip
REQUEST = "request"  # the argument of a verb that they become


def with_options(*without: str, model: object = words.Model) -> Callable[[Verb], Verb]:
    """Give a verb these options in the place of its argument `request`.

    without: those that it does not have.  model: the words of what it takes.
    """
    own = {name: each for name, each in OPTIONS.items() if name not in without}
    kinds = {name: (kind, default) for name, (kind, default, _) in own.items()}
    kinds["model"] = model, Parameter.empty

    def decorated(verb: Verb) -> Verb:
        @functools.wraps(verb)
        def typed(**given: Any) -> int:
            said = {name: mean(given.pop(name)) for name, (_, _, mean) in own.items()}
            said["model"] = model_by(said.pop("via"), said["model"])
            return verb(request=Request(**said), **given)

        made = declared(typed, verb, REQUEST, kinds)
        return with_lowering(made) if "lowering" in own else made

    return decorated
