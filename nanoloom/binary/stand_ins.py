"""Libraries to link with that have the names of the system's, and nothing in them."""

from __future__ import annotations

from pathlib import Path

from nanoloom.binary.elf import Machine, empty_object
from nanoloom.binary.kept_objects import kept_together
from nanoloom.binary.toolchain import Run
from nanoloom.cache import Cache, key

# The libraries a binary asks the system's loader for.  pthread is part of libc since
# glibc 2.34; before, it is the library that defines pthread_create.
SYSTEM_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0")


def stand_ins(machine: Machine, cache: Cache) -> list[bytes]:
    """Of the system's libraries: lld only copies the names.

    Made once for a machine and kept in the cache: three of a link's four processes.
    """
    name = key("stand-ins", machine, SYSTEM_LIBRARIES)
    return kept_together(name, cache, lambda scratch: made_stand_ins(machine, scratch))


def made_stand_ins(machine: Machine, scratch: Path) -> list[bytes]:
    """They are made side by side."""
    (scratch / "empty.o").write_bytes(empty_object(machine))
    running = [
        Run(
            ["ld.lld", "-shared", "-soname", name, "-o", name, "empty.o"],
            f"making a stand-in for {name}",
            scratch,
        )
        for name in SYSTEM_LIBRARIES
    ]
    for run in running:
        run.wait()
    return [(scratch / name).read_bytes() for name in SYSTEM_LIBRARIES]
