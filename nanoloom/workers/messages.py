"""What goes through the pipes between a process and its workers.

A frame is eight bytes, the length, and that many bytes of a pickle: a Job one way, an
Answer the other.  Both ends are the same program, and nobody else holds the pipes.
"""

from __future__ import annotations

import builtins
import pickle
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO, Protocol

from nanoloom.errors import Error

LENGTH = struct.Struct("<Q")
HELLO = b"nanoloom"  # the first message of what forks workers: it is one
NUMBER = struct.Struct("<q")  # of a process, or its status; below 0, an error's
Stage = Callable[[str], AbstractContextManager[None]]  # times a part of the work


class Job(Protocol):
    """A frozen value that a worker can be asked for."""

    def run(self, stage: Stage) -> object:
        """What it makes, in whatever process."""
        ...


@dataclass(frozen=True)
class Failure:
    """An exception on its way to another process.

    kind: of the exception; one that Python does not bring is a RuntimeError there.
    notes: where it was.  trace: the traceback, for whoever mends the bug.
    """

    error: Error | None
    kind: str
    text: str
    notes: tuple[str, ...]
    trace: str

    def exception(self) -> Exception:
        """As it is raised in the process that asked."""
        if self.error is not None:
            return self.error
        kind = getattr(builtins, self.kind, RuntimeError)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            kind = RuntimeError
        try:
            made = kind(self.text)
        except TypeError:  # one that wants more than a text
            made = RuntimeError(self.text)
        made.__cause__ = InWorker(self.trace)
        for note in self.notes:
            made.add_note(note)
        return made


@dataclass(frozen=True)
class Answer:
    """What came of a job.  seconds: of each stage."""

    value: object = None
    failure: Failure | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])


class InWorker(Exception):
    """The traceback of a worker, as the cause of what is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def send(pipe: IO[bytes], frame: bytes) -> None:
    """Write a frame; OSError if nobody reads."""
    rest = memoryview(LENGTH.pack(len(frame)) + frame)
    while rest:
        rest = rest[pipe.write(rest) :]


def receive(pipe: IO[bytes]) -> bytes | None:
    """The next frame; None where the other end is closed, in the middle of one too."""
    head = exactly(pipe, LENGTH.size)
    return None if head is None else exactly(pipe, LENGTH.unpack(head)[0])


def exactly(pipe: IO[bytes], size: int) -> bytes | None:
    """So many bytes of a pipe without a buffer; None if it ends before."""
    parts: list[bytes] = []
    while size:
        part = pipe.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def packed(value: object) -> bytes:
    """A job or an answer as the bytes of a frame."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(frame: bytes) -> object:
    return pickle.loads(frame)
