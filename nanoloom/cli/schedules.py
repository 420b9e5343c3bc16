"""The file of schedules that `--emit schedule` writes and `--schedule` takes back.

    // ---- kernel NAME
    module attributes {transform.with_named_sequence} { ... }

A name may be a pattern (`contraction_*`); without such a line a script is for all
kernels.  Behind a script, up to the next line of this kind, comments and the kernel it
was made for are for the reader; anything else is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.errors import Error, InputError, InternalError

if TYPE_CHECKING:
    from nanoloom.options import Chosen

MARK = "---- kernel "
CONVOLUTIONS, RECOMMENDED = "contraction_*", "recommended"
# Behind a script: the first line of a kernel, comments and names of maps.
KERNEL, READ_ONLY = "module {", re.compile(r"//|#\w+ = ")
HINT = "begin with what --emit schedule writes"


def heading(comment: str, kernel: str) -> str:
    """The line before the part of a kernel, in a file of any stage."""
    return f"{comment} {MARK}{kernel}\n"


def dataflows(given: list[str] | None) -> tuple[tuple[str, Chosen], ...]:
    """(kernel name or pattern, dataflow) pairs of the words of a command.

    Raises Error, with what is wrong, for what is no dataflow.
    """
    if not given:
        return ()
    from nanoloom.schedule.dataflow.dataflow import parse
    from nanoloom.schedule.dataflow.recommended import Recommended

    found: list[tuple[str, Chosen]] = []
    for words in given:
        kernels, _, flow = words.rpartition(":")
        flow = flow.strip()
        made = Recommended() if flow == RECOMMENDED else parse(flow)
        found.append((kernels.strip() or CONVOLUTIONS, made))
    return tuple(found)


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
    found = tuple(sections(text, path))
    for name, script in found:
        check_script(script, f"{path}: kernel {name}")
    return found


def sections(text: str, path: Path) -> Generator[tuple[str, str]]:
    name, lines, begin = "*", list[str](), 1
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.removeprefix("//").strip()
        if line.startswith("//") and mark.startswith(MARK.strip()):
            if any(x.strip() and not x.startswith("//") for x in lines):
                yield name, script_of(lines, path, begin)
            name, lines = mark.removeprefix(MARK.strip()).strip(), []
            begin = number + 1
        else:
            lines.append(line)
    yield name, script_of(lines, path, begin)


def script_of(lines: list[str], path: Path, begin: int) -> str:
    """The first module of the text: up to the brace that closes it.

    begin: the number of the first line.  Raises InputError for text behind it that is
    neither a comment nor the kernel.
    """
    end = lines.index("}") + 1 if "}" in lines else len(lines)
    is_kernel = is_done = False
    for number, line in enumerate(lines[end:], begin + end):
        if is_kernel:
            is_done, is_kernel = line == "}", line != "}"
        elif line == KERNEL and not is_done:
            is_kernel = True
        elif line.strip() and not READ_ONLY.match(line.strip()):
            unread = line.strip()[:60]
            raise InputError(
                f"the script above it has ended, and nothing reads {unread!r}",
                where=f"{path}:{number}",
                hint=f"begin a script with // {MARK}NAME, a comment with //",
            )
    return "\n".join(lines[:end]) + "\n"


def check_script(script: str, where: str) -> None:
    """Raise InputError if the text is no Transform script with an entry.

    A worker reads it: some texts make MLIR crash.
    """
    from nanoloom.workers.batch import Batch
    from nanoloom.workers.jobs import ReadScript
    from nanoloom.workers.pool import pool

    with Batch[list[str]](pool(), 1, lambda _: None) as batch:
        batch.ask(where, ReadScript(script))
        try:
            (names,) = batch.answers().values()
        except InternalError as error:
            raise InputError("makes MLIR crash", where=where, hint=HINT) from error
        except Error as error:
            raise InputError(error.reason, where=where, hint=HINT) from None
    if names != ["transform.named_sequence"]:
        raise InputError(
            "is no Transform script: one transform.named_sequence is wanted",
            where=where,
            hint=HINT,
        )
