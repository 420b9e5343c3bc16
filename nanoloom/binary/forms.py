"""What a compiled program can be written as."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.bare import write_bare
from nanoloom.binary.executable import Identity, write_executable
from nanoloom.binary.shared import write_shared_library
from nanoloom.binary.static import write_static_library
from nanoloom.cache import Cache

# shared and static: libraries for C with a header.  bare: an object or archive for
# machines without an operating system, with a header.  executable: a program for Linux.
Form = Literal["shared", "static", "bare", "executable"]


def write(
    form: Form, compiled: Compiled, output: Path, identity: Identity, cache: Cache
) -> None:
    """Write a program whole or not at all; raises Error as the form's own writer."""
    name, triple = identity.model, identity.target.triple
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
            )
        case "static":
            write_static_library(compiled, output, name, triple=triple, cache=cache)
        case "bare":
            write_bare(compiled, output, name, identity.target, cache=cache)
        case "executable":
            write_executable(compiled, output, identity, cache=cache)
