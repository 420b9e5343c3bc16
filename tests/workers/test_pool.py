"""Workers answer, fail, end and are left behind: never the process that asks."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nanoloom.errors import DataDependent, Error, InternalError
from nanoloom.workers import fork_server
from nanoloom.workers import pool as pools
from nanoloom.workers.batch import Batch
from nanoloom.workers.messages import Answer, InWorker, Job
from nanoloom.workers.pool import Pool, in_process
from nanoloom.workers.process import Crashed
from tests.test_fork_lock import forked
from tests.workers.stand_ins import LIGHT, Dies, Echo, Prints, Raises
from tests.workers.waiting import LONG, until


@pytest.fixture(scope="module", autouse=True)
def workers_load_no_compiler() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        assert LIGHT != fork_server.PROGRAM
        patch.setattr(fork_server, "PROGRAM", LIGHT)
        yield


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Pool]:
    """For jobs that a worker survives."""
    made = Pool()
    yield made
    made.close()


def asked(pool: Pool, job: Job) -> Answer:
    return pool.submit(job, 0.0, 1).result(LONG)


def number_of(pool: Pool) -> int:
    """The process of a pool with one worker."""
    value = asked(pool, Echo()).value
    assert isinstance(value, tuple)
    return int(value[1])


def test_another_process_answers_and_is_kept(shared: Pool) -> None:
    answer = asked(shared, Echo("text", 0.01))
    assert isinstance(answer.value, tuple) and answer.value[0] == "text"
    assert answer.value[1] == number_of(shared) != os.getpid()
    assert answer.seconds["asleep"] >= 0.01


def test_what_is_printed_is_no_answer(shared: Pool) -> None:
    assert asked(shared, Prints()).value == ""


@pytest.mark.parametrize(
    ("what", "kind"),
    [("key", KeyError), ("own", RuntimeError), ("unicode", RuntimeError)],
)
def test_exceptions_travel(shared: Pool, what: str, kind: type[Exception]) -> None:
    failure = asked(shared, Raises(what)).failure
    assert failure is not None
    error = failure.exception()
    assert type(error) is kind and error.__notes__ == ["stage doomed"]
    assert isinstance(error.__cause__, InWorker) and "stand_ins" in str(error.__cause__)


def test_errors_keep_their_fields(shared: Pool) -> None:
    failure = asked(shared, Raises("data")).failure
    assert failure is not None
    error = failure.exception()
    assert isinstance(error, DataDependent) and error.inputs == ("a", "b")
    assert str(error) == "node n: no; do"


def test_a_dead_worker_is_replaced(pool: Pool) -> None:
    before = number_of(pool)
    with pytest.raises(Crashed, match="SIGSEGV\ngoodbye") as crash:
        asked(pool, Dies(signal.SIGSEGV, "goodbye"))
    assert crash.value.status == -signal.SIGSEGV
    assert number_of(pool) != before and not Path(f"/proc/{before}").exists()


def test_the_longest_job_is_first(shared: Pool) -> None:
    first = shared.submit(Echo(seconds=0.5), 0.0, 1)
    costs = (1.0, 3.0, 2.0)
    later = [shared.submit(Echo(), cost, 1) for cost in costs]
    first.result(LONG)
    times = [future.result(LONG).value[2] for future in later]  # type: ignore[index]
    assert sorted(costs, key=lambda c: times[costs.index(c)]) == [3.0, 2.0, 1.0]


def test_as_many_workers_as_asked_for(pool: Pool) -> None:
    for most in (1, 3):
        jobs = [pool.submit(Echo(seconds=0.3), 0.0, most) for _ in range(6)]
        numbers = {job.result(LONG).value[1] for job in jobs}  # type: ignore[index]
        assert len(numbers) == most


def test_early_workers_are_forks_of_one_process(pool: Pool) -> None:
    """Which has loaded what they need, and ends with the last of them."""
    pool.prepare(3)
    jobs = [pool.submit(Echo(seconds=0.2), 0.0, 3) for _ in range(6)]
    numbers = {job.result(LONG).value[1] for job in jobs}  # type: ignore[index] - Echo's
    assert pool._server is not None and len(numbers) == 3
    assert {parent_of(number) for number in numbers} == {pool._server.process.pid}


def parent_of(number: int) -> int:
    state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2]
    return int(state.split()[1])


def test_what_forks_is_replaced(pool: Pool) -> None:
    """The job that a worker had is lost with it; no other one is."""
    number_of(pool)
    server = pool._server
    assert server is not None
    busy = pool.submit(Echo(seconds=60), 0.0, 1)
    assert until(busy.running)
    server.process.kill()
    with pytest.raises(Crashed, match="SIGKILL"):
        busy.result(LONG)
    assert number_of(pool) != os.getpid() and pool._server is not server


def test_idle_workers_end(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.05)
    number = number_of(pool)
    assert until(lambda: not Path(f"/proc/{number}").exists())
    assert until(lambda: pool._server is None)
    assert number_of(pool) not in (number, os.getpid())


@pytest.mark.parametrize("executable", ["", "/bin/false", "/bin/cat", "/nowhere"])
def test_without_processes_threads_work(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert number_of(pool) == number_of(Pool(in_process)) == os.getpid()
    monkeypatch.undo()


# ---- batches


def test_all_that_ends_is_kept_and_the_first_failure_raised(pool: Pool) -> None:
    kept: list[str] = []
    jobs: dict[str, Job] = {
        "good": Echo(seconds=0.3),
        "bad": Dies(signal.SIGABRT, "LLVM ERROR: Cannot select: it"),
        "worse": Raises("data"),
    }
    with Batch[object](pool, 3, lambda _: None, lambda n, _: kept.append(n)) as batch:
        for name, job in jobs.items():
            batch.ask(name, job)
        with pytest.raises(InternalError) as error:
            batch.answers()
    assert kept == ["good"]
    assert str(error.value) == (
        "kernel bad: this is a bug of nanoloom (the compiler crashed: SIGABRT: Cannot "
        "select: it), not of your model; report it with the model"
    )


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Dies(signal.SIGKILL), "kernel k: the process that compiled it was ended"),
        (Dies(signal.SIGABRT, "LLVM ERROR: out of memory"), "if memory ran out"),
        (Dies(signal.SIGSEGV, given=True), "schedule of kernel k: makes MLIR crash"),
    ],
)
def test_not_every_crash_is_a_bug(pool: Pool, job: Job, words: str) -> None:
    with Batch[object](pool, 1, lambda _: None) as batch:
        batch.ask("k", job)
        with pytest.raises(Error, match=words) as error:
            batch.answers()
    assert not isinstance(error.value, InternalError)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts what runs in the background with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_the_queue(pool: Pool) -> None:
    pool.submit(Echo(), 0.0, 1).result(LONG)
    main = threading.main_thread().ident
    assert main is not None
    raised = threading.Event()

    def interrupt() -> None:
        for pause in (0.2, 1.5, 1.5):  # again: a signal may meet code that has no end
            if not raised.wait(pause):
                signal.pthread_kill(main, signal.SIGINT)

    presses = threading.Thread(target=interrupt)
    with (
        pytest.raises(KeyboardInterrupt),
        Batch[object](pool, 1, lambda _: None) as batch,
    ):
        for number in range(20):
            batch.ask(str(number), Echo(seconds=0.5))
        presses.start()
        try:
            batch.answers()
        finally:
            raised.set()
    presses.join()
    started = time.monotonic()
    assert number_of(pool) and time.monotonic() - started < 5  # of 10 s


# ---- ends and forks


def test_a_fork_has_workers_of_its_own() -> None:
    parents = number_of(pools.pool())
    pipes = {
        os.readlink(f"/proc/self/fd/{pipe.fileno()}")
        for worker in pools.pool()._workers
        for pipe in (worker._jobs, worker._answers)
    }
    assert pipes

    def child() -> bool:
        held = {os.readlink(f"/proc/self/fd/{x}") for x in open_files()}
        mine = number_of(pools.pool())
        pools.pool().close()
        return not held & pipes and mine not in (parents, os.getpid())

    assert forked(child) == 0
    numbers = {worker.number for worker in pools.pool()._workers}
    assert parents in numbers and number_of(pools.pool()) in numbers


def open_files() -> list[int]:
    """Descriptors, without the one that lists them."""
    found = [int(name) for name in os.listdir("/proc/self/fd")]
    return [x for x in found if Path(f"/proc/self/fd/{x}").is_symlink()]
