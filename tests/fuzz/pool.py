"""Cases in child processes: one that dies or hangs is a finding, and another begins."""

from __future__ import annotations

import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from nanoloom.cache import Cache
from tests.c_libraries import lend_runtime
from tests.fuzz.cases import CACHE, Finding, Outcome

SECONDS = 120.0  # that a case may take
CASES = 150  # of one process: what it holds goes with it


@dataclass(frozen=True)
class Case:
    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.seed}"


class Worker:
    """A child process that runs cases, replaced when it is used up."""

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self.folder = folder
        self.seconds = seconds
        self.process: subprocess.Popen[str] | None = None
        self.count = 0

    def run(self, case: Case) -> Outcome:
        process = self.started()
        self.count += 1
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{case.kind} {case.seed}\n")
        process.stdin.flush()
        line = self.line(process.stdout)
        if line:
            return Outcome.from_line(line)
        hangs = line is None
        place = self.place()
        text = f"while: {place}\n" + self.ending(hangs)
        kind = "hang" if hangs else "crash"
        if place == "reference":  # of the peer, not of nanoloom
            return Outcome("empty", Finding(kind, text))
        return Outcome("finding", Finding(kind, text))

    def started(self) -> subprocess.Popen[str]:
        if self.process is not None and self.count >= CASES:
            self.close()
        if self.process is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            lend_runtime(Cache(self.folder / CACHE))
            self.count = 0
            with (self.folder / "stderr").open("w") as errors:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tests.fuzz.worker", str(self.folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
        return self.process

    def line(self, stream: IO[str]) -> str | None:
        """The answer; "" from a dead process, None from one that takes too long."""
        ready, _, _ = select.select([stream], [], [], self.seconds)
        return stream.readline() if ready else None

    def place(self) -> str:
        """Where the case was."""
        try:
            return (self.folder / "journal").read_text().splitlines()[1]
        except (OSError, IndexError):
            return "start"

    def ending(self, hangs: bool) -> str:
        """How the process ended, and the end of what it said; it is gone then."""
        assert self.process is not None
        if hangs:
            self.process.send_signal(signal.SIGABRT)  # faulthandler tells where
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            code = 0
        self.close()
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        said = (self.folder / "stderr").read_text(errors="replace")[-4000:]
        return f"{'too long' if hangs else how}\n{said}"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                assert stream is not None
                with suppress(BrokenPipeError):
                    stream.close()
            self.process = None


def run_cases(
    cases: Iterator[Case],
    folder: Path,
    jobs: int,
    each: Callable[[Case, Outcome, Path], None],
) -> None:
    """Run all cases in `jobs` workers; `each` gets every outcome and its folder."""
    lock = threading.Lock()

    def take() -> Case | None:
        with lock:
            return next(cases, None)

    def serve(number: int) -> None:
        worker = Worker(folder / f"worker-{number}")
        try:
            while (case := take()) is not None:
                outcome = worker.run(case)
                with lock:
                    each(case, outcome, worker.folder / "case")
        finally:
            worker.close()
            shutil.rmtree(worker.folder, ignore_errors=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(serve, range(jobs)))
