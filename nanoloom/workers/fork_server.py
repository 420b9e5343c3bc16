"""The parent's side of the process that loads the compiler once and forks workers.

A fork takes milliseconds, and shares the memory of all that was loaded; loading takes
most of a second.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence

import nanoloom
from nanoloom.workers.messages import HELLO, NUMBER

# The modules are looked for where this process looks for them.  Without `site`, which
# takes time: what it finds is in the path already.  nanoloom itself is loaded from the
# files of this process: another one may have come before it in the path, or an import
# hook may have found it, as for an editable installation.  numpy starts no threads:
# what forks has one.
PROGRAM = """\
import json, os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
from importlib.util import module_from_spec, spec_from_file_location as found
sys.path[:], (file, folders) = map(json.loads, sys.argv[1:])
spec = found("nanoloom", file, submodule_search_locations=folders)
sys.modules["nanoloom"] = module = module_from_spec(spec)
spec.loader.exec_module(module)
from nanoloom.workers.worker_main import main
main()
"""
SAID_BYTES = 1 << 16  # of stderr that are read, from its beginning
FORK = b"fork"  # with three files: a worker's jobs, its answers and its stderr


class ForkServer:
    """A process that forks, ends and waits for workers.

    It ends when its socket is closed, and its workers with it.
    """

    def __init__(self) -> None:
        """Start it; OSError where no process can be had."""
        if not sys.executable or getattr(sys, "frozen", False):
            raise OSError("no interpreter to start")
        self._one = threading.Lock()
        self._greeted = False
        self._said = os.memfd_create("nanoloom-fork-server")
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self.process = subprocess.Popen(
                    command(),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=self._said,
                    process_group=0,  # what a terminal sends is for the parent
                    cwd="/",  # it keeps no folder in use
                )
        except BaseException:  # raised again, with nothing left open
            self._socket.close()
            os.close(self._said)
            raise

    def fork(self, files: Sequence[int]) -> int:
        """The number of a new worker with these files, as FORK says; OSError if none
        can be had."""
        number = self._asked(FORK, files)
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        return number

    def end(self, worker: int) -> int:
        """End a worker if it has not ended; its status, as of `subprocess`.

        Where this process has ended, so have its workers: then that is its own.
        """
        try:
            return self._asked(NUMBER.pack(worker))
        except OSError:
            return self.process.wait()

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """End the process and its workers, and leave nothing of it."""
        self.process.kill()
        self.process.wait()
        self.forget()

    def forget(self) -> None:
        """Close what this process has of it; in a forked child, that is all there is
        to do."""
        self._socket.close()
        if self.process.returncode is None:
            self.process.returncode = 0  # another process waits for it
        if self._said >= 0:
            os.close(self._said)
            self._said = -1

    def _asked(self, message: bytes, files: Sequence[int] = ()) -> int:
        """The answer to a message; OSError if there is none, or was none ever."""
        with self._one:
            try:
                flags = socket.MSG_NOSIGNAL
                socket.send_fds(self._socket, [message], files, flags)
                if not self._greeted and self._socket.recv(len(HELLO)) != HELLO:
                    raise OSError("what was started is no server")
                self._greeted = True
                answer = self._socket.recv(NUMBER.size)
            except OSError:
                answer = b""
            if len(answer) != NUMBER.size:
                self.process.kill()  # whatever it is
                raise OSError(f"no workers can be had: {said(self._said)}")
            return int(NUMBER.unpack(answer)[0])


def command() -> list[str]:
    """The same interpreter, with the same modules."""
    places = dict.fromkeys(map(os.path.abspath, sys.path))
    own = nanoloom.__file__, [*nanoloom.__path__]
    words = [json.dumps(word) for word in (list(places), own)]
    flags = ["-s", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
    return [sys.executable, *flags, "-c", PROGRAM, *words]


def said(file: int) -> str:
    """What a process has written to its stderr."""
    return os.pread(file, SAID_BYTES, 0).decode(errors="replace")
