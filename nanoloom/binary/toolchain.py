"""The C compiler and linker inside the package ziglang, as a child process."""

from __future__ import annotations

import atexit
import importlib.util
import os
import signal
import subprocess
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from nanoloom.errors import Error, refused

_HINT = "pip install ziglang"


def zig() -> Path:
    """The zig executable.

    Raises:
        Error: the package ziglang, or the executable in it, is not there.
    """
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        raise Error("the package ziglang is not installed", hint=_HINT, stage="binary")
    folder = Path(found.origin).parent
    for name in ("zig", "zig.exe"):
        if (folder / name).is_file():
            return folder / name
    reason = "the package ziglang holds no zig"
    raise Error(reason, where=str(folder), hint=_HINT, stage="binary")


def zig_triple(triple: str) -> str:
    """LLVM's triple as zig spells it: x86_64-unknown-linux-gnu -> x86_64-linux-gnu."""
    return "-".join(part for part in triple.split("-") if part not in ("unknown", "pc"))


class Run:
    """One running tool; started at once, so that several may run side by side.

    It ends with this process, and with the call that waits for it.
    """

    _begun: ClassVar[weakref.WeakSet[Run]] = weakref.WeakSet()

    def __init__(
        self, arguments: Sequence[str], what: str, folder: Path, nice: int = 0
    ) -> None:
        """`what` names the work in an error; the tool works in `folder`.

        nice: more than 0 where others come first.
        """
        self._what = what
        # zig wants a cache even where it writes none, and checks nothing that it finds
        # there: it gets one of its own that nothing outlives.
        own = str(folder.absolute() / "zig")
        places = {"ZIG_GLOBAL_CACHE_DIR": own, "ZIG_LOCAL_CACHE_DIR": own}
        tool = zig()
        try:
            self._process = subprocess.Popen(
                [str(tool), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                cwd=folder,
                env=os.environ | places,
                process_group=0,  # what a terminal sends is for the parent
            )
        except OSError as error:
            said = f"{what}: cannot start {tool}"
            raise refused(said, error, hint=_HINT, stage="binary") from error
        self._begun.add(self)
        if nice:
            with suppress(OSError):  # it may not be there any more
                os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)

    def wait(self) -> str:
        """Wait for the end; what the tool has said.

        Raises:
            Error: the tool failed; the message has the first line that says why.
        """
        try:
            said, _ = self._process.communicate()
        except BaseException:  # whoever interrupts waits for no tool
            self.stop()
            raise
        if self._process.returncode == 0:
            return said
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        told = [line for line in lines if "error" in line] or lines
        why = told[0] if told else ended(self._process.returncode)
        raise Error(f"{self._what} failed: {why}", stage="binary")

    def stop(self) -> None:
        """End the tool if it still runs: another one has failed."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    @classmethod
    def end_all(cls) -> None:
        """Kill what still runs: the process ends."""
        for run in list(cls._begun):
            if run._process.poll() is None:
                run._process.kill()


atexit.register(Run.end_all)


def ended(status: int) -> str:
    """How a process ended that has said nothing: SIGXFSZ where files may not grow."""
    return f"status {status}" if status >= 0 else signal.Signals(-status).name
