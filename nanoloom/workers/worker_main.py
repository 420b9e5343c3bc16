"""The workers' side: a process loads the compiler, and forks those that use it.

It ends when its socket is closed.  A worker makes one kernel after the other, until its
pipe is closed; the system ends it with the process that forked it.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import resource
import signal
import socket
import time
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import cast

from nanoloom.errors import Error, noting
from nanoloom.garbage import COLLECTED
from nanoloom.workers.fork_server import FORK
from nanoloom.workers.messages import (
    HELLO,
    NUMBER,
    Answer,
    Failure,
    Job,
    packed,
    receive,
    send,
    unpacked,
)

SET_PARENT_DEATH_SIGNAL = 1  # of prctl, <sys/prctl.h>


def main() -> None:
    """Fork workers until the socket is closed, which is stdin and stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent, which decides
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
    asked = own_socket()
    asked.send(HELLO)
    load()
    while True:
        message, files, _, _ = socket.recv_fds(asked, len(FORK) + NUMBER.size, 3)
        if not message:
            os._exit(0)  # nothing here is worth the time of an orderly end
        number = forked(asked, files) if files else ended(NUMBER.unpack(message)[0])
        asked.send(NUMBER.pack(number))


def own_socket() -> socket.socket:
    """The socket, away from stdin and stdout: libraries print what they like."""
    found = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return found


def forked(asked: socket.socket, files: Sequence[int]) -> int:
    """The number of a worker with these files; below 0, the error if there is none."""
    server = os.getpid()
    try:
        number = os.fork()
    except OSError as error:
        number = -(error.errno or errno.EAGAIN)
    if number == 0:
        try:
            asked.close()
            work(server, *files)
        finally:
            os._exit(1)
    for file in files:
        os.close(file)
    return number


def ended(worker: int) -> int:
    """End a worker; its status, also of one that ended before."""
    os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    return os.waitstatus_to_exitcode(status)


def work(server: int, jobs: int, answers: int, said: int) -> None:
    """Answer jobs until there are no more.  server: the process that forked this."""
    os.dup2(said, 2)
    os.dup2(said, 1)
    end_with(server)
    given, made = (
        os.fdopen(jobs, "rb", buffering=0),
        os.fdopen(answers, "wb", buffering=0),
    )
    while (frame := receive(given)) is not None:
        send(made, packed(answered(frame)))
    os._exit(0)


def end_with(parent: int) -> None:
    """Ask the system to end this process with its parent, however that ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def load() -> None:
    """Import the compiler before the first job is there.

    Nobody looks for garbage meanwhile, nor among the modules behind it: all of them
    stay, and forks share their memory.  What does not import is told to whoever sends a
    job, which imports it again.
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
