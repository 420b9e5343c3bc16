"""The work on a kernel, in whatever process: MLIR and LLVM are loaded here.

schedule -> vector -> llvm -> object, a kernel each
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from nanoloom.binary.kernel import CompiledKernel
from nanoloom.binary.objects import (
    DEFAULT_OPTIONS,
    CodeOptions,
    Machine,
    emit,
    emit_assembly,
    initialize,
)
from nanoloom.binary.stack_frames import require_small
from nanoloom.errors import Error
from nanoloom.ir import mlir
from nanoloom.llvm.stage import to_llvm
from nanoloom.schedule.user_schedules import naming_schedule
from nanoloom.target.facts import Target
from nanoloom.vector import transform_ops
from nanoloom.vector.stage import Vectorized, vectorize
from nanoloom.workers.jobs import MakeKernel
from nanoloom.workers.messages import Stage

JOBS_OF_A_CONTEXT = 64  # it keeps the types and constants of all of them


def made(kernel: MakeKernel, stage: Stage) -> bytes:
    """vector -> llvm -> object: the bytes of a CompiledKernel.

    Raises Error, naming the schedule, for a script that does not fit.
    """
    machine, options = machine_of(kernel.target), code_options(kernel)
    with context():
        module = mlir.ir.Module.parse(kernel.text)
        with naming_schedule(kernel.name, given=kernel.given):
            with stage("vector"):
                applied = vectorized(kernel, module)
            with stage("llvm"):
                llvm_ir = to_llvm(module, applied.phases, kernel.name)
    with stage("object"), naming_schedule(kernel.name, given=kernel.given):
        code = emit(llvm_ir, **machine, options=options)
        require_small(
            code,
            lambda: emit_assembly(llvm_ir, **machine, options=options),
            kernel.target.isa.frame,
            given=kernel.given,
        )
    return CompiledKernel(
        code,
        tuple(number for _, number in applied.phases),
        applied.packings,
        "x86_amx" in llvm_ir,
        applied.scratch_bytes,
        applied.arena_bytes,
    ).to_bytes()


def shown(kernel: MakeKernel, at: str) -> str:
    """A kernel at a stage (schedule, vector, llvm or asm), as text.

    Raises what making the kernel raises.
    """
    with context():
        module = mlir.ir.Module.parse(kernel.text)
        if at == "schedule":
            return kernel.script + "\n" + str(module)
        with naming_schedule(kernel.name, given=kernel.given):
            applied = vectorized(kernel, module)
            if at == "vector":
                return str(module)
            text = to_llvm(module, applied.phases, kernel.name)
    if at == "llvm":
        return text
    machine = machine_of(kernel.target)
    return emit_assembly(text, **machine, options=code_options(kernel))


def vectorized(kernel: MakeKernel, module: mlir.ir.Module) -> Vectorized:
    """Lower the kernel, already parsed, by its schedule or by its strategy."""
    if kernel.strategy is None:
        return vectorize(module, kernel.script, kernel.target, strict=kernel.given)
    return kernel.strategy.lower(module, kernel.target)


def code_options(kernel: MakeKernel) -> CodeOptions:
    """What LLVM does besides: it finds vectors in what is no nanokernel."""
    if kernel.strategy is None:
        return DEFAULT_OPTIONS
    return kernel.strategy.code_options(kernel.target)


def operations_of(script: str) -> list[str]:
    """The names of the operations of a script that is read, not applied.

    Raises Error for what does not parse.
    """
    with context():
        transform_ops.load_operations()
        try:
            module = mlir.ir.Module.parse(script)
        except mlir.ir.MLIRError as error:
            raise Error(f"is no MLIR: {' '.join(str(error).split())}") from None
        return [op.operation.name for op in module.body.operations]


class _Kept:
    """The MLIR context of this process's jobs: dialects take long to load."""

    contexts: tuple[mlir.ir.Context, ...] = ()
    jobs = 0


@contextmanager
def context() -> Generator[None]:
    """A context that is current inside the `with`, new for every JOBS_OF_A_CONTEXT."""
    if _Kept.jobs % JOBS_OF_A_CONTEXT == 0:
        with mlir.context() as made:
            _Kept.contexts = (made,)
    _Kept.jobs += 1
    (kept,) = _Kept.contexts
    with kept, mlir.ir.Location.unknown():
        yield


def warm_up() -> None:
    """What the first kernel would wait for."""
    initialize()
    with context():
        transform_ops.load_operations()


def machine_of(target: Target) -> Machine:
    return {
        "triple": target.triple,
        "cpu": target.cpu,
        "features": target.features,
        "abi": target.abi,
        "code_model": target.code_model,
    }
