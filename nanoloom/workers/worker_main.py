"""The worker's side: a process that makes one kernel after the other.

It ends when its pipe is closed, and the system ends it with the thread that started it.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, cast

from nanoloom.errors import Error, noting
from nanoloom.garbage import COLLECTED
from nanoloom.workers.messages import (
    HELLO,
    READY,
    Answer,
    Failure,
    Job,
    packed,
    receive,
    send,
    unpacked,
)

SET_PARENT_DEATH_SIGNAL = 1  # of prctl, <sys/prctl.h>


def main(parent: int) -> None:
    """Answer jobs until there are no more.  parent: the process that started this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent, which decides
    end_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
    jobs, answers = own_pipes()
    send(answers, HELLO)
    load()
    send(answers, READY)
    while (frame := receive(jobs)) is not None:
        send(answers, packed(answered(frame)))
    os._exit(0)  # nothing here is worth the time of an orderly end


def end_with(parent: int) -> None:
    """Ask the system to end this process with its parent, however that ends."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The two pipes, away from stdin and stdout: libraries print what they like."""
    jobs, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(jobs, "rb", buffering=0), os.fdopen(answers, "wb", buffering=0)


def load() -> None:
    """Import the compiler before the first job is there.

    Nobody looks for garbage meanwhile, nor among the modules behind it: all of them
    stay.  What does not import is told to whoever sends a job, which imports it again.
    """
    gc.disable()
    try:
        from nanoloom.workers import compile_kernel

        compile_kernel.warm_up()
        gc.freeze()
    except Exception:  # noqa: BLE001 - no job yet to fail
        return
    finally:
        gc.set_threshold(COLLECTED)
        gc.enable()


def answered(frame: bytes) -> Answer:
    """The answer to a job: nothing that Python raises ends a worker."""
    seconds: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Generator[None]:
        started = time.perf_counter()
        with noting(f"stage {name}"):
            yield
        passed = time.perf_counter() - started
        seconds[name] = seconds.get(name, 0.0) + passed

    try:
        job = read(frame)
        return Answer(job.run(stage), seconds=seconds)
    except Exception as error:  # noqa: BLE001 - it is raised where the job came from
        return Answer(failure=failure_of(error), seconds=seconds)


def read(frame: bytes) -> Job:
    """A job; packages that `site` alone finds (editable ones) are looked for once."""
    try:
        return cast("Job", unpacked(frame))
    except ModuleNotFoundError:
        import site

        site.main()
        return cast("Job", unpacked(frame))


def failure_of(error: Exception) -> Failure:
    """An exception as a value that any process can read."""
    return Failure(
        error if isinstance(error, Error) else None,
        type(error).__name__,
        str(error),
        tuple(getattr(error, "__notes__", ())),
        traceback.format_exc(),
    )
