"""A program as a shared library: for C, with a header; or for loading in process."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from nanoloom.binary.header import c_name, header_h
from nanoloom.binary.link import (
    EXECUTABLE,
    Content,
    Source,
    compile_c,
    compile_together,
    link_shared,
    linked,
    write_library,
)
from nanoloom.binary.output_files import refusing, replaced
from nanoloom.binary.program_data import (
    PARAMETER_SYMBOL,
    PROGRAM_SOURCES,
    program_object,
)
from nanoloom.binary.table import ProgramTable
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.fork_lock import wait_for_compiler

LOADER_EXPORT = "nanoloom_library"
NICE = 15  # of compilers that nobody waits for yet
REFUSAL_EXPORT = "nanoloom_refusal"  # of a library that looks at the CPU
_meanwhile: dict[tuple[Path, str], Thread] = {}  # who makes a runtime, or did
RUNTIME_SOURCES = (
    *PROGRAM_SOURCES,
    "sizes",
    "arrays",
    "rows",
    "threads",
    "pool",
    "arena",
    "cpus",
    "conversions",
    "library",
)


def write_in_process(
    objects: Sequence[bytes],
    table: ProgramTable,
    output: Path,
    *,
    triple: str,
    cache: Cache,
) -> None:
    """A library for nanoloom.runtime.library.Library; its parameters stay outside.

    `objects` are the kernels.  `output` appears whole or not at all.

    Raises:
        Error: ziglang is missing, a kernel is defined twice, or the disk refuses.
    """
    runtime = runtime_objects(triple, cache)
    everything = [program_object(table, runtime[0]), *runtime, *objects]
    link_shared(everything, output, exports=[LOADER_EXPORT], cache=cache)


def write_shared_library(
    objects: Sequence[bytes],
    table: ProgramTable,
    parameters: Content | None,
    output: Path,
    model_name: str,
    *,
    triple: str,
    cache: Cache,
    levels: Sequence[Source] = (),
    looks: Sequence[Source] = (),
    manifest: bytes = b"",
    digest: str = "",
) -> Path:
    """A library for C programs, its parameters inside, and its header beside it.

    `parameters` are exactly `table.parameter_bytes` bytes, written nowhere but into the
    library; None when there are none.  The header's path is returned; both files appear
    whole or not at all.  C programs see nanoloom_MODEL_* (header.py); Python loads the
    same file with Library.  looks: C that looks at the CPU.  manifest: what it says of
    itself.
    Raises Error: ziglang is missing, a kernel is defined twice, or the disk refuses.
    """
    size = parameters.size if parameters else 0
    if size != table.parameter_bytes:
        raise ValueError(f"{size} bytes of parameters, not {table.parameter_bytes}")
    if (header := output.with_suffix(".h")) == output:
        raise Error("a shared library cannot end in .h", where=str(output))
    name, refuses = c_name(model_name), bool(levels or looks)
    sources = [*levels, *public_functions(table, name, looks, refuses=refuses)]
    model = compile_c(sources, triple=triple, cache=cache)
    if not levels:
        model.append(program_object(table, model[0], parameters_inside=size > 0))
    code = linked(
        [*model, *runtime_objects(triple, cache), *objects],
        output.name,
        exports=shown(name, refuses=refuses),
        cache=cache,
        room=(PARAMETER_SYMBOL, size) if size else None,
    )
    with (
        refusing(output),
        replaced(output, EXECUTABLE) as file,
        replaced(header) as text,  # there first: with the library, all is
    ):
        said = header_h(table, model_name, refuses=refuses, digest=digest)
        text.write(said.encode())
        write_library(file, code, parameters if size else None, manifest)
    return header


def shown(name: str, *, refuses: bool) -> list[str]:
    """What a library shows, names or globs."""
    refusal = [REFUSAL_EXPORT] if refuses else []
    return [LOADER_EXPORT, f"nanoloom_{name}_*", *refusal]


def public_functions(
    table: ProgramTable,
    name: str,
    looks: Sequence[Source] = (),
    *,
    refuses: bool = False,
) -> list[Source]:
    """The functions that C calls; those with sizes have more, sessions even more,
    and so have those with outputs whose shapes depend on data, without a bound or with.

    looks: C that looks at the CPU, unless levels do.  refuses: whether one does, and
    there may be no code for it.
    """
    defines = (
        f"NANOLOOM_MODEL={name}",
        *(("NANOLOOM_SIZED",) if table.sizes else ()),
        *(("NANOLOOM_SESSION",) if table.kept else ()),
        *(("NANOLOOM_COUNTED",) if table.numbers or table.rooms else ()),
        *(("NANOLOOM_GROWN",) if table.rooms else ()),
        *(("NANOLOOM_REFUSES",) if refuses else ()),
    )
    files = (
        "model",
        *(("model_sizes",) if table.sizes else ()),
        *(("model_session", "kept") if table.kept else ()),
        *(("model_counted", "counted") if table.numbers or table.rooms else ()),
        *(("model_growth", "growth") if table.rooms else ()),
    )
    own = [Source.of_runtime(file, *defines) for file in files]
    return [*looks, Source.of_runtime("library_pool"), *own]


def runtime_objects(triple: str, cache: Cache, *, nice: int = 0) -> list[bytes]:
    """The runtime that every binary holds, in the order of RUNTIME_SOURCES."""
    sources = [Source.of_runtime(name) for name in RUNTIME_SOURCES]
    return compile_together(sources, triple=triple, cache=cache, nice=nice)


@contextmanager
def runtime_meanwhile(triple: str, cache: Cache) -> Generator[None]:
    """Have the cache hold the runtime at the end of the `with`, to be linked with.

    Its compilers run while the model is read, on CPUs that would wait.  What is raised
    inside waits for none of them: who tries again takes those that still run.
    """

    def work() -> None:
        with wait_for_compiler(), suppress(Error, OSError):  # whoever links says so
            runtime_objects(triple, cache, nice=NICE)

    name = cache.root, triple
    thread = _meanwhile.get(name)
    if thread is None or not thread.is_alive():
        thread = Thread(target=work, name="nanoloom runtime", daemon=True)
        thread.start()
        _meanwhile[name] = thread
    yield
    thread.join()
