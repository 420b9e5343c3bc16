"""Where llvm-mca is, for commands that are nothing without it."""

from __future__ import annotations

import shutil
import sys


def found(given: str) -> str:
    """The program's path; exits with status 1 and one sentence if it is not there."""
    path = shutil.which(given)
    if path is None:
        print(
            f"inner_loops: {given} is not installed: it comes with LLVM "
            "(Debian: the package llvm), or name it with --mca PATH",
            file=sys.stderr,
        )
        sys.exit(1)
    return path
