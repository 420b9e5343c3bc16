"""Run a client of ONNX Runtime's with nanoloom in its place."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from nanoloom.onnxruntime.replace import replace_onnxruntime

USAGE = "usage: python -m nanoloom.onnxruntime (FILE.py | -m MODULE) [ARGUMENTS]"


def main(words: list[str]) -> None:
    """Run a file or a module as Python would."""
    if not words or words == ["-m"]:
        sys.exit(USAGE)
    replace_onnxruntime()
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif not Path(words[0]).exists():
        sys.exit(f"{words[0]}: no such file; {USAGE}")
    else:
        sys.argv = words
        sys.path[0] = str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
