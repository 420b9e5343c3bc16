"""A stage of a model as text: what `--emit` shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir

from nanoloom.compiler import (
    Model,
    Report,
    job_of,
    lowered,
    optimized,
    partition_model,
    require_graph,
    require_schedules,
    scheduled,
    with_shared_k,
)
from nanoloom.graph.stage import NOT_REWRITTEN
from nanoloom.ir import mlir
from nanoloom.kernels.printer import (
    describe_layouts,
    describe_module,
    describe_program,
    kernels_of,
)
from nanoloom.kernels.program import Kernel, Program
from nanoloom.nest.nest import LoopNest
from nanoloom.options import CompileOptions
from nanoloom.runtime.threads import default_threads
from nanoloom.schedule.print_fusions import print_fusions
from nanoloom.schedule.printer import print_schedule
from nanoloom.workers.batch import Batch
from nanoloom.workers.jobs import ShowKernel
from nanoloom.workers.pool import pool

KERNEL_STAGES = ("schedule", "vector", "llvm", "asm")  # each kernel alone
Dump = Callable[[str, str, str], None]  # stage, name, text


def emit_stage(model: Model, stage: str, options: CompileOptions, dump: Dump) -> None:
    """Give `dump` the text of one stage: of the model, or of every kernel."""
    if stage == "graph":
        graph = optimized(require_graph(model), options)
        stay = [f"# {n} stays: {why}\n" for n, why in graph.meta[NOT_REWRITTEN].items()]
        text = onnx_ir.to_onnx_text(graph, exclude_initializers=True)
        dump(stage, "", "".join(stay) + text)
        return
    if stage == "linalg":
        with mlir.context():
            dump(stage, "", describe_module(lowered(model, options, Report())))
        return
    if stage == "layout":
        with mlir.context():
            module = lowered(model, options, Report())
            dump(stage, "", describe_layouts(module, options.target, options.layout))
        return
    program = with_shared_k(partition_model(model, options, Report()), options)
    if stage == "kernels":
        dump(stage, "", describe_program(program))
        return
    if stage == "fusion":
        require_schedules(options)
        dump(
            stage,
            "",
            print_fusions(program, nests_of(program, options), options.target),
        )
        return
    emit_kernels(list(program.kernels.values()), stage, options, dump)


def nests_of(program: Program, options: CompileOptions) -> dict[str, LoopNest]:
    """The kernels' loops as scheduled; none of those with a script of the user's."""
    chosen = {k.name: scheduled(k, options) for k in program.kernels.values()}
    return {
        name: schedule.apply(program.kernels[name].nest)
        for name, schedule in chosen.items()
        if not isinstance(schedule, str)
    }


def emit_kernels(
    kernels: Sequence[Kernel], stage: str, options: CompileOptions, dump: Dump
) -> None:
    """Give `dump` the text of some kernels at one of KERNEL_STAGES."""
    if stage == "schedule":
        require_schedules(options)
        for kernel in kernels:
            dump(stage, kernel.name, print_schedule(kernel, scheduled(kernel, options)))
        return
    with Batch[str](pool(), default_threads(), Report().add) as batch:
        for kernel in kernels:
            batch.ask(kernel.name, ShowKernel(job_of(kernel, options), stage))
        for name, text in batch.answers().items():
            dump(stage, name, text)


def emit_layers(model: Model, only: str, options: CompileOptions, dump: Dump) -> None:
    """Give `dump` every stage of the kernels of some layers.

    only: a layer's name, a kernel's, or a pattern of either.  Raises Error if there is
    no such layer.
    """
    program = with_shared_k(partition_model(model, options, Report()), options)
    kernels = kernels_of(program, only)
    for kernel in kernels:
        dump("kernels", kernel.name, kernel.text)
    for stage in KERNEL_STAGES:
        emit_kernels(kernels, stage, options, dump)
