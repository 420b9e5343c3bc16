"""The way of a model, in order: read this file from the top and you know the compiler.

    graph -> linalg -> kernels -> (schedule -> vector -> llvm -> object, a kernel each)

A stage is named for what leaves it; so are its folder, the word after `--emit` and the
files of a dump.  What stands in brackets behind `schedule` is in
workers/compile_kernel.py:  other processes do it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import onnx_ir

from nanoloom.binary.assemble import Compiled, assemble
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.cache import Cache
from nanoloom.errors import Error, noting
from nanoloom.graph.shared_decisions import SharedDecisions
from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.kernels.program import Kernel, Program
from nanoloom.kernels.repeats.outline import outline_repeats
from nanoloom.kernels.retype.precision import to_bf16
from nanoloom.kernels.retype.transpose_weights import transpose_weights
from nanoloom.kernels.retype.widening import widen
from nanoloom.kernels.row_blocks import in_row_blocks
from nanoloom.kernels.share_across_k import share_across_k
from nanoloom.kernels.share_equal_kernels import share_equal_kernels
from nanoloom.kernels.stage import partition
from nanoloom.linalg.function import Entry
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import LinalgModule, lower
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.run_constant import run_once
from nanoloom.runtime.threads import default_threads
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Schedule
from nanoloom.schedule.library.family import multiplies
from nanoloom.schedule.user_schedules import (
    given_for,
    given_schedule,
    naming_schedule,
    require_kernels,
)
from nanoloom.search.search import search
from nanoloom.target.cached_host import host
from nanoloom.workers.batch import Batch
from nanoloom.workers.jobs import MakeKernel
from nanoloom.workers.pool import Pool, pool

Model: TypeAlias = onnx_ir.Model | Entry


def compile_model(
    model: Model, options: CompileOptions, cache: Cache, report: Report
) -> Compiled:
    """All stages, for a model with static shapes (changed in place).

    Raises nanoloom.errors.Error, in one sentence, for whatever the model is to blame.
    """
    program = partition_model(model, options, report)
    options = searched(program, options, cache, report)
    return assemble(*compile_shared_k(program, options, cache, report))


def compile_shared_k(
    program: Program, options: CompileOptions, cache: Cache, report: Report
) -> tuple[Program, dict[str, CompiledKernel]]:
    """A program of known sizes and its kernels, fewer ones where some are alike.

    Each has its own where one for all would count tasks or scratch memory as it runs.
    """
    with report.stage("kernels"):
        fewer = with_shared_k(program, options)
    compiled = compile_kernels(fewer, options, cache, report)
    if fewer is program or not any(k.is_counted for k in compiled.values()):
        return fewer, compiled
    return program, compile_kernels(program, options, cache, report)


def with_shared_k(program: Program, options: CompileOptions) -> Program:
    """The program with one kernel for those that differ in the length of a sum alone.

    Not where each of them is searched by itself, has a schedule of the user's, or none
    at all.
    """
    alone = options.search or options.strategy is not None
    if alone or options.target.vector.scalable:
        return program
    own = {name for name in program.kernels if given_for(name, options)}
    return share_across_k(program, own)


def with_equal_kernels(program: Program, options: CompileOptions) -> Program:
    """The program with one kernel for those of one text and one schedule.

    Not with a strategy: its kernels have none.
    """
    if options.strategy is not None:
        return program

    def way(kernel: Kernel) -> Schedule | str:
        with noting(f"kernel {kernel.name}"):
            return scheduled(kernel, options)

    return share_equal_kernels(program, way)


def searched(
    program: Program, options: CompileOptions, cache: Cache, report: Report
) -> CompileOptions:
    """The options with schedules that are faster than the chosen ones, by trial.

    What the user gives comes first.
    """
    if not options.search:
        return options
    require_schedules(options)
    with report.stage("search"):
        found = search(
            program, options.target, host(cache), options.search, cache, pool(),
            report.progress,
        )  # fmt: skip
    return replace(options, schedules=(*options.schedules, *found))


def partition_model(
    model: Model,
    options: CompileOptions,
    report: Report,
    kept: Set[str] | None = None,
    alike: SharedDecisions | None = None,
) -> Program:
    """The model as kernels and their calls.

    kept: values that are no constants, None for known sizes.  alike: the samples that
    it is one of.  Raises Error for a schedule of a kernel that is not among them.
    """
    with mlir.context():
        linalg = lowered(model, options, report, kept, alike)
        with report.stage("kernels"):
            target, strategy = options.target.leader, options.strategy
            program = partition(
                linalg, target, options.layout, alike=alike, planes=options.planes,
                fuses_transposes=strategy is None or strategy.fuses_transposes,
                in_place=options.in_place,
            )  # fmt: skip
            if alike is None and strategy is None and not options.in_place:
                program = in_row_blocks(program, target.caches)
    if options.schedules:
        require_schedules(options)
        names = *program.kernels, *with_shared_k(program, options).kernels
        require_kernels(names, options)
    return program


def lowered(
    model: Model,
    options: CompileOptions,
    report: Report,
    kept: Set[str] | None = None,
    alike: SharedDecisions | None = None,
) -> LinalgModule:
    """The model as linalg; an MLIR context must be current.

    What is no graph enters here.
    """
    if not isinstance(model, onnx_ir.Model):
        with report.stage("linalg"):
            return with_precision(outline_repeats(model.lower()), options)
    with report.stage("graph"):
        graph = optimized(model, options, kept, alike)
    with report.stage("linalg"):
        made = lower(graph, checked=options.checked, kept=kept)
        return with_precision(outline_repeats(made), options)


def optimized(
    model: onnx_ir.Model,
    options: CompileOptions,
    kept: Set[str] | None = None,
    alike: SharedDecisions | None = None,
) -> onnx_ir.Model:
    """The graph stage by these options; the model is changed in place."""
    return optimize(
        model,
        OPERATORS.keys(),
        options.winograd_target,
        options.target.leader,
        rewrite=options.strategy.rewrite if options.strategy else None,
        kept=kept,
        caches=options.caches,
        starts=options.starts,
        unmoved=options.encoder_caches,
        alike=alike,
        fuses=options.target.fuses,
        run_model=partial(run_once, compile_model),
    )


def require_graph(model: Model) -> onnx_ir.Model:
    """The ONNX model; raises Error for what enters at linalg."""
    if not isinstance(model, onnx_ir.Model):
        raise Error("it has no graph: linalg is its first stage")
    return model


def with_precision(lowered: LinalgModule, options: CompileOptions) -> LinalgModule:
    """The module with its products in the precision that was asked for.

    Multiplied in f32 where the target has nothing better: the numbers are the same.
    Weights lie as vectors of any width read them.  Those of repetitions, too.
    """
    lowered = lowered.with_bodies(lambda body: with_precision(body, options))
    if options.precision == "bf16":
        lowered = to_bf16(lowered)
    lowered = widen(lowered, lambda kind: multiplies(options.target, kind))
    return transpose_weights(lowered) if options.any_width else lowered


# ---- kernels


def compile_kernels(
    program: Program,
    options: CompileOptions,
    cache: Cache,
    report: Report,
    workers: Pool | None = None,
) -> dict[str, CompiledKernel]:
    """Every kernel's object, from the cache where an equal one was made before.

    workers: who makes the others; those of this process, if none are given.
    """
    report.kernels = len(program.kernels)
    made: dict[str, CompiledKernel] = {}
    names: dict[str, str] = {}

    def done(kernel: str, code: bytes) -> None:
        made[kernel] = CompiledKernel.from_bytes(code)
        if report.progress is not None:
            report.progress("kernels", len(made), report.kernels)

    def keep(kernel: str, code: bytes) -> None:
        cache.put(names[kernel], code)
        done(kernel, code)

    most = report.workers or default_threads()
    with Batch(workers or pool(), most, report.add, keep) as batch:
        for kernel in program.kernels.values():
            with report.stage("schedule"), noting(f"kernel {kernel.name}"):
                job = job_of(kernel, options)
                names[job.name] = job.entry
            found = cache.get(names[job.name])
            if found is None:
                batch.ask(job.name, job, cost=len(job.text) + len(job.script))
            else:
                report.cached += 1
                done(job.name, found)
        with report.waiting("workers"):
            batch.answers()
    return {name: made[name] for name in program.kernels}


def require_schedules(options: CompileOptions) -> None:
    """Raise Error for a strategy whose kernels have none."""
    if options.strategy is not None:
        raise Error(
            f"kernels have no schedules with the strategy {options.strategy.name}",
            hint="look at another stage, or leave the strategy out",
        )


def job_of(kernel: Kernel, options: CompileOptions) -> MakeKernel:
    """What a worker needs to make a kernel."""
    if options.strategy is not None:
        way = options.strategy
        return MakeKernel(kernel.name, kernel.text, "", False, options.target, way)
    given = given_schedule(kernel, options) is not None
    text = scheduled(kernel, options)
    if not isinstance(text, str):
        with naming_schedule(kernel.name, given=given):
            text = text.to_transform(kernel.nest)
    return MakeKernel(kernel.name, kernel.text, text, given, options.target)


def scheduled(kernel: Kernel, options: CompileOptions) -> Schedule | str:
    """The kernel's schedule: the user's, or the user's script, if one fits its name."""
    given = given_schedule(kernel, options)
    return choose(kernel.nest, options.target) if given is None else given
