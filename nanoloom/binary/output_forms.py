"""What a compiled program can be written as."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.bare import write_bare
from nanoloom.binary.cpu_levels import in_one, only_level
from nanoloom.binary.executable import Identity, write_executable
from nanoloom.binary.manifest import manifest
from nanoloom.binary.shared import write_shared_library
from nanoloom.binary.static import write_static_library
from nanoloom.cache import Cache
from nanoloom.errors import Error

# shared and static: libraries for C with a header.  bare: an object or archive for
# machines without an operating system, with a header.  executable: a program for Linux.
Form = Literal["shared", "static", "bare", "executable"]


def form_of(
    form: Form | None, output: Path, levels: int, *, session: bool = False
) -> Form:
    """`form`, or what the ending says.

    Raises Error for a form that is none, or not for so many levels or sessions.
    """
    if form is None:
        form = "static" if output.suffix == ".a" else "shared"
    if form not in get_args(Form):
        known = ", ".join(map(repr, get_args(Form)))
        raise Error(f"form is one of {known}, not {form!r}")
    if levels and form == "bare":
        raise Error("a bare object is for one target", hint="name a single one")
    if session and form not in ("shared", "static"):
        raise Error(f"form is {form!r}, and sessions are for libraries: .so or .a")
    return form


def write(
    form: Form,
    levels: Sequence[tuple[Identity, Compiled]],
    output: Path,
    cache: Cache,
) -> None:
    """Write a program whole or not at all; raises Error as the form's own writer.

    levels: the program for a target, or for several, the least first.
    """
    identity, compiled = levels[-1]
    if len(levels) > 1:
        compiled = in_one(levels, cache)
    name, triple = identity.model, identity.target.triple
    looks = () if compiled.levels else only_level(identity)
    match form:
        case "shared":
            write_shared_library(
                compiled.objects,
                compiled.table,
                compiled.parameters if compiled.parameters.size else None,
                output,
                name,
                triple=triple,
                cache=cache,
                levels=compiled.levels,
                looks=looks,
                manifest=manifest(compiled.table, [each for each, _ in levels]),
                digest=identity.digest,
            )
        case "static":
            how = {"triple": triple, "digest": identity.digest}
            write_static_library(
                compiled, output, name, **how, cache=cache, looks=looks
            )
        case "bare":
            how = {"digest": identity.digest}
            write_bare(compiled, output, name, identity.target, **how, cache=cache)
        case "executable":
            write_executable(compiled, output, identity, cache=cache)
