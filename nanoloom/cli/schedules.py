"""The file of schedules that `--emit schedule` writes and `--schedule` takes back.

    // ---- kernel NAME
    module attributes {transform.with_named_sequence} { ... }

A name may be a pattern (`contraction_*`); without such a line a script is for all
kernels.  What follows a script up to the next line of this kind (the kernel it was made
for) is for the reader.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from nanoloom.cli.failures import guarded
from nanoloom.errors import Error, InputError

MARK = "---- kernel "
HINT = "begin with what --emit schedule writes"
FAILED = "Failed to apply"  # how MLIR's interpreter begins what it says


def heading(comment: str, kernel: str) -> str:
    """The line before the part of a kernel, in a file of any stage."""
    return f"{comment} {MARK}{kernel}\n"


def load_schedules(path: Path | None) -> tuple[tuple[str, str], ...]:
    """(kernel name or pattern, Transform script) pairs of a file.

    Raises InputError if it cannot be read or is no Transform script.
    """
    if path is None:
        return ()
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is no text", where=str(path), hint=HINT) from None
    found = tuple(sections(text))
    for name, script in found:
        check_script(script, f"{path}: kernel {name}")
    return found


def sections(text: str) -> Generator[tuple[str, str]]:
    name, lines = "*", list[str]()
    for line in text.splitlines():
        mark = line.removeprefix("//").strip()
        if line.startswith("//") and mark.startswith(MARK.strip()):
            if "".join(lines).strip():
                yield name, script_of(lines)
            name, lines = mark.removeprefix(MARK.strip()).strip(), []
        else:
            lines.append(line)
    yield name, script_of(lines)


def script_of(lines: list[str]) -> str:
    """The first module of the text: up to the brace that closes it."""
    end = lines.index("}") + 1 if "}" in lines else len(lines)
    return "\n".join(lines[:end]) + "\n"


def check_script(script: str, where: str) -> None:
    """Raise InputError if the text is no Transform script with an entry."""
    from nanoloom import mlir
    from nanoloom.vector import transform_ops

    with mlir.context():
        transform_ops.load_operations()  # it is read here, not applied
        try:
            module = mlir.ir.Module.parse(script)
        except mlir.ir.MLIRError as error:
            told = " ".join(str(error).split())
            raise InputError(f"is no MLIR: {told}", where=where, hint=HINT) from None
        names = [op.operation.name for op in module.body.operations]
    if names != ["transform.named_sequence"]:
        raise InputError(
            "is no Transform script: one transform.named_sequence is wanted",
            where=where,
            hint=HINT,
        )


def shielded(work: Callable[[], int], path: Path) -> int:
    """Run a command with somebody's schedule in a child: some make MLIR crash.

    Raises Error, naming the file, if it does.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = guarded(work, sys.argv[1:])
        sys.stderr.flush()
        os._exit(status)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        name = signal.Signals(os.WTERMSIG(ended)).name
        raise Error(f"a schedule makes MLIR crash ({name})", where=str(path), hint=HINT)
    return os.WEXITSTATUS(ended)


@contextmanager
def blaming(path: Path | None) -> Generator[None]:
    """A given schedule that does not apply is the user's mistake, not a bug."""
    try:
        yield
    except ValueError as error:
        if path is None or not str(error).startswith(FAILED):
            raise
        told = [line for line in str(error).splitlines() if line.strip()]
        reason = " ".join(told[:2])
        raise Error(f"a schedule does not apply: {reason}", where=str(path)) from None
