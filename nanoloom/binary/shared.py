"""A program as a shared library: for C, with a header; or for loading in process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nanoloom.binary.header import c_name, header_h
from nanoloom.binary.link import (
    Parameters,
    Source,
    compile_c,
    link_into,
    scratch_beside,
)
from nanoloom.binary.program_source import PARAMETER_SYMBOL, program_c
from nanoloom.binary.table import ProgramTable
from nanoloom.errors import Error

LOADER_EXPORT = "nanoloom_library"
_RUNTIME_SOURCES = (
    "program",
    "arrays",
    "threads",
    "arena",
    "cpus",
    "conversions",
    "library",
)


@dataclass(frozen=True)
class Folders:
    """Where the runtime's objects are kept, by content, and zig's own folder."""

    objects: Path
    zig: Path

    @classmethod
    def under(cls, cache: Path) -> Folders:
        """The two folders inside one cache folder."""
        return cls(cache / "objects", cache / "zig")


def write_in_process(
    objects: Sequence[bytes],
    table: ProgramTable,
    output: Path,
    *,
    triple: str,
    folders: Folders,
) -> None:
    """A library for nanoloom.runtime.library.Library; its parameters stay outside.

    `objects` are the kernels.  `output` appears whole or not at all.

    Raises:
        Error: ziglang is missing, a kernel is defined twice, or the disk refuses.
    """
    runtime = runtime_objects(triple, folders)
    with scratch_beside(output) as scratch:
        sources = [Source("table", program_c(table))]
        program = compile_c(sources, scratch, triple=triple, cache=folders.zig)
        kernels = _write_kernels(objects, scratch)
        made = scratch / output.name
        everything = [*program, *runtime, *kernels]
        link_into(scratch, everything, made, [LOADER_EXPORT], folders.zig)
        os.replace(made, output)


def write_shared_library(
    objects: Sequence[bytes],
    table: ProgramTable,
    parameters: Path | None,
    output: Path,
    model_name: str,
    *,
    triple: str,
    folders: Folders,
) -> Path:
    """A library for C programs, its parameters inside, and its header beside it.

    `parameters` holds exactly `table.parameter_bytes` bytes; None when there are none.
    The header has the name of `output` with the suffix .h and is returned.  Both files
    appear whole or not at all.  C programs see nanoloom_MODEL_* (header.py); Python
    loads the same file with Library.

    Raises:
        Error: ziglang is missing, a kernel is defined twice, or the disk refuses.
    """
    size = parameters.stat().st_size if parameters else 0
    if size != table.parameter_bytes:
        raise ValueError(f"{size} bytes of parameters, not {table.parameter_bytes}")
    name, header = c_name(model_name), output.with_suffix(".h")
    if header == output:
        raise Error("a shared library cannot end in .h", where=str(output))
    runtime = runtime_objects(triple, folders)
    sources = [
        Source("table", program_c(table, parameters_inside=size > 0)),
        Source.of_runtime("model", f"NANOLOOM_MODEL={name}"),
    ]
    with scratch_beside(output) as scratch:
        model = compile_c(sources, scratch, triple=triple, cache=folders.zig)
        kernels = _write_kernels(objects, scratch)
        inside = Parameters(PARAMETER_SYMBOL, parameters) if parameters else None
        link_into(
            scratch,
            [*model, *runtime, *kernels],
            scratch / output.name,
            [LOADER_EXPORT, f"nanoloom_{name}_*"],
            folders.zig,
            inside if size else None,
        )
        (scratch / header.name).write_text(header_h(table, model_name), "utf-8")
        os.replace(scratch / output.name, output)
        os.replace(scratch / header.name, header)
    return header


def runtime_objects(
    triple: str, folders: Folders, *, single_thread: bool = False
) -> list[Path]:
    """The runtime that every binary holds, compiled at most once."""
    defines = ("NANOLOOM_SINGLE_THREAD",) if single_thread else ()
    sources = [Source.of_runtime(name, *defines) for name in _RUNTIME_SOURCES]
    return compile_c(sources, folders.objects, triple=triple, cache=folders.zig)


def _write_kernels(objects: Sequence[bytes], scratch: Path) -> list[Path]:
    paths = [scratch / f"kernel-{index}.o" for index in range(len(objects))]
    for path, code in zip(paths, objects, strict=True):
        path.write_bytes(code)
    return paths
