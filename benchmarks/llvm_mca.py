"""Where llvm-mca is, for commands that are nothing without it."""

from __future__ import annotations

import shutil
import sys

from nanoloom.reproduce.llvm_mca import MCA


def found(given: str | None) -> str:
    """The program's path, the newest if none is named.

    Exits with status 1 and one sentence if it is not there.
    """
    names = MCA if given is None else (given,)
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        print(
            f"inner_loops: {names[-1]} is not installed: it comes with LLVM "
            "(Debian: the package llvm-22), or name it with --mca PATH",
            file=sys.stderr,
        )
        sys.exit(1)
    return path
