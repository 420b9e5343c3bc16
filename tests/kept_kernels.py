"""Kernels that equal ones of other tests, or of earlier runs, were compiled to.

Their keys hold nanoloom's own digest, so that a change of the compiler makes all anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from nanoloom import compiler
from nanoloom.cache import Cache
from nanoloom.workers.batch import Batch
from nanoloom.workers.fork_server import ForkServer
from nanoloom.workers.jobs import MakeKernel
from nanoloom.workers.messages import Job
from nanoloom.workers.pool import Pool

KEPT = Cache(Path(__file__).parents[1] / ".pytest_cache" / "kernels", 2 << 30)


class KeptBatch(Batch[bytes]):
    """A batch that asks the workers only for what no test has asked for yet."""

    def __init__(
        self,
        workers: Pool,
        most: int,
        add: Callable[[Mapping[str, float]], None],
        keep: Callable[[str, bytes], None] = lambda *_: None,
    ) -> None:
        super().__init__(workers, most, add, self.keep_for_all)
        self.keep_for_one = keep
        self.keys: dict[str, str] = {}

    def ask(self, name: str, job: Job, cost: float = 0.0) -> None:
        assert isinstance(job, MakeKernel)
        found = KEPT.get(job.entry)
        if found is not None:
            self.keep_for_one(name, found)
            return
        self.keys[name] = job.entry
        super().ask(name, job, cost)

    def keep_for_all(self, name: str, code: bytes) -> None:
        KEPT.put(self.keys[name], code)
        self.keep_for_one(name, code)


def made_elsewhere(workers: Pool) -> bool:
    """Whether other processes make its kernels: no part of those is replaced here, and
    all that they are told is in a kernel's key."""
    return workers._start is ForkServer


@contextmanager
def kernels_are_kept(of: Callable[[Pool], bool] = lambda _: True) -> Generator[None]:
    """of: which workers' kernels."""

    def batch(workers: Pool, *given: Any) -> Batch[bytes]:
        return (KeptBatch if of(workers) else Batch[bytes])(workers, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "Batch", batch)
        yield


def kernels_are_made() -> AbstractContextManager[None]:
    return kernels_are_kept(lambda _: False)
