"""The workers of a process: as many as are asked for, kept while they have work.

A thread attends each worker: it has the process forked, hands it jobs and takes its
answers.  The last one ends the process that forks, too.  Who waits for an answer holds
none of the compiler's locks, so that other threads may fork.
"""

from __future__ import annotations

import atexit
import heapq
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from nanoloom.fork_lock import wait_for_compiler
from nanoloom.runtime.threads import default_threads
from nanoloom.workers.fork_server import ForkServer
from nanoloom.workers.messages import Answer, Job, packed
from nanoloom.workers.process import Worker
from nanoloom.workers.worker_main import answered

IDLE_SECONDS = 10.0  # that a worker is kept for the next model
EARLY_WORKERS = 8  # of a model whose kernels nobody has counted yet
_here = threading.Lock()  # dialects written in Python keep state outside the context


@dataclass(order=True)
class Task:
    """A job in the queue, the longest first."""

    order: tuple[float, int]
    job: Job = field(compare=False)
    answer: Future[Answer] = field(compare=False)


class Pool:
    """Jobs go in, and answers come out of futures.

    start: what forks workers, or OSError where no process can be had: then the threads
    do the work themselves.
    """

    def __init__(self, start: Callable[[], ForkServer] = ForkServer) -> None:
        self._start = start
        self._server: ForkServer | None = None
        self._starting = threading.Lock()
        self._changed = threading.Condition()
        self._queue: list[Task] = []
        self._numbers = itertools.count()
        self._attending = 0
        self._idle = 0
        self._workers: set[Worker] = set()

    def prepare(self, count: int) -> None:
        """Have `count` workers, started now: there will be jobs."""
        with self._changed:
            for _ in range(count - self._attending):
                self._attend()

    def submit(self, job: Job, cost: float, most: int) -> Future[Answer]:
        """Ask for a job; those that cost most come first.  most: workers to have.

        The future raises Crashed if the worker ends in the middle of it.
        """
        answer = Future[Answer]()
        with self._changed:
            order = (-cost, next(self._numbers))
            heapq.heappush(self._queue, Task(order, job, answer))
            if self._attending < most and self._idle < len(self._queue):
                self._attend()
            self._changed.notify()
        return answer

    def close(self) -> None:
        """End all workers: the process ends."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def forget(self) -> None:
        """In a forked child: close the pipes to the parent's workers."""
        for worker in self._workers:
            worker.forget()
        if self._server is not None:
            self._server.forget()

    def _attend(self) -> None:
        self._attending += 1
        self._idle += 1
        threading.Thread(
            target=self._serve, name="nanoloom worker", daemon=True
        ).start()

    def _serve(self) -> None:
        """The life of a worker, from before its first job to the end of idleness."""
        worker = self._started()
        while (task := self._next()) is not None:
            if task.answer.set_running_or_notify_cancel():
                worker = worker or self._started()
                if not self._done(task, worker):
                    worker = None
            with self._changed:
                self._idle += 1
        self._ended(worker)
        with self._changed:
            unused = None if self._attending else self._server
            self._server = self._server if self._attending else None
        if unused is not None:
            unused.stop()

    def _started(self) -> Worker | None:
        """A worker; None where there can be none."""
        try:
            worker = Worker(self._forking())
        except OSError:
            return None
        self._workers.add(worker)
        return worker

    def _forking(self) -> ForkServer:
        """What forks workers; another one where that has ended."""
        with self._starting:
            if self._server is None or not self._server.is_alive():
                self._server = self._start()
            return self._server

    def _ended(self, worker: Worker | None) -> None:
        if worker is not None:
            self._workers.discard(worker)
            worker.stop()

    def _next(self) -> Task | None:
        """The longest job; None when there was none for a while."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._queue, IDLE_SECONDS)
            self._idle -= 1
            if not found:
                self._attending -= 1
                return None
            return heapq.heappop(self._queue)

    def _done(self, task: Task, worker: Worker | None) -> bool:
        """Whether the worker can be asked again."""
        try:
            answer = answered_here(task.job) if worker is None else worker.ask(task.job)
        except Exception as error:  # noqa: BLE001 - it is raised where the job came from
            self._ended(worker)
            task.answer.set_exception(error)
            return False
        task.answer.set_result(answer)
        return True


def in_process() -> ForkServer:
    """For a pool without processes."""
    raise OSError("no process is wanted")


def answered_here(job: Job) -> Answer:
    """The answer to a job that this process does itself."""
    with wait_for_compiler(), _here:  # else a child might have the lock for ever
        return answered(packed(job))


_pool = Pool()


def pool() -> Pool:
    """The workers of this process."""
    return _pool


def start_early(most: int | None) -> None:
    """Start workers while the model is read: they import the compiler meanwhile.

    most: workers to have; None for one for each usable CPU.
    """
    pool().prepare(min(most or default_threads(), EARLY_WORKERS))


def _in_child() -> None:
    """A fork has none of its parent's workers, and starts its own."""
    global _pool, _here
    parents, _pool, _here = _pool, Pool(), threading.Lock()
    with suppress(OSError):
        parents.forget()


def _close() -> None:
    _pool.close()


os.register_at_fork(after_in_child=_in_child)
atexit.register(_close)
