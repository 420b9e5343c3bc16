"""The file of schedules that `--emit schedule` writes and `--schedule` takes back.

    // ---- kernel NAME
    module attributes {transform.with_named_sequence} { ... }

A name may be a pattern (`contraction_*`); without such a line a script is for all
kernels.  What follows a script up to the next line of this kind (the kernel it was made
for) is for the reader.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.errors import Error, InputError, InternalError

if TYPE_CHECKING:
    from nanoloom.options import Chosen

MARK = "---- kernel "
CONVOLUTIONS, RECOMMENDED = "contraction_*", "recommended"
HINT = "begin with what --emit schedule writes"


def heading(comment: str, kernel: str) -> str:
    """The line before the part of a kernel, in a file of any stage."""
    return f"{comment} {MARK}{kernel}\n"


def dataflows(given: list[str] | None) -> tuple[tuple[str, Chosen], ...]:
    """(kernel name or pattern, dataflow) pairs of the words of a command.

    Raises Error, with what is wrong, for what is no dataflow.
    """
    from nanoloom.schedule.dataflow.dataflow import parse
    from nanoloom.schedule.dataflow.recommended import Recommended

    found: list[tuple[str, Chosen]] = []
    for words in given or ():
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
