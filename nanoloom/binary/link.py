"""C source to objects, objects to a shared library: by zig's clang and lld."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nanoloom.binary.elf import Machine, make_read_only, write_object
from nanoloom.binary.toolchain import Run, zig_triple
from nanoloom.errors import Error

RUNTIME = Path(__file__).parent.parent / "runtime"

C_FLAGS = (
    "-std=c11",
    "-O2",
    "-g0",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    "-fno-stack-protector",  # its failure handler is one more symbol to find
)

# The libraries a binary asks the system's loader for.  pthread is part of libc since
# glibc 2.34; before, it is the library that defines pthread_create.
SYSTEM_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0")

LINK_FLAGS = (
    "-shared",
    "--build-id=none",  # the same objects make the same file
    "--hash-style=gnu",
    "-z",
    "now",  # a missing function is found at loading, not in the middle of a run
    "-z",
    "noexecstack",
)


# At the very end, so that they never stand between code and data that refer to each
# other: an instruction reaches 2 GB.  The gap without file content makes lld begin a
# segment of their own, even when there is no .bss.
_PARAMETER_SCRIPT = """\
SECTIONS {{
  .gap (NOLOAD) : {{ . += 1; }}
  .nanoloom : ALIGN(4096) {{ {symbol} = .; *{file}(.data) }}
}} INSERT AFTER .bss;
"""


@dataclass(frozen=True)
class Parameters:
    """A file that becomes part of a library: it begins, page aligned, at `symbol`.

    The file is not empty.
    """

    symbol: str
    file: Path


@dataclass(frozen=True)
class Source:
    """A C file: its name (without .c) and text, and the macros it is compiled with."""

    name: str
    text: str
    defines: tuple[str, ...] = ()

    @classmethod
    def of_runtime(cls, name: str, *defines: str) -> Source:
        """A file of nanoloom/runtime, by its name without .c."""
        return cls(name, (RUNTIME / f"{name}.c").read_text("utf-8"), defines)


def compile_c(
    sources: Sequence[Source],
    folder: Path,
    *,
    triple: str,
    flags: Sequence[str] = (),
    cache: Path,
) -> list[Path]:
    """Compile sources side by side; `folder` receives one object each, kept for good.

    An object's name is a hash of all it is made from, so the next call with the same
    source finds it there and compiles nothing.  `flags` are the compiler's, for example
    `-mcpu=x86_64_v3`; `cache` is zig's folder.

    Raises:
        Error: ziglang is missing or the compiler refused a source.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ("cc", "-c", *C_FLAGS, *flags, "-target", zig_triple(triple))
    headers = "".join(p.read_text("utf-8") for p in sorted(RUNTIME.glob("*.h")))
    with tempfile.TemporaryDirectory(dir=folder, prefix="compile-") as scratch:
        objects: list[Path] = []
        running: list[tuple[Run, Path, Path]] = []
        for source in sources:
            parts = (headers, source.text, *command, *source.defines)
            key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
            output = folder / f"{source.name}-{key}.o"
            objects.append(output)
            if output.exists():
                continue
            file, made = Path(scratch, f"{source.name}.c"), Path(scratch, output.name)
            file.write_text(source.text, "utf-8")
            arguments = [*command, f"-I{RUNTIME}", *(f"-D{d}" for d in source.defines)]
            arguments += [str(file), "-o", str(made)]
            what = f"compiling {source.name}.c for {triple}"
            running.append((Run(arguments, what, cache), made, output))
        try:
            for run, made, output in running:
                run.wait()
                os.replace(made, output)
        finally:
            for run, _, _ in running:
                run.stop()
    return objects


def link_shared(
    objects: Sequence[Path],
    output: Path,
    *,
    exports: Sequence[str],
    cache: Path,
    parameters: Parameters | None = None,
) -> None:
    """Link objects into a shared library that shows `exports` (names or globs) only.

    Needs no libc of the target: functions of the system's libraries stay undefined,
    and the library names SYSTEM_LIBRARIES for the loader to look in.  `output` appears
    whole or not at all; what stood there before stays on failure.

    Raises:
        Error: ziglang is missing, the linker failed or the file cannot be written.
    """
    with scratch_beside(output) as scratch:
        made = scratch / output.name
        link_into(scratch, objects, made, exports, cache, parameters)
        os.replace(made, output)


def link_into(
    scratch: Path,
    objects: Sequence[Path],
    output: Path,
    exports: Sequence[str],
    cache: Path,
    parameters: Parameters | None = None,
) -> None:
    """`link_shared` without the care for `output`, which lies in a scratch folder."""
    with objects[0].open("rb") as file:
        machine = Machine.of(file.read(64))
    script = scratch / "exports.map"
    shown = " ".join(f"{name};" for name in exports)
    script.write_text(f"{{ global: {shown} local: *; }};\n")
    arguments = ["ld.lld", *LINK_FLAGS, "--version-script=exports.map"]
    arguments += ["-soname", output.name, "-o", str(output.absolute())]
    arguments += [str(path.absolute()) for path in objects]
    arguments += [str(p.absolute()) for p in _stubs(scratch, machine, cache)]
    if parameters:
        arguments += _parameter_arguments(parameters, scratch)
    Run(arguments, f"linking {output.name}", cache, scratch).wait()
    if parameters:
        make_read_only(output, parameters.file.stat().st_size)


def _parameter_arguments(parameters: Parameters, scratch: Path) -> list[str]:
    """Under a name of its own, because lld makes a symbol of the path it is given."""
    name, script = "parameters.bin", "parameters.ld"
    (scratch / name).symlink_to(parameters.file.absolute())
    text = _PARAMETER_SCRIPT.format(symbol=parameters.symbol, file=name)
    (scratch / script).write_text(text)
    return ["--format=binary", name, "--format=default", script]


def _stubs(scratch: Path, machine: Machine, cache: Path) -> list[Path]:
    """Empty libraries with the names of the system's: lld only copies the names.

    Made once for a machine and kept in the cache: three of a link's five processes.
    """
    folder = cache / "stand-ins" / f"{machine.number:x}-{machine.flags:x}"
    kept = [folder / name for name in SYSTEM_LIBRARIES]
    if all(path.exists() for path in kept):
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    empty = scratch / "empty.o"
    write_object(empty, machine)
    with tempfile.TemporaryDirectory(dir=folder, prefix="link-") as made:
        paths = [Path(made, path.name) for path in kept]
        running = [
            Run(
                ["ld.lld", "-shared", "-soname", p.name, "-o", str(p), str(empty)],
                f"making a stand-in for {p.name}",
                cache,
            )
            for p in paths
        ]
        for run in running:
            run.wait()
        for path, final in zip(paths, kept, strict=True):
            os.replace(path, final)
    return kept


@contextmanager
def scratch_beside(output: Path) -> Generator[Path]:
    """A folder on the file system of `output`, gone at the end.

    Raises:
        Error: whatever the system refused inside the `with`, as one sentence.
    """
    try:
        with tempfile.TemporaryDirectory(
            dir=output.parent, prefix=".nanoloom-"
        ) as name:
            yield Path(name)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Error(
            f"cannot write {output.name}: {reason}",
            where=str(output.parent),
            stage="binary",
        ) from error
