"""Jobs that go wrong in every way, and workers for them: they import them from here.

Such a worker does not load the compiler, which takes it most of a second.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass

import nanoloom
from nanoloom.errors import DataDependent
from nanoloom.workers.fork_server import PROGRAM
from nanoloom.workers.jobs import MakeKernel
from nanoloom.workers.messages import Stage

LIGHT = PROGRAM.replace("main()", "main.__globals__['load'] = lambda: None\nmain()")


@dataclass(frozen=True)
class Echo:
    """Answers its text, who made it and when; after a while."""

    text: str = ""
    seconds: float = 0.0

    def run(self, stage: Stage) -> tuple[str, int, int]:
        with stage("asleep"):
            time.sleep(self.seconds)
        return self.text, os.getpid(), time.monotonic_ns()


@dataclass(frozen=True)
class Dies:
    """Ends its process by a signal."""

    signal: int
    said: str = ""
    given: bool = False

    def run(self, stage: Stage) -> None:
        del stage
        print(self.said, file=sys.stderr, flush=True)
        os.kill(os.getpid(), self.signal)
        time.sleep(60)


@dataclass(frozen=True)
class Raises:
    """Raises what its name says."""

    what: str

    def run(self, stage: Stage) -> None:
        with stage("doomed"):
            if self.what == "data":
                raise DataDependent("no", ("a", "b"), where="node n", hint="do")
            if self.what == "unicode":
                b"\xff".decode()
            if self.what == "own":
                raise Own("mine")
            raise KeyError("key")


class Own(Exception):
    """Of no module that a parent must know."""


@dataclass(frozen=True)
class Package:
    """Answers who made it, and which files nanoloom is there."""

    def run(self, stage: Stage) -> tuple[int, str | None, list[str]]:
        del stage
        return os.getpid(), nanoloom.__file__, [*nanoloom.__path__]


@dataclass(frozen=True)
class Prints:
    """Says something where the answers go, and reads where the jobs come from."""

    def run(self, stage: Stage) -> str:
        del stage
        os.write(1, b"noise")
        return os.read(0, 10).decode()


class Crashing(MakeKernel):
    """A kernel that makes LLVM give up, if it is a contraction."""

    def run(self, stage: Stage) -> bytes:
        if self.name.startswith("contraction"):
            print("LLVM ERROR: Cannot select: it", file=sys.stderr, flush=True)
            os.abort()
        return super().run(stage)
