"""Kernels that wait are made together: as alone, and each says itself what is wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar

import onnx_ir
import pytest
from onnx import parser

from nanoloom.compiler import Report, job_of, partition_model
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.workers.jobs import MakeKernel, MakeKernels, together
from nanoloom.workers.messages import Answer, Job
from nanoloom.workers.pool import MOST_TOGETHER, Pool, answered_here
from nanoloom.workers.process import Worker
from tests.workers.stand_ins import Crashing, Echo

NETWORK = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[3, 7] x) => (float[3, 7] y, float[7, 3] z) {
      y = Relu(x)
      z = Transpose (x)
    }
"""
LONG = 60.0


@cache
def kernels(target: str = "x86-64-v4") -> tuple[MakeKernel, ...]:
    options = CompileOptions(by_name(target))
    model = onnx_ir.from_proto(parser.parse_model(NETWORK))
    program = partition_model(model, options, Report())
    return tuple(job_of(kernel, options) for kernel in program.kernels.values())


class Noting(Worker):
    """Notes how many kernels it was asked for at once; ends in the middle of several,
    once, where it is to."""

    asked: ClassVar[list[int]] = []
    ends = False
    first = threading.Event()

    def ask(self, job: Job) -> Answer:
        count = len(job.kernels) if isinstance(job, MakeKernels) else 1
        Noting.first.wait(LONG)  # until all are there
        Noting.asked.append(count)
        if count > 1 and Noting.ends:
            Noting.ends = False
            self.process.kill()
        return super().ask(job)


@pytest.fixture
def pool() -> Iterator[Pool]:
    Noting.asked, Noting.ends, Noting.first = [], False, threading.Event()
    made = Pool(Noting)
    yield made
    made.close()


def answers(pool: Pool, jobs: list[MakeKernel]) -> list[Answer]:
    futures = [pool.submit(job, 0.0, 1) for job in jobs]
    Noting.first.set()
    return [future.result(LONG) for future in futures]


@pytest.mark.parametrize("ends", [False, True])
def test_as_alone(pool: Pool, ends: bool) -> None:
    Noting.ends = ends
    jobs = [*kernels()] * 8
    made = answers(pool, jobs)
    assert 1 < max(Noting.asked) <= MOST_TOGETHER
    alone = {job: answered_here(job).value for job in kernels()}
    assert len(set(alone.values())) == len(alone) > 1
    assert [answer.value for answer in made] == [alone[job] for job in jobs]


def test_what_fails_says_so_itself(pool: Pool) -> None:
    one, *_ = kernels()
    wrong = replace(one, name="wrong", script="nonsense", given=True)
    made = answers(pool, [one] * 2 + [wrong] + [one] * 7)
    failures = [answer.failure for answer in made]
    (found,) = [failure for failure in failures if failure is not None]
    assert failures.index(found) == 2 and max(Noting.asked) > 1
    error = found.exception()
    assert isinstance(error, Error) and "wrong" in str(error)
    assert all(made[n].value == made[0].value for n in range(10) if n != 2)


def test_what_is_not_made_together() -> None:
    one, *_ = kernels()
    (other, *_) = kernels("neoverse-v1")
    place = Path("/")
    assert together([one, one], place) is not None
    assert together([one, other], place) is None
    assert together([one, Echo()], place) is None
    assert together([one, Crashing(**vars(one))], place) is None
