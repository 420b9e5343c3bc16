"""The way of a model, in order: read this file from the top and you know the compiler.

    graph -> linalg -> kernels -> (schedule -> vector -> llvm -> object, a kernel each)

A stage is named for what leaves it; so are its folder, the word after `--emit` and the
files of a dump.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypedDict

import onnx_ir

from nanoloom import mlir
from nanoloom.binary.assemble import Compiled, assemble
from nanoloom.binary.frames import require_small
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.binary.objects import emit, emit_assembly
from nanoloom.cache import Cache, key
from nanoloom.errors import Error, noting
from nanoloom.forks import waiting
from nanoloom.graph.stage import optimize
from nanoloom.kernels.contraction import is_product
from nanoloom.kernels.program import Kernel, Program
from nanoloom.kernels.stage import cut, describe_program
from nanoloom.linalg.function import Entry
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.precision import to_bf16
from nanoloom.linalg.stage import LinalgModule, lower
from nanoloom.linalg.widening import widen
from nanoloom.llvm.stage import to_llvm
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.emit import script
from nanoloom.schedule.given import given_script, naming_schedule
from nanoloom.schedule.library.family import multiplies
from nanoloom.target.facts import Target
from nanoloom.vector.stage import vectorize

MODEL_STAGES = ("graph", "linalg", "kernels")  # the whole model at once
KERNEL_STAGES = ("schedule", "vector", "llvm", "asm")  # each kernel alone
WORKERS = 2  # kernels at once: LLVM runs without Python's lock
MLIR = threading.Lock()  # dialects written in Python keep state outside the context
Dump = Callable[[str, str, str], None]  # stage, name, text
Model: TypeAlias = onnx_ir.Model | Entry


@dataclass
class Report:
    """Seconds of each stage, added up over kernels; `--time-report` prints it."""

    seconds: dict[str, float] = field(default_factory=dict)
    kernels: int = 0
    cached: int = 0
    progress: Callable[[str, int, int], None] | None = None

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        started = time.perf_counter()
        with noting(f"stage {name}"):
            yield
        passed = time.perf_counter() - started
        self.seconds[name] = self.seconds.get(name, 0.0) + passed


def compile_model(
    model: Model, options: CompileOptions, cache: Cache, report: Report
) -> Compiled:
    """All stages, for a model with static shapes (changed in place).

    Raises nanoloom.errors.Error, in one sentence, for whatever the model is to blame.
    """
    program = cut_model(model, options, report)
    compiled = compile_kernels(program, options, cache, report)
    return assemble(program, compiled)


def cut_model(model: Model, options: CompileOptions, report: Report) -> Program:
    """The model as kernels and their calls."""
    with mlir.context():
        linalg = lowered(model, options, report)
        with report.stage("kernels"):
            return cut(linalg)


def lowered(model: Model, options: CompileOptions, report: Report) -> LinalgModule:
    """The model as linalg; an MLIR context must be current.

    What is no graph enters here.
    """
    if not isinstance(model, onnx_ir.Model):
        with report.stage("linalg"):
            return with_precision(model.lower(), options)
    with report.stage("graph"):
        graph = optimize(model, OPERATORS.keys())
    with report.stage("linalg"):
        return with_precision(lower(graph, checked=options.checked), options)


def emit_stage(model: Model, stage: str, options: CompileOptions, dump: Dump) -> None:
    """Give `dump` the text of one stage: of the model, or of every kernel."""
    if stage == "graph":
        graph = optimize(require_graph(model), OPERATORS.keys())
        dump(stage, "", onnx_ir.to_onnx_text(graph, exclude_initializers=True))
        return
    if stage == "linalg":
        with mlir.context():
            dump(stage, "", str(lowered(model, options, Report()).module))
        return
    program = cut_model(model, options, Report())
    if stage == "kernels":
        dump(stage, "", describe_program(program))
        return
    for kernel in program.kernels.values():
        dump(stage, kernel.name, kernel_text(kernel, stage, options))


def require_graph(model: Model) -> onnx_ir.Model:
    """The ONNX model; raises Error for what enters at linalg."""
    if not isinstance(model, onnx_ir.Model):
        raise Error("it has no graph: linalg is its first stage")
    return model


def with_precision(lowered: LinalgModule, options: CompileOptions) -> LinalgModule:
    """The module with its products in the precision that was asked for.

    Multiplied in f32 where the target has nothing better: the numbers are the same.
    """
    if options.precision == "bf16":
        lowered = to_bf16(lowered, is_product)
    return widen(lowered, is_product, lambda kind: multiplies(options.target, kind))


def kernel_text(kernel: Kernel, stage: str, options: CompileOptions) -> str:
    """One kernel at one of KERNEL_STAGES, as text."""
    target = options.target
    with mlir.context():
        module = mlir.ir.Module.parse(kernel.text)
        steps = chosen_script(kernel, options)
        if stage == "schedule":
            return steps + "\n" + str(module)
        with naming_schedule(kernel, options):
            made = vectorize(module, steps, target)
            if stage == "vector":
                return str(module)
            text = to_llvm(module, made.phases, kernel.name)
    if stage == "llvm":
        return text
    return emit_assembly(text, **machine(target))


# ---- kernels


def compile_kernels(
    program: Program, options: CompileOptions, cache: Cache, report: Report
) -> dict[str, CompiledKernel]:
    """Every kernel's object, from the cache where an equal one was made before."""
    report.kernels = len(program.kernels)
    done = 0

    def one(kernel: Kernel) -> CompiledKernel:
        nonlocal done
        with noting(f"kernel {kernel.name}"):
            made = compile_kernel(kernel, options, cache, report)
        done += 1
        if report.progress is not None:
            report.progress("kernels", done, report.kernels)
        return made

    with ThreadPoolExecutor(WORKERS) as pool:
        objects = pool.map(one, program.kernels.values())
        return dict(zip(program.kernels, objects, strict=True))


