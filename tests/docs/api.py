"""Print docs/api.md from the docstrings: `python -m tests.docs.api > docs/api.md`."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator

import nanoloom
from nanoloom import errors, options
from nanoloom.api.loaded import Loaded
from nanoloom.api.sessions.session import Session
from nanoloom.cache import Cache
from nanoloom.explain import report
from nanoloom.explain.profile import Layer, Profile
from nanoloom.interface.interface import Interface
from nanoloom.quantization.quantize import Quantized
from nanoloom.quantization.report import LayerReport, QuantizationReport
from nanoloom.scoring import Scorer

HEAD = """\
# Python

What `import nanoloom` gives. The text of each is its docstring, as `help` shows it:
this page is written by `python -m tests.docs.api`. There are pages about
[computations](computations.md) that come from no model, [sizes](sizes.md),
[sessions](decoding.md) and [the cache](cache.md).
"""
# In the order in which a user meets them; the methods of a class in their own order.
PAGE = {
    "Compiling": [nanoloom.compile, nanoloom.Program, Interface, nanoloom.Cancellation],
    "Quantizing": [nanoloom.quantize, Quantized, QuantizationReport, LayerReport],
    "Saved programs": [nanoloom.load, Loaded],
    "Tables": [Scorer],
    "Keys and values that stay": [Session],
    "Explaining and profiling": [
        report.Explanation,
        report.KernelReport,
        report.Node,
        report.Demand,
        report.Fused,
        report.NotFused,
        report.RunnerUp,
        Profile,
        Layer,
    ],
    "Options": [options.CompileOptions, Cache],
    "Computations": [nanoloom.computation],
    "Operators of your own": [nanoloom.operator],
    "Errors": [
        errors.Error,
        errors.InputError,
        errors.ModelError,
        errors.Unsupported,
        errors.Cancelled,
        errors.TimedOut,
        errors.InternalError,
        errors.ModelWarning,
    ],
}
NAMED = re.compile(r"^([a-z_]+(?:, [a-z_]+)*): ")
PIECES = re.compile(r"(?<=\.)\s+(?=[a-z_]+(?:, [a-z_]+)*: |Raises )")
METHODS = {
    nanoloom.Program: (
        "__call__",
        "run",
        "run_async",
        "metadata",
        "session",
        "save",
        "nests",
        "explain",
        "profile",
    ),
    nanoloom.Cancellation: ("cancel",),
    Quantized: ("save",),
    Loaded: ("__call__", "run", "run_async", "session"),
    report.Explanation: ("to_dict", "from_json"),
    Scorer: ("__call__", "schema"),
    Session: ("__call__", "rewind", "reset", "start", "past"),
    Cache: ("__init__", "temporary"),
}


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(part for title in PAGE for part in chapter(title))])


def chapter(title: str) -> Iterator[str]:
    yield f"## {title}\n"
    for thing in PAGE[title]:
        name = thing.__name__
        known = name in nanoloom.__all__ and getattr(nanoloom, name) is thing
        where = "nanoloom" if known else thing.__module__.removesuffix(".store")
        yield f"### `{where}.{name}`\n"
        if inspect.isclass(thing):
            yield described(thing)
            for method in METHODS.get(thing, ()):
                yield signed(name.lower(), method, getattr(thing, method))
                if method != "__init__":
                    yield described(getattr(thing, method))
        else:
            yield signed("nanoloom", name, thing)
            yield described(thing)


def signed(owner: str, name: str, function: Callable[..., object]) -> str:
    """How it is called, a parameter a line where there are many."""
    parameters = inspect.signature(function).parameters.values()
    words: list[str] = []
    for x in parameters:
        if x.kind == x.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        if x.name != "self":
            words.append(written(x))
    is_whole = name == "__init__" or inspect.ismethod(function)  # of the class itself
    called = owner.capitalize() if is_whole else owner
    called = called if name.startswith("__") else f"{called}.{name}"
    text = f"{called}({', '.join(words)})"
    if len(text) > 88:
        text = f"{called}(\n" + "".join(f"    {word},\n" for word in words) + ")"
    return f"```\n{text}\n```\n"


def written(x: inspect.Parameter) -> str:
    """A parameter; a default that is a function is only there."""
    stars = "*" if x.kind == x.VAR_POSITIONAL else ""
    default = "" if x.default is x.empty else f" = {x.default!r}"
    if default and callable(x.default):
        default = " = ..."
    return f"{stars}{x.name}: {x.annotation}{default}"


def described(thing: object) -> str:
    """Its docstring: a line for each thing that is named with a colon."""
    text = inspect.getdoc(thing)
    assert text, f"{thing} has no docstring"
    return "\n".join(map(paragraph, text.split("\n\n")))


def paragraph(part: str) -> str:
    lines = part.removeprefix("Args:\n").splitlines()
    pieces = PIECES.split(" ".join(line.strip() for line in lines))
    named = [NAMED.sub(r"- **\1**: ", piece) for piece in pieces]
    made = list[str]()
    for before, after in zip(["", *named], named, strict=False):
        if before and not (before.startswith("- ") and after.startswith("- ")):
            made.append("")
        made.append(wrapped(after))
    return "\n".join(made) + "\n"


def wrapped(line: str) -> str:
    return textwrap.fill(line, 100, subsequent_indent="  " if line[:2] == "- " else "")


if __name__ == "__main__":
    print(page(), end="")
