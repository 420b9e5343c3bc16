"""What workers are asked for: a kernel's code or text, what is in a script or a file.

schedule -> vector -> llvm -> object, a kernel each
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypedDict

from nanoloom import mlir
from nanoloom.affine.counting import counts, counts_of_loops, detection_seconds
from nanoloom.affine.report import Loop, describe
from nanoloom.affine.stage import through_affine
from nanoloom.binary.frames import require_small
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.binary.objects import (
    DEFAULT_OPTIONS,
    CodeOptions,
    emit,
    emit_assembly,
    initialize,
)
from nanoloom.cache import key
from nanoloom.errors import Error
from nanoloom.llvm.stage import to_llvm
from nanoloom.notation.text import Text
from nanoloom.options import AS_IT_LIKES, Strategy, Unrolling
from nanoloom.schedule.given import naming_schedule
from nanoloom.target.facts import Target
from nanoloom.vector import transform_ops
from nanoloom.vector.stage import Vectorized, vectorize
from nanoloom.workers.messages import Stage

JOBS_OF_A_CONTEXT = 64  # it keeps the types and constants of all of them


@dataclass(frozen=True)
class MakeKernel:
    """vector -> llvm -> object for one kernel: the bytes of a CompiledKernel.

    text: the kernel on tensors.  script: its schedule.  given: whether that is the
    user's.  strategy, unrolling: of CompileOptions; only the default has a script.
    """

    name: str
    text: str
    script: str
    given: bool
    target: Target
    strategy: Strategy = "default"
    unrolling: Unrolling = AS_IT_LIKES

    def vectorize(self, module: mlir.ir.Module) -> Vectorized:
        """Lower the kernel, already parsed, by its schedule or through affine loops."""
        if self.strategy == "default":
            return vectorize(module, self.script, self.target)
        return through_affine(module, self.strategy, self.unrolling, self.target)

    @property
    def entry(self) -> str:
        """Of the cache that keeps what comes of it."""
        way = (self.strategy, self.unrolling)
        return key("kernel", self.name, self.text, self.script, self.target, way)

    @property
    def code(self) -> CodeOptions:
        """What LLVM does besides: it finds vectors in what is no nanokernel."""
        if self.strategy == "default":
            return DEFAULT_OPTIONS
        # Groups of registers are full of sums: pairs of numbers would need some more.
        pairs = self.strategy != "affine" or self.target.vector.grouped == 1
        return CodeOptions(vectorize_loops=True, vectorize_blocks=pairs)

    def run(self, stage: Stage) -> bytes:
        """Raises Error, naming the schedule, for a script that does not fit."""
        machine = machine_of(self.target)
        with context():
            module = mlir.ir.Module.parse(self.text)
            with naming_schedule(self.name, given=self.given):
                with stage("vector"):
                    applied = self.vectorize(module)
                with stage("llvm"):
                    llvm_ir = to_llvm(module, applied.phases, self.name)
        with stage("object"), naming_schedule(self.name, given=self.given):
            code = emit(llvm_ir, **machine, options=self.code)
            require_small(
                code,
                lambda: emit_assembly(llvm_ir, **machine, options=self.code),
                self.target.isa.frame,
                given=self.given,
            )
        return CompiledKernel(
            code,
            tuple(number for _, number in applied.phases),
            applied.packings,
            "x86_amx" in llvm_ir,
            applied.scratch_bytes,
            applied.arena_bytes,
        ).to_bytes()


@dataclass(frozen=True)
class ShowKernel:
    """A kernel at a stage (schedule, vector, llvm or asm), as text."""

    kernel: MakeKernel
    at: str

    @property
    def given(self) -> bool:
        """Whether the script is the user's."""
        return self.kernel.given

    def run(self, stage: Stage) -> str:
        """Raises what making the kernel raises."""
        del stage
        kernel, target = self.kernel, self.kernel.target
        with context():
            module = mlir.ir.Module.parse(kernel.text)
            if self.at == "schedule":
                return kernel.script + "\n" + str(module)
            with naming_schedule(kernel.name, given=kernel.given):
                made = kernel.vectorize(module)
                if self.at == "vector":
                    return str(module)
                text = to_llvm(module, made.phases, kernel.name)
        if self.at == "llvm":
            return text
        return emit_assembly(text, **machine_of(target), options=kernel.code)


@dataclass(frozen=True)
class ReadScript:
    """The names of the operations of a script that is read, not applied."""

    text: str

    def run(self, stage: Stage) -> list[str]:
        """Raises Error for what does not parse."""
        del stage
        with context():
            transform_ops.load_operations()
            try:
                module = mlir.ir.Module.parse(self.text)
            except mlir.ir.MLIRError as error:
                raise Error(f"is no MLIR: {' '.join(str(error).split())}") from None
            return [op.operation.name for op in module.body.operations]


@dataclass(frozen=True)
class FindReductions:
    """The loops of MLIR text and what each of them reduces."""

    text: Text

    def run(self, stage: Stage) -> tuple[Loop, ...]:
        """Raises ModelError for what does not parse."""
        del stage
        with context():
            return describe(self.text.parsed(), self.text.text)


@dataclass(frozen=True)
class CountReductions:
    """How many reductions a kernel's loops have, and how many MLIR itself finds.

    of_loops: of text that is affine loops already.
    """

    text: str
    of_loops: bool = False

    def run(self, stage: Stage) -> tuple[int, int]:
        """Raises what lowering the kernel raises."""
        del stage
        with context():
            module = mlir.ir.Module.parse(self.text)
            return counts_of_loops(module) if self.of_loops else counts(module)


@dataclass(frozen=True)
class TimeReductions:
    """Seconds that the reduction map of a kernel's loops takes."""

    text: str

    def run(self, stage: Stage) -> float:
        """Raises what lowering the kernel raises."""
        del stage
        with context():
            return detection_seconds(mlir.ir.Module.parse(self.text))


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


class Machine(TypedDict):
    """What the code generator must be told of a target."""

    triple: str
    cpu: str
    features: str
    abi: str
    code_model: str


def machine_of(target: Target) -> Machine:
    return {
        "triple": target.triple,
        "cpu": target.cpu,
        "features": target.features,
        "abi": target.abi,
        "code_model": target.code_model,
    }
