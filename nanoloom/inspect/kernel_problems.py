"""Which kernels of a model do not compile: all of them are made, and kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx_ir

from nanoloom.cache import Cache
from nanoloom.compiler import Report, job_of, partition_model, with_shared_k
from nanoloom.errors import Error, noting
from nanoloom.frontend.problems import Problem
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.graph.stage import bind_values
from nanoloom.inspect.diagnostics import some_values
from nanoloom.kernels.program import Kernel, Program
from nanoloom.options import CompileOptions
from nanoloom.runtime.threads import default_threads
from nanoloom.workers.batch import Batch
from nanoloom.workers.jobs import MakeKernel
from nanoloom.workers.pool import pool

HINT = "report it with the model: no model is to blame for its kernels"


def kernel_problems(
    model: onnx_ir.Model,
    dims: Mapping[str, int],
    deciding: Collection[str],
    options: CompileOptions,
    cache: Cache,
    report: Report,
) -> list[Problem]:
    """The kernels that fail, by the layers they are of; none where the model compiles.

    model: without a problem in its nodes, for these dimensions; it stays as it is.
    deciding: inputs whose values decide about shapes.
    """
    bound = bind(model, dims)
    bind_values(bound, some_values(bound, deciding))
    try:
        program = partition_model(bound, options, report)
    except Error as error:
        return [Problem(error.where or "the model", error.reason, error.hint or HINT)]
    program = with_shared_k(program, options)
    found = failures(program, options, cache, report)
    return [problem_of(program, name, error) for name, error in found.items()]


def failures(
    program: Program, options: CompileOptions, cache: Cache, report: Report
) -> dict[str, Exception]:
    """Why kernels do not compile, by their names; the others are in the cache then."""
    unscheduled: dict[str, Exception] = {}
    keys: dict[str, str] = {}
    count = len(program.kernels)

    def keep(name: str, code: bytes) -> None:
        cache.put(keys[name], code)

    with Batch(pool(), default_threads(), report.add, keep) as batch:
        for index, kernel in enumerate(program.kernels.values()):
            if report.progress is not None:
                report.progress("kernels", index, count)
            try:
                job = scheduled_job(kernel, options)
            except Exception as error:  # noqa: BLE001 (a bug, which is what is sought)
                unscheduled[kernel.name] = error
                continue
            keys[job.name] = job.entry
            if cache.get(job.entry) is None:
                batch.ask(job.name, job, cost=len(job.text) + len(job.script))
        failed = unscheduled | batch.failures()
    return {name: failed[name] for name in program.kernels if name in failed}


def scheduled_job(kernel: Kernel, options: CompileOptions) -> MakeKernel:
    with noting(f"kernel {kernel.name}"):
        return job_of(kernel, options)


def problem_of(program: Program, kernel: str, error: Exception) -> Problem:
    """What is said of a kernel: the layers that it computes, and why it fails."""
    layers = sorted({call.layer for call in program.calls if call.kernel == kernel})
    where = f"kernel {kernel} ({', '.join(layers)})" if any(layers) else kernel
    if isinstance(error, Error):
        return Problem(where, error.reason, error.hint or HINT)
    return Problem(where, f"{type(error).__name__}: {error}", HINT)
