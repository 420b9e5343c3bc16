"""Where llvm-mca is, for commands that are nothing without it."""

from __future__ import annotations

import shutil
import sys

from nanoloom_papers.reproduce.llvm_mca import newest


def found(given: str | None) -> str:
    """The program's path, the newest if none is named.

    Exits with status 1 and one sentence if it is not there.
    """
    path = newest() if given is None else shutil.which(given)
    if path is None:
        print(
            f"inner_loops: {given or 'llvm-mca'} is not installed: it comes with LLVM "
            "(Debian: the package llvm-22), or name it with --mca PATH",
            file=sys.stderr,
        )
        sys.exit(1)
    return path
