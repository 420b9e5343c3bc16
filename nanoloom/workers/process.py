"""The parent's side of one worker: it is started, asked, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import IO, cast

import nanoloom
from nanoloom.workers.messages import (
    HELLO,
    Answer,
    Job,
    packed,
    receive,
    send,
    unpacked,
)

# The modules are looked for where this process looks for them.  Without `site`, which
# takes time: what it finds is in the path already.  nanoloom itself is loaded from the
# files of this process: another one may have come before it in the path, or an import
# hook may have found it, as for an editable installation.
PROGRAM = """\
import json, sys
from importlib.util import module_from_spec, spec_from_file_location as found
sys.path[:], (file, folders), parent = map(json.loads, sys.argv[1:])
spec = found("nanoloom", file, submodule_search_locations=folders)
sys.modules["nanoloom"] = module = module_from_spec(spec)
spec.loader.exec_module(module)
from nanoloom.workers.worker_main import main
main(parent)
"""
SAID_BYTES = 1 << 16  # of stderr that are read, from its beginning


class Crashed(Exception):
    """A worker ended in the middle of a job.

    status: as of `subprocess`, negative for a signal.  said: what is on its stderr.
    """

    def __init__(self, status: int, said: str) -> None:
        self.status = status
        self.said = said
        super().__init__(f"{self.how}\n{said}")

    @property
    def how(self) -> str:
        """The signal, SIGABRT, or the status."""
        if self.status < 0:
            return signal.Signals(-self.status).name
        return f"status {self.status}"


class Worker:
    """A process that answers jobs, one after the other.

    It belongs to the thread that makes it: when that ends, the system ends the process.
    """

    def __init__(self) -> None:
        """Start it; OSError where no process can be had that is one."""
        if not sys.executable or getattr(sys, "frozen", False):
            raise OSError("no interpreter to start")
        self._said = os.memfd_create("nanoloom-worker")
        try:
            self.process = subprocess.Popen(
                command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                bufsize=0,
                process_group=0,  # what a terminal sends is for the parent
                cwd="/",  # it keeps no folder in use
            )
        except BaseException:
            os.close(self._said)
            raise
        self._greeted = False

    def ask(self, job: Job) -> Answer:
        """What comes of a job.

        Raises Crashed if the process ends meanwhile, OSError if it never was a worker.
        """
        frame = packed(job)
        try:
            send(cast("IO[bytes]", self.process.stdin), frame)
        except OSError:
            raise self._ended() from None
        answer = self._frame()
        return cast("Answer", unpacked(answer))

    def wait_loaded(self) -> None:
        """Wait until it has loaded the compiler, or has ended."""
        answers = cast("IO[bytes]", self.process.stdout)
        if not self._greeted and receive(answers) == HELLO:
            self._greeted = True
            receive(answers)  # READY

    def _frame(self) -> bytes:
        """The next frame behind the greetings."""
        self.wait_loaded()
        if not self._greeted:
            self.stop()
            raise OSError("what was started is no worker")
        frame = receive(cast("IO[bytes]", self.process.stdout))
        if frame is None:
            raise self._ended()
        return frame

    def _ended(self) -> Exception:
        status = self.process.wait()
        said = os.pread(self._said, SAID_BYTES, 0).decode(errors="replace")
        answers = cast("IO[bytes]", self.process.stdout)
        if not self._greeted and receive(answers) != HELLO:
            return OSError(f"a worker does not start: {said}")
        return Crashed(status, said)

    def stop(self) -> None:
        """End the process, and leave nothing of it."""
        self.process.kill()
        self.process.wait()
        self.forget()

    def forget(self) -> None:
        """Close what this process has of it; in a forked child, that is all there is
        to do."""
        for pipe in (self.process.stdin, self.process.stdout):
            cast("IO[bytes]", pipe).close()
        if self.process.returncode is None:
            self.process.returncode = 0  # another process waits for it
        if self._said >= 0:
            os.close(self._said)
            self._said = -1


def command() -> list[str]:
    """The same interpreter, with the same modules."""
    places = dict.fromkeys(map(os.path.abspath, sys.path))
    own = nanoloom.__file__, [*nanoloom.__path__]
    words = [json.dumps(word) for word in (list(places), own, os.getpid())]
    flags = ["-s", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
    return [sys.executable, *flags, "-c", PROGRAM, *words]
