"""The C library inside a static executable: musl, built by zig once for each machine.

What a link takes of it is kept in the cache as bytes, so that zig's own cache, which
checks nothing, is never read again.
"""

from __future__ import annotations

import shlex
from importlib.metadata import version
from pathlib import Path

from nanoloom.binary.toolchain import Run, zig_triple
from nanoloom.cache import Cache
from nanoloom.cache.digest import of
from nanoloom.errors import Error

# What begins a program; the functions of C, zig's own among them; those that the
# compiler calls by itself.
PARTS = ("crt1.o", "libc.a", "libzigc.a", "libcompiler_rt.a")
_EMPTY = "int main(void) { return 0; }\n"


def musl_triple(triple: str) -> str:
    """Zig's triple of the same machine with musl: riscv64-linux-musl."""
    arch, system, *_ = zig_triple(triple).split("-")
    return f"{arch}-{system}-musl"


def is_built(triple: str, cache: Cache) -> bool:
    """Whether the next `c_library` takes no time."""
    return all(cache.get(key_of(triple, part)) for part in PARTS)


def c_library(triple: str, cache: Cache) -> tuple[bytes, ...]:
    """PARTS for a machine, from the cache where they were built before.

    Raises:
        Error: ziglang is missing or has no C library for the machine.
    """
    found = [code for part in PARTS if (code := cache.get(key_of(triple, part)))]
    if len(found) < len(PARTS):
        found = cache.in_draft(lambda scratch: _built(musl_triple(triple), scratch))
        for part, code in zip(PARTS, found, strict=True):
            cache.put(key_of(triple, part), code)
    return tuple(found)


def key_of(triple: str, part: str) -> str:
    """In the cache: nanoloom's own files decide nothing about it."""
    return of("C library", version("ziglang"), musl_triple(triple), part)


def _built(triple: str, scratch: Path) -> list[bytes]:
    """Link a program that does nothing, and take what zig has linked it with."""
    (scratch / "empty.c").write_text(_EMPTY)
    words = ["cc", "-v", "-O2", "-static", "-target", triple, "empty.c", "-o", "empty"]
    said = Run(words, f"building the C library for {triple}", scratch).wait()
    linked = [line for line in said.splitlines() if line.startswith("ld.lld ")]
    words = shlex.split(" ".join(linked))
    places = {Path(word).name: Path(word) for word in words}
    missing = [part for part in PARTS if part not in places]
    if missing:
        raise Error(f"zig has built no {missing[0]} for {triple}", stage="binary")
    return [(scratch / places[part]).read_bytes() for part in PARTS]
