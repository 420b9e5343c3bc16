"""The border to the user: whatever goes wrong is one sentence and an exit status.

0 done, 1 the model or the data is at fault, or a word that does not fit them (or
nanoloom: then a report is written), 2 words that are wrong whatever the model is, 130
interrupted, 141 nobody reads the answer any more (as shells say it of other programs).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from nanoloom.errors import InternalError, Unsupported, explained

DONE, AT_FAULT, USAGE, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141
DEBUG_OPTION, DEBUG_VARIABLE = "--debug", "NANOLOOM_DEBUG"
CACHE_OPTION = "--cache"
TOOLCHAIN = ("torch-mlir", "llvmlite", "ziglang", "onnx", "onnx-ir", "numpy")


def guarded(work: Callable[[], int], arguments: Sequence[str]) -> int:
    """Run a command; its exit status, or that of what went wrong."""
    try:
        status = work()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return closed_pipe()
    except Exception as error:  # noqa: BLE001 - no traceback may reach the screen
        told = explained(error)
        if isinstance(told, InternalError):
            return bug(told, arguments)
        more = "; nanoloom check MODEL lists all that is unsupported"
        whole = isinstance(told, Unsupported) and not told.hint
        return sentence(f"{told}{more if whole else ''}", arguments)


def sentence(text: str, arguments: Sequence[str]) -> int:
    """One line on stderr (and the traceback before it, if it is wanted)."""
    if is_debugging(arguments):
        traceback.print_exc()
    say(f"nanoloom: {' '.join(text.split())}")
    return AT_FAULT


def bug(error: InternalError, arguments: Sequence[str]) -> int:
    """Say that nanoloom is to blame and where the report of it is."""
    if is_debugging(arguments):
        traceback.print_exc()
    report = write_report(arguments)
    error.hint = (
        f"a report is in {report}" if report else f"{DEBUG_OPTION} shows the place"
    )
    say(f"nanoloom: {error}")
    return AT_FAULT


def say(line: str) -> None:
    """A line on stderr, whatever characters a name has and whoever still listens."""
    try:
        sys.stderr.write(printable(line) + "\n")
        sys.stderr.flush()
    except OSError:
        return


def printable(text: str) -> str:
    """The text without what a terminal takes for commands or cannot show."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def is_debugging(arguments: Sequence[str]) -> bool:
    return DEBUG_OPTION in arguments or bool(os.environ.get(DEBUG_VARIABLE))


def closed_pipe() -> int:
    """The reader has gone: nothing more is written, not even at the end of Python."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    return UNREAD


def open_standard_files() -> None:
    """Give a process empty standard files in place of those that are closed.

    Otherwise the next file that is opened gets what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def write_report(arguments: Sequence[str]) -> Path | None:
    """The current exception with what is needed to find it, in the cache folder."""
    text = report_text(arguments)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"bug-{stamp}-{os.getpid()}.txt"
    for folder in (cache_folder(arguments) / "reports", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8", errors="backslashreplace")
        except OSError:
            continue
        return folder / name
    return None


def report_text(arguments: Sequence[str]) -> str:
    import platform
    from importlib.metadata import distributions

    from nanoloom import __version__

    found = {each.name: each.version for each in distributions()}
    lines = [
        f"nanoloom {__version__}, Python {platform.python_version()}",
        f"{platform.platform()}",
        *(f"{name} {found[name]}" for name in TOOLCHAIN if name in found),
        f"command: nanoloom {' '.join(arguments)}",
        "",
        traceback.format_exc(),
    ]
    return "\n".join(lines)


def cache_folder(arguments: Sequence[str]) -> Path:
    """The cache that the command was to use: its options may not have been read."""
    from nanoloom.cache import default_root

    words = list(arguments)
    for index, word in enumerate(words):
        if word.startswith(f"{CACHE_OPTION}="):
            return Path(word.partition("=")[2])
        if word == CACHE_OPTION and index + 1 < len(words):
            return Path(words[index + 1])
    return default_root()
