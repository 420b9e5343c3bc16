"""A program as a static library for C: an archive with the parameters, and a header."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.cpp_functions import EVERY
from nanoloom.binary.header import c_name, header_h
from nanoloom.binary.link import Source
from nanoloom.binary.relocatable import Part
from nanoloom.binary.shared import RUNTIME_SOURCES, public_functions
from nanoloom.cache import Cache

FUNCTIONS = (*EVERY, "error")
RUN_FUNCTIONS = ("run",)
GROWN_FUNCTIONS = ("run_alloc", "free_outputs", "output_of")
SIZED_FUNCTIONS = ("resize", "input_of", "output_of")
COUNTED_FUNCTIONS = ("output_of",)
SESSION_FUNCTIONS = ("length", "rewind", "reserve")
_ENTRIES = ("arrays", "rows", "library")  # for Python, which loads no archive


def write_static_library(
    compiled: Compiled,
    output: Path,
    model_name: str,
    *,
    triple: str,
    cache: Cache,
    digest: str = "",
    looks: Sequence[Source] = (),
) -> Path:
    """What `shared.write_shared_library` writes, to be linked into a program.

    It needs libc, libm and pthread.  The header's path is returned; both files appear
    whole or not at all.

    Raises:
        Error: ziglang is missing or the disk refuses.
    """
    name, refuses = c_name(model_name), bool(compiled.levels or looks)
    runtime = [x for x in RUNTIME_SOURCES if x not in _ENTRIES]
    sources = [
        *(Source.of_runtime(each) for each in runtime),
        *public_functions(compiled.table, name, looks, refuses=refuses),
    ]
    sized = SIZED_FUNCTIONS if compiled.table.sizes else ()
    kept = SESSION_FUNCTIONS if compiled.table.kept else ()
    counted = COUNTED_FUNCTIONS if compiled.table.numbers else ()
    runs = GROWN_FUNCTIONS if compiled.table.rooms else RUN_FUNCTIONS
    shown = dict.fromkeys((*FUNCTIONS, *runs, *sized, *kept, *counted))
    part = Part(compiled, name, tuple(shown))
    code = part.linked(sources, triple, cache)
    header = header_h(compiled.table, model_name, refuses=refuses, digest=digest)
    return part.write(code, output, header)
