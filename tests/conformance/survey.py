"""Cases in processes of their own: whatever one of them does, the others are run."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from nanoloom.cache import Cache
from nanoloom.errors import Error, InternalError
from tests.conformance.cases import cases, run
from tests.conformance.pipeline import Pipeline

WORKERS = 2
SECONDS = 120  # for one case; the longest takes a few


@dataclass(frozen=True)
class Verdict:
    """What became of a case.

    status: passed, refused (an Error of nanoloom's), wrong, crashed (any other
    exception, a dead process or too long).  reason: one sentence, unless it passed.
    """

    name: str
    status: str
    reason: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.status == "passed"


def judge(name: str, pipeline: Pipeline) -> Verdict:
    """Run one case in this process."""
    started = time.perf_counter()
    try:
        reason = run(cases()[name], pipeline)
        status = "wrong" if reason else "passed"
    except InternalError as error:
        cause = error.__cause__
        status, reason = "crashed", f"{type(cause).__name__}: {cause}"
    except Error as error:
        status, reason = "refused", str(error)
    except Exception as error:  # noqa: BLE001 - a bug of nanoloom's, to be reported
        status, reason = "crashed", f"{type(error).__name__}: {error}"
    return Verdict(name, status, reason, time.perf_counter() - started)


@dataclass
class Worker:
    """A process that takes names and gives verdicts, one JSON text a line."""

    process: subprocess.Popen[str]
    name: str = ""
    since: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, root: Path) -> Worker:
        """A process that keeps compiled code under `root`, with the others."""
        command = [
            sys.executable,
            "-m",
            "tests.conformance.survey",
            "--worker",
            str(root),
        ]
        return cls(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )

    def give(self, name: str) -> None:
        assert self.process.stdin is not None
        self.name, self.since = name, time.monotonic()
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()

    def verdict(self) -> Verdict:
        """What the process says of its case, or what its end says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return Verdict(**json.loads(line))
        return Verdict(self.name, "crashed", f"exit status {self.process.wait()}")

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


def survey(names: Sequence[str], root: Path) -> Iterator[Verdict]:
    """The verdicts of these cases, as they come; compiled code is kept under `root`."""
    waiting = list(reversed(names))
    with selectors.DefaultSelector() as selector:

        def employ() -> None:
            worker = Worker.start(root)
            worker.give(waiting.pop())
            assert worker.process.stdout is not None
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

        for _ in range(min(WORKERS, len(waiting))):
            employ()
        while selector.get_map():
            ready = {id(key.data) for key, _ in selector.select(timeout=1)}
            for key in list(selector.get_map().values()):
                worker: Worker = key.data
                late = time.monotonic() - worker.since > SECONDS
                if id(worker) in ready:
                    verdict = worker.verdict()
                elif late:
                    verdict = Verdict(worker.name, "crashed", "takes too long")
                else:
                    continue
                yield verdict
                alive = worker.process.poll() is None and not late
                if alive and waiting:
                    worker.give(waiting.pop())
                    continue
                selector.unregister(key.fileobj)
                worker.stop()
                if waiting:
                    employ()


def work(root: Path) -> None:
    """The other side of a Worker."""
    pipeline = Pipeline(Cache(root))
    for line in sys.stdin:
        print(json.dumps(vars(judge(line.strip(), pipeline))), flush=True)


def main(prefixes: list[str]) -> None:
    """Run the cases whose name begins so; print what does not pass, and how many."""
    chosen = [n for n in cases() if n.startswith(tuple(prefixes or ["test_"]))]
    counts: Counter[str] = Counter()
    with TemporaryDirectory(prefix="nanoloom-") as root:
        for verdict in survey(chosen, Path(root)):
            counts[verdict.status] += 1
            if not verdict.passed:
                print(f"{verdict.status} {verdict.name}: {verdict.reason}", flush=True)
    print(", ".join(f"{n} {status}" for status, n in counts.items()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(Path(sys.argv[2]))
    else:
        main([f"test_{word}" for word in sys.argv[1:]])
