"""C source to objects, objects to a shared library: by zig's clang and lld."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from nanoloom import sealed_files
from nanoloom.binary.archive import all_of
from nanoloom.binary.elf import (
    PAGE,
    PARAMETER_SECTION,
    Machine,
    empty_object,
    with_room,
)
from nanoloom.binary.elf_section import append
from nanoloom.binary.kept_objects import kept_together
from nanoloom.binary.output_files import refusing, replaced
from nanoloom.binary.stand_ins import stand_ins
from nanoloom.binary.toolchain import Run, zig_triple
from nanoloom.cache import Cache, key
from nanoloom.cache.digest import of

RUNTIME = Path(__file__).parent.parent / "runtime"
EXECUTABLE = 0o777  # less what the umask takes, as of any linker's output

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
# other: an instruction reaches 2 GB.
PARAMETER_SCRIPT = f"""\
SECTIONS {{
  {PARAMETER_SECTION} : ALIGN({PAGE}) {{ *({PARAMETER_SECTION}) }}
}} INSERT AFTER .bss;
"""


class Content(Protocol):
    """Bytes that become part of a library: how many, and how they get there."""

    @property
    def size(self) -> int: ...

    def append_to(self, file: BinaryIO) -> None: ...


@dataclass(frozen=True)
class Parameters:
    """Bytes in a library, more than none: they begin, page aligned, at `symbol`."""

    symbol: str
    content: Content


@dataclass(frozen=True)
class Source:
    """A C file: its name (without .c) and text, and the macros it is compiled with."""

    name: str
    text: str
    defines: tuple[str, ...] = ()

    @classmethod
    def of_runtime(cls, name: str, *defines: str) -> Source:
        """A file of nanoloom/runtime, by its name without .c."""
        return cls(name, runtime_file(f"{name}.c"), defines)


@functools.cache
def runtime_file(name: str) -> str:
    """The text of a file of nanoloom/runtime."""
    return (RUNTIME / name).read_text("utf-8")


@functools.cache
def runtime_headers() -> str:
    """A digest of all that the files of nanoloom/runtime include."""
    return of("headers", [runtime_file(p.name) for p in sorted(RUNTIME.glob("*.h"))])


def compile_c(
    sources: Sequence[Source],
    *,
    triple: str,
    flags: Sequence[str] = (),
    cache: Cache,
) -> list[bytes]:
    """Compile sources side by side to an object each, those that the cache has not.

    `flags` are the compiler's, for example `-mcpu=x86_64_v3`.

    Raises:
        Error: ziglang is missing or the compiler refused a source.
    """
    command = _command(triple, flags)
    headers = runtime_headers()
    names = [_key_of(source, headers, command) for source in sources]
    found = {name: cache.get(name) for name in names}
    missing = [
        (source, name)
        for source, name in zip(sources, names, strict=True)
        if found[name] is None
    ]
    if missing:
        wanted = [source for source, _ in missing]
        made = cache.in_draft(lambda scratch: _compiled(wanted, command, scratch))
        for (_, name), code in zip(missing, made, strict=True):
            cache.put(name, code)
            found[name] = code
    return [found[name] or b"" for name in names]


def compile_together(
    sources: Sequence[Source], *, triple: str, cache: Cache, nice: int = 0
) -> list[bytes]:
    """The same of sources that are always wanted together: one entry of the cache."""
    command = _command(triple)
    return kept_together(
        _key_of(tuple(sources), runtime_headers(), command),
        cache,
        lambda scratch: _compiled(sources, command, scratch, nice),
    )


def _command(triple: str, flags: Sequence[str] = ()) -> tuple[str, ...]:
    return ("cc", "-c", *C_FLAGS, *flags, "-target", zig_triple(triple))


@functools.lru_cache(maxsize=64)  # the runtime's files are the same for all models
def _key_of(sources: object, headers: str, command: tuple[str, ...]) -> str:
    return key("C", headers, sources, command)


def _compiled(
    sources: Sequence[Source], command: Sequence[str], scratch: Path, nice: int = 0
) -> list[bytes]:
    """Each source in a folder of its own: their names may be the same."""
    running: list[tuple[Run, Path]] = []
    try:
        for number, source in enumerate(sources):
            folder = scratch / str(number)
            folder.mkdir()
            file, made = folder / f"{source.name}.c", folder / "made.o"
            file.write_text(source.text, "utf-8")
            # Not -I: a header of the system's may have the name of one of ours.
            arguments = [*command, "-iquote", str(RUNTIME), file.name, "-o", made.name]
            arguments += [f"-D{define}" for define in source.defines]
            what = f"compiling {source.name}.c for {command[-1]}"
            running.append((Run(arguments, what, folder, nice), made))
        for run, _ in running:
            run.wait()
        return [made.read_bytes() for _, made in running]
    finally:
        for run, _ in running:
            run.stop()


def link_shared(
    objects: Sequence[bytes],
    output: Path,
    *,
    exports: Sequence[str],
    cache: Cache,
    parameters: Parameters | None = None,
) -> None:
    """Link objects into a shared library that shows `exports` (names or globs) only.

    Needs no libc of the target: functions of the system's libraries stay undefined,
    and the library names those of stand_ins.py for the loader to look in.  `output`
    appears whole or not at all; what stood there before stays on failure.

    Raises:
        Error: ziglang is missing, the linker failed or the file cannot be written.
    """
    inside = (parameters.symbol, parameters.content.size) if parameters else None
    code = linked(objects, output.name, exports=exports, cache=cache, room=inside)
    with refusing(output), replaced(output, EXECUTABLE) as file:
        write_library(file, code, parameters.content if parameters else None)


def write_library(
    file: BinaryIO, code: bytes, parameters: Content | None, manifest: bytes = b""
) -> None:
    """A linked library with the parameters behind it, what it says of itself, and a
    seal: with a manifest it is for other machines, too."""
    file.write(code)
    if parameters:
        parameters.append_to(file)
    if manifest:
        append(file, code, manifest)
    sealed_files.seal(file, portable=bool(manifest))


def linked(
    objects: Sequence[bytes],
    name: str,
    *,
    exports: Sequence[str],
    cache: Cache,
    room: tuple[str, int] | None = None,
) -> bytes:
    """The bytes of a shared library; see `link_shared`.

    name: what the library calls itself.  room: a symbol and the number of bytes that
    are to follow the library in its file, and lie in memory where the symbol is.
    """
    machine = Machine.of(objects[0][:64])
    stubs = stand_ins(machine, cache)
    code = cache.in_draft(
        lambda scratch: _linked(objects, stubs, name, exports, room, scratch)
    )
    return with_room(code, room[1]) if room else code


def _linked(
    objects: Sequence[bytes],
    stubs: Sequence[bytes],
    name: str,
    exports: Sequence[str],
    room: tuple[str, int] | None,
    scratch: Path,
) -> bytes:
    shown = " ".join(f"{export};" for export in exports)
    (scratch / "exports.map").write_text(f"{{ global: {shown} local: *; }};\n")
    files = list(objects)
    more: list[str] = []
    for number, code in enumerate(stubs):
        (scratch / f"{number}.so").write_bytes(code)
        more.append(f"{number}.so")
    if room:
        files.append(empty_object(Machine.of(objects[0][:64]), *room))
        (scratch / "parameters.ld").write_text(PARAMETER_SCRIPT)
        more.append("parameters.ld")
    arguments = ["ld.lld", *LINK_FLAGS, "--version-script=exports.map"]
    arguments += ["-soname", name, "-o", "made", *all_of(files, scratch), *more]
    Run(arguments, f"linking {name}", scratch).wait()
    return (scratch / "made").read_bytes()


def merged(objects: Sequence[bytes], what: str, cache: Cache) -> bytes:
    """One relocatable object of many.  what: names it in an error."""

    def link(scratch: Path) -> bytes:
        arguments = ["ld.lld", "-r", "-o", "made", *all_of(objects, scratch)]
        Run(arguments, f"linking {what}", scratch).wait()
        return (scratch / "made").read_bytes()

    return cache.in_draft(link)
