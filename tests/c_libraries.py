"""C that is compiled before a test, and put into the cache that it uses.

The library of static executables is built once for all runs of the tests: it takes half
a minute for each machine, and no file of nanoloom's changes it.
"""

from __future__ import annotations

import fcntl

from nanoloom.binary.libc import PARTS, c_library, is_built, key_of
from nanoloom.binary.shared import runtime_objects
from nanoloom.cache import Cache, default_root
from nanoloom.target.host import host


def lend(arch: str, cache: Cache) -> None:
    """Put the C library of a machine into the cache of a test."""
    triple = f"{arch}-unknown-linux-gnu"
    if is_built(triple, cache):
        return
    kept = Cache(default_root())
    kept.root.mkdir(parents=True, exist_ok=True)
    with (kept.root / f"tests-{arch}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        parts = c_library(triple, kept)
    for part, code in zip(PARTS, parts, strict=True):
        cache.put(key_of(triple, part), code)


def lend_runtime(cache: Cache) -> None:
    """Put this machine's runtime into the cache of another process, which would take a
    second to compile it."""
    runtime_objects(host().triple, cache)
