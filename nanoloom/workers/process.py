"""The parent's side of one worker: it is forked, asked, and ended."""

from __future__ import annotations

import os
import signal
from typing import cast

from nanoloom.workers.fork_server import ForkServer, said
from nanoloom.workers.messages import Answer, Job, packed, receive, send, unpacked


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
    """A process that answers jobs, one after the other; it has loaded the compiler."""

    def __init__(self, server: ForkServer) -> None:
        """Fork it; OSError where no process can be had."""
        self._server = server
        self._status: int | None = None  # once it has ended
        self._said = os.memfd_create("nanoloom-worker")
        jobs, ours = os.pipe()
        answers, theirs = os.pipe()
        self._jobs = os.fdopen(ours, "wb", buffering=0)
        self._answers = os.fdopen(answers, "rb", buffering=0)
        try:
            self.number = server.fork((jobs, theirs, self._said))
        except BaseException:  # raised again, with nothing left open
            self.forget()
            raise
        finally:
            os.close(jobs)
            os.close(theirs)

    def ask(self, job: Job) -> Answer:
        """What comes of a job; raises Crashed if the process ends meanwhile."""
        frame = packed(job)
        try:
            send(self._jobs, frame)
        except OSError:
            raise self._ended() from None
        answer = receive(self._answers)
        if answer is None:
            raise self._ended()
        return cast("Answer", unpacked(answer))

    def _ended(self) -> Crashed:
        return Crashed(self._end(), said(self._said))

    def _end(self) -> int:
        if self._status is None:
            self._status = self._server.end(self.number)
        return self._status

    def stop(self) -> None:
        """End the process, and leave nothing of it."""
        self._end()
        self.forget()

    def forget(self) -> None:
        """Close what this process has of it; in a forked child, that is all there is
        to do."""
        self._jobs.close()
        self._answers.close()
        if self._said >= 0:
            os.close(self._said)
            self._said = -1
