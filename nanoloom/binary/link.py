"""C source to objects, objects to a shared library: by zig's clang and lld."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nanoloom.binary.elf import Machine, write_object
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
    objects: Sequence[Path], output: Path, *, exports: Sequence[str], cache: Path
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
        link_into(objects, made, scratch=scratch, exports=exports, cache=cache)
        os.replace(made, output)


def link_into(
    objects: Sequence[Path],
    output: Path,
    *,
    scratch: Path,
    exports: Sequence[str],
    cache: Path,
) -> None:
    """`link_shared` without the care for `output`, which lies in a scratch folder."""
    with objects[0].open("rb") as file:
        machine = Machine.of(file.read(64))
    script = scratch / "exports.map"
    shown = " ".join(f"{name};" for name in exports)
    script.write_text(f"{{ global: {shown} local: *; }};\n")
    arguments = ["ld.lld", *LINK_FLAGS, f"--version-script={script}"]
    arguments += ["-soname", output.name, "-o", str(output)]
    arguments += [str(path) for path in objects]
    arguments += [str(path) for path in _stubs(scratch, machine, cache)]
    Run(arguments, f"linking {output.name}", cache).wait()


def _stubs(scratch: Path, machine: Machine, cache: Path) -> list[Path]:
    """Empty libraries with the names of the system's: lld only copies the names."""
    empty = scratch / "empty.o"
    write_object(empty, machine)
    paths = [scratch / name for name in SYSTEM_LIBRARIES]
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
    return paths


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
