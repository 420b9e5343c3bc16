"""Kernels that equal ones of other tests, or of earlier runs, were compiled to.

Their keys hold nanoloom's own digest, so that a change of the compiler makes all anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from nanoloom import compiler
from nanoloom.cache import Cache
from nanoloom.workers.batch import Batch
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


@contextmanager
def kernels_are_kept() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "Batch", KeptBatch)
        yield


@contextmanager
def kernels_are_made() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "Batch", Batch)
        yield
