"""The kernels of one model: asked for together, and in order where one fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Generic, TypeVar, cast

from nanoloom.errors import Error, InternalError
from nanoloom.workers.messages import Answer, Job
from nanoloom.workers.pool import Pool
from nanoloom.workers.process import Crashed

Value = TypeVar("Value")
MEMORY = ("out of memory", "bad_alloc")  # how LLVM and C++ say it
FATAL = "LLVM ERROR: "


class Batch(Generic[Value]):
    """Jobs by the name of their kernel.

    most: workers to have.  add: takes the seconds of each stage.  keep: takes each
    value as it comes, whatever fails later.  Used in a `with`.
    """

    def __init__(
        self,
        workers: Pool,
        most: int,
        add: Callable[[Mapping[str, float]], None],
        keep: Callable[[str, Value], None] = lambda *_: None,
    ) -> None:
        self._workers = workers
        self._most = most
        self._add = add
        self._keep = keep
        self._asked: dict[Future[Answer], tuple[str, Job]] = {}
        self._values: dict[str, Value] = {}
        self._failures: dict[str, Exception] = {}

    def ask(self, name: str, job: Job, cost: float = 0.0) -> None:
        """Ask for a job; those that cost most come first."""
        self._asked[self._workers.submit(job, cost, self._most)] = name, job

    def answers(self) -> dict[str, Value]:
        """All values, in the order in which they were asked for.

        Raises the first failure in that order, when nothing runs any more.
        """
        self._wait(stop=True)
        for name, _ in self._asked.values():
            if name in self._failures:
                raise self._failures[name]
        return {name: self._values[name] for name, _ in self._asked.values()}

    def failures(self) -> dict[str, Exception]:
        """All failures, in the order of their jobs; none stops the others."""
        self._wait(stop=False)
        names = (name for name, _ in self._asked.values())
        return {name: self._failures[name] for name in names if name in self._failures}

    def _wait(self, *, stop: bool) -> None:
        """For all answers.  stop: ask for no more behind a failure."""
        waited = set(self._asked)
        while waited:
            done, waited = wait(waited, return_when=FIRST_COMPLETED)
            for future in done:
                if not future.cancelled():
                    self._take(future)
            if stop and self._failures:
                self._cancel()

    def __enter__(self) -> Batch[Value]:
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()  # what nobody waits for any more

    def _cancel(self) -> None:
        for future in self._asked:
            future.cancel()

    def _take(self, future: Future[Answer]) -> None:
        name, job = self._asked[future]
        try:
            answer = future.result()
        except Crashed as crash:
            self._failures[name] = crash_error(crash, name, job)
            return
        self._add(answer.seconds)
        if answer.failure is not None:
            error = answer.failure.exception()
            if not isinstance(error, Error):
                error.add_note(f"kernel {name}")
            self._failures[name] = error
            return
        value = cast("Value", answer.value)
        self._values[name] = value
        self._keep(name, value)


def crash_error(crash: Crashed, kernel: str, job: Job) -> Error:
    """What the user is told of a worker that ended."""
    where = f"kernel {kernel}"
    told = [line for line in crash.said.splitlines() if line.startswith(FATAL)]
    why = f"{crash.how}: {told[0].removeprefix(FATAL)}" if told else crash.how
    if crash.how == "SIGKILL" or any(word in crash.said for word in MEMORY):
        error = Error(
            f"the process that compiled it was ended ({why})",
            where=where,
            hint="if memory ran out, use smaller dimensions or a machine with more",
        )
    elif getattr(job, "given", False):
        error = Error(
            f"makes MLIR crash ({why})",
            where=f"schedule of {where}",
            hint="begin with what --emit schedule writes",
        )
    else:
        error = InternalError(
            f"this is a bug of nanoloom (the compiler crashed: {why}), "
            "not of your model",
            where=where,
            hint="report it with the model",
        )
    error.__cause__ = crash
    return error