def compile_kernel(
    kernel: Kernel, options: CompileOptions, cache: Cache, report: Report
) -> CompiledKernel:
    """schedule -> vector -> llvm -> object for one kernel."""
    with report.stage("schedule"):
        steps = chosen_script(kernel, options)
    name = key("kernel", kernel.name, kernel.text, steps, options.target)
    found = cache.get(name)
    if found is not None:
        report.cached += 1
        return CompiledKernel.from_bytes(found)
    with waiting(), MLIR, mlir.context():  # else a child might have the lock for ever
        module = mlir.ir.Module.parse(kernel.text)
        with naming_schedule(kernel, options):
            with report.stage("vector"):
                applied = vectorize(module, steps, options.target)
            with report.stage("llvm"):
                llvm_ir = to_llvm(module, applied.phases, kernel.name)
    with report.stage("object"):
        code = emit(llvm_ir, **machine(options.target))
        require_small(code, lambda: emit_assembly(llvm_ir, **machine(options.target)))
    tiles = "x86_amx" in llvm_ir
    tasks = tuple(number for _, number in applied.phases)
    scratch = applied.scratch_bytes
    made = CompiledKernel(code, tasks, applied.packings, tiles, scratch)
    cache.put(name, made.to_bytes())
    return made


def chosen_script(kernel: Kernel, options: CompileOptions) -> str:
    """The kernel's Transform script: the user's, if one fits its name."""
    given = given_script(kernel, options)
    return script(choose(kernel.nest, options.target)) if given is None else given


class Machine(TypedDict):
    """What the code generator must be told of a target."""

    triple: str
    cpu: str
    features: str
    abi: str
    code_model: str


def machine(target: Target) -> Machine:
    return {
        "triple": target.triple,
        "cpu": target.cpu,
        "features": target.features,
        "abi": target.abi,
        "code_model": target.code_model,
    }
