"""Which operations work on scalable vectors today: each is tried, in another process.

MLIR or LLVM may end the process; that is an answer, too.  Upstream goes the way of
scalable_mlir.py; nanoloom its own: from a vector operation to LLVM, from an ONNX model
to assembly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from onnx import parser

from nanoloom.compiler import Report, job_of, partition_model
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir, llvm
from nanoloom.llvm.pipeline import TO_ADDRESSES, TO_LLVM
from nanoloom.llvm.vector_length import use_vector_lengths
from nanoloom.options import CompileOptions
from nanoloom.target import Target, by_name
from nanoloom.vector.transform_ops import load_operations
from nanoloom.workers.fork_server import ForkServer
from nanoloom.workers.jobs import ShowKernel
from nanoloom.workers.messages import Stage
from nanoloom.workers.process import Crashed, Worker
from nanoloom_papers.reproduce import scalable_mlir as upstream
from nanoloom_papers.reproduce.scalable_example import TARGETS
from nanoloom_papers.reproduce.scalable_operations import KERNELS, OPERATIONS
from nanoloom_papers.reproduce.scalable_tiles import tiled_and_vectorized

MLIR, NANOLOOM = "mlir", "nanoloom"
VECTORS, VECTORIZED = "operation", "vectorization"
Say = Callable[[str], None]
SCALABLE = "<vscale x "  # of LLVM's types


@dataclass(frozen=True)
class Attempt:
    """What came of one: on which machine, by whom; reason: why not, "" if it works.

    rfc: what the RFC's table says of it, "" where it says nothing.
    """

    kind: str
    name: str
    rfc: str
    by: str
    machine: str
    reason: str

    @property
    def works(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class Try:
    """A job: raises what goes wrong, and Error where no vector of any width is made."""

    kind: str
    name: str
    by: str
    machine: str

    def run(self, stage: Stage) -> None:
        del stage
        target = by_name(TARGETS[self.machine])
        texts = WAYS[self.kind, self.by](self.name, target)
        for text in texts:
            upstream.assembly(text, target)
        if not any(SCALABLE in text for text in texts):
            raise Error("its code has vectors of one width alone")


def operation(name: str, target: Target) -> list[str]:
    """A vector operation by the passes of MLIR's distribution."""
    with mlir.context():
        module = ir.Module.parse(text_of(name))
        upstream.lower(module)
        return [upstream.llvm_text(module, target)]


def own_operation(name: str, target: Target) -> list[str]:
    """A vector operation by nanoloom's passes behind its vector stage.

    Its buffers have sizes.
    """
    with mlir.context():
        module = ir.Module.parse(re.sub(r"(?<=[<x])\?x", "531x", text_of(name)))
        for passes in (TO_ADDRESSES, TO_LLVM):
            upstream.passed(module, passes)
        use_vector_lengths(module)
        upstream.require_llvm(module)
        return [llvm.translate_module_to_llvmir(module.operation)]


def vectorized(name: str, target: Target) -> list[str]:
    """A linalg operation by MLIR's vectorizer, with the sizes of its tiles."""
    (kernel,) = (x for x in KERNELS if x.name == name)
    with mlir.context():
        module = ir.Module.parse(kernel.text)
        load_operations()
        text = tiled_and_vectorized(
            kernel.match, kernel.tiles, contracts=kernel.contracts
        )
        upstream.transformed(module, text)
        upstream.passed(module, upstream.TO_BUFFERS)
        upstream.lower(module)
        return [upstream.llvm_text(module, target)]


def own_vectorized(name: str, target: Target) -> list[str]:
    """The same from ONNX by nanoloom: each of its kernels."""
    (kernel,) = (x for x in KERNELS if x.name == name)
    options = CompileOptions(target)
    program = partition_model(load(parser.parse_model(kernel.model)), options, Report())
    kernels = program.kernels.values()
    jobs = [ShowKernel(job_of(each, options), "llvm") for each in kernels]
    return [job.run(lambda _: nullcontext()) for job in jobs]


def text_of(name: str) -> str:
    (found,) = (x for x in OPERATIONS if x.name == name)
    return found.text


WAYS: dict[tuple[str, str], Callable[[str, Target], list[str]]] = {
    (VECTORS, MLIR): operation,
    (VECTORS, NANOLOOM): own_operation,
    (VECTORIZED, MLIR): vectorized,
    (VECTORIZED, NANOLOOM): own_vectorized,
}


def attempts(say: Say, names: Sequence[str] = ()) -> Iterator[Attempt]:
    """Everything is tried, or what is named alone."""
    rfc = {x.name: x.rfc for x in OPERATIONS}
    every = [(VECTORS, x.name) for x in OPERATIONS]
    every += [(VECTORIZED, x.name) for x in KERNELS]
    server = ForkServer()
    try:
        worker = Worker(server)
        for kind, name in every:
            if names and name not in names:
                continue
            say(f"trying {name}")
            for by in (MLIR, NANOLOOM):
                for machine in TARGETS:
                    reason, alive = asked(worker, Try(kind, name, by, machine))
                    if not alive:
                        worker.stop()
                        worker = Worker(server)
                    told = rfc.get(name, "")
                    yield Attempt(kind, name, told, by, machine, reason)
    finally:
        server.stop()


def asked(worker: Worker, job: Try) -> tuple[str, bool]:
    """Why it does not work, "" if it does; and whether the process is still there."""
    try:
        answer = worker.ask(job)
    except Crashed as crash:
        lines = [x for x in crash.said.splitlines() if "ERROR" in x or "Assert" in x]
        told = lines[0] if lines else "it said nothing"
        return f"the process ends with {crash.how}: {told}", False
    if answer.failure is None:
        return "", True
    error = answer.failure.exception()
    return upstream.first_words(str(error)) or type(error).__name__, True
