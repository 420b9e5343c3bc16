"""Kernels from a few lines: built, cut, scheduled, compiled and run in this process.

    y = run(lambda b, x: b.elementwise(lambda s: s + s, x), array)

The way is the compiler's own, without files and without the thread pool: every phase
runs here, its tasks in any order and grouping, on arrays with nothing behind them.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from nanoloom import compiler
from nanoloom.binary.table import Buffer
from nanoloom.cache import Cache
from nanoloom.interface.tensor import Space
from nanoloom.ir import mlir
from nanoloom.kernels.program import Program
from nanoloom.kernels.stage import partition
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.function import function
from nanoloom.linalg.stage import LinalgModule, Spec
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Schedule
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from nanoloom.workers.jobs import ShowKernel
from nanoloom.workers.pool import Pool, in_process
from tests.guarded import Guarded, Side
from tests.native_code import call, require_defined

Array = np.ndarray
ANY_CPU = by_name("x86-64-v2")  # kernels that are cut for it run on others, too
Make = Callable[..., Any]  # (builder, tensors...) -> a tensor or several
Order = Callable[[int], list[tuple[int, int]]]  # tasks -> ranges in order
Shaped = Array | tuple[tuple[int, ...], str]


@cache
def targets() -> tuple[Target, ...]:
    """This CPU, and where it has AVX2 the same with narrower and fewer registers."""
    here = host()
    return (here, by_name("x86-64-v3")) if here.has("avx2", "fma") else (here,)


@cache
def shared_cache() -> Cache:
    """One of this process: equal kernels of different tests are compiled once."""
    return Cache.temporary()


# ---- building ------------------------------------------------------------------------


def build(make: Make, *inputs: Shaped) -> LinalgModule:
    """@main of what `make` builds; inputs are arrays or (shape, type) pairs.

    An MLIR context must be current.  Constants that `make` uses become parameters.
    """
    kinds = [
        (x.shape, x.dtype) if isinstance(x, np.ndarray) else (x[0], np.dtype(x[1]))
        for x in inputs
    ]
    specs = [Spec(f"x{i}", shape, dtype) for i, (shape, dtype) in enumerate(kinds)]

    def results(builder: Builder, given: list[Tensor]) -> dict[str, Tensor]:
        made = make(builder, *given)
        every = [made] if isinstance(made, Tensor) else list(made)
        return {f"y{i}": tensor for i, tensor in enumerate(every)}

    return function(specs, results)


def program_of(make: Make, *inputs: Shaped, target: Target | None = None) -> Program:
    """The kernels and calls of what `make` builds; target: what it is cut for."""
    with mlir.context():
        return cut(build(make, *inputs), target)


def cut(lowered: LinalgModule, target: Target | None = None) -> Program:
    """The kernels of a module; without a target those that ANY_CPU would have, with
    each tensor as it lies."""
    if target is not None:
        return partition(lowered, target)
    return partition(lowered, ANY_CPU, "last")


def stage_text(
    program: Program,
    stage: str,
    target: Target,
    number: int = 0,
    script: Schedule | str = "",
) -> str:
    """One kernel of a program at one of the compiler's stages."""
    kernel = list(program.kernels.values())[number]
    job = compiler.job_of(kernel, options_for(target, script))
    return ShowKernel(job, stage).run(nullcontext)


def options_for(target: Target, script: Schedule | str = "") -> CompileOptions:
    """The options; script: a schedule for every kernel."""
    return CompileOptions(target, schedules=(("*", script),) if script else ())


# ---- running -------------------------------------------------------------------------


def at_once(tasks: int) -> list[tuple[int, int]]:
    return [(0, tasks)]


def backwards(tasks: int) -> list[tuple[int, int]]:
    """One task at a time, the last one first."""
    return [(i, i + 1) for i in reversed(range(tasks))]


@dataclass
class Executable:
    """A program's kernels, loaded; call it with the inputs' arrays."""

    made: compiler.Compiled
    engine: Any = field(init=False)

    def __post_init__(self) -> None:
        self.engine = load_objects(self.made.objects)

    def __call__(
        self, *inputs: Array, order: Order = at_once, side: Side = Side.END
    ) -> list[Array]:
        """The outputs; fails if a kernel writes what it must not.

        side: where the arrays touch pages that end the process.
        """
        table = self.made.table
        arena, bytes_ = table.arena_bytes, np.dtype(np.uint8)
        outputs = [(x.shape, x.element.dtype) for x in table.outputs]
        memory = {
            Space.ARENA: [Guarded((arena,), bytes_, side)],
            Space.PARAMETERS: [Guarded.of(self._parameters(), side)],
            Space.INPUT: [Guarded.of(np.asarray(x), side) for x in inputs],
            Space.OUTPUT: [Guarded(*output, side) for output in outputs],
        }
        before = [g.array.copy() for g in memory[Space.INPUT]]
        for step in table.steps:
            address = self.engine.get_function_address(step.kernel)
            scratch = Guarded((step.scratch_bytes,), np.dtype(np.uint8))
            pointers = (ctypes.c_void_p * len(step.buffers))(
                *(_address(memory, buffer) for buffer in step.buffers)
            )
            for begin, end in order(step.tasks):
                own = ctypes.addressof(pointers)
                call(address, own, begin, end, scratch.address)
            assert scratch.is_rest_intact(), "a kernel wrote around its scratch memory"
        for guarded in itertools.chain(*memory.values()):
            assert guarded.is_rest_intact(), "a kernel wrote beside its array"
        for guarded, array in zip(memory[Space.INPUT], before, strict=True):
            assert guarded.array.tobytes() == array.tobytes(), "an input was written"
        return [guarded.array.copy() for guarded in memory[Space.OUTPUT]]

    def _parameters(self) -> Array:
        folder = shared_cache().root
        folder.mkdir(parents=True, exist_ok=True)
        file = Path(folder) / f"parameters-{id(self)}"
        self.made.parameters.write(file)
        data = np.fromfile(file, np.uint8)
        file.unlink()
        return data


IN_PROCESS = Pool(in_process)  # where tests put stand-ins for parts of the compiler


def executable(
    program: Program, target: Target, script: Schedule | str = ""
) -> Executable:
    """Compile a program's kernels for a target that runs here."""
    options, report = options_for(target, script), compiler.Report()
    compiled = compiler.compile_kernels(
        program, options, shared_cache(), report, IN_PROCESS
    )
    return Executable(compiler.assemble(program, compiled))


def run(
    make: Make,
    *inputs: Array,
    target: Target | None = None,
    order: Order = at_once,
    script: Schedule | str = "",
) -> Any:
    """What the compiled kernels give: one array, or a list of several."""
    program = program_of(make, *inputs)
    made = executable(program, target or host(), script)(*inputs, order=order)
    return made[0] if len(made) == 1 else made


def _address(memory: dict[Space, list[Guarded]], buffer: Buffer) -> int:
    return memory[buffer.space][buffer.index].address + buffer.offset


def load_objects(objects: Sequence[bytes]) -> Any:
    """Objects in this process, without a linker."""
    require_defined(objects)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for code in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
