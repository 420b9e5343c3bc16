"""LLVM IR text to machine code, for every target, through llvmlite.

Threads may emit at the same time.  Every call works in an LLVM context of its own, and
the two long calls go to the library past the lock that llvmlite holds around each call
(LLVM itself asks only that no two threads share a context).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NotRequired, TypedDict, Unpack

import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.utils import get_library_name

from nanoloom.errors import Error
from nanoloom.fork_lock import wait_for_compiler
from nanoloom.llvm.float_literals import to_llvm22
from nanoloom.llvm.scalar_stores import UnclearMask, scalar_stores


@dataclass(frozen=True)
class CodeOptions:
    """What LLVM does on its own: nanoloom's kernels come to it vectorized.

    `level` is that of the code generator and of LLVM's pipeline.  `passes` are names of
    llvmlite's (`loop_rotate` is add_loop_rotate_pass) to run instead of that pipeline;
    the three switches are the pipeline's.
    """

    level: int = 3
    vectorize_loops: bool = False
    vectorize_blocks: bool = False  # SLP
    unroll: bool = True
    passes: tuple[str, ...] = ()


DEFAULT_OPTIONS = CodeOptions()


class Machine(TypedDict):
    """What the code generator must be told of a target."""

    triple: str
    cpu: str
    features: NotRequired[str]
    abi: NotRequired[str]
    code_model: NotRequired[str]


def emit(
    llvm_ir: str, *, options: CodeOptions = DEFAULT_OPTIONS, **machine: Unpack[Machine]
) -> bytes:
    """A relocatable, position-independent object of a module in LLVM 24's text.

    Raises:
        Error: LLVM knows no such target.
        RuntimeError: the text is no valid module; a bug of nanoloom's.
    """
    return _emit(llvm_ir, machine, options, is_object=True)


def emit_assembly(
    llvm_ir: str, *, options: CodeOptions = DEFAULT_OPTIONS, **machine: Unpack[Machine]
) -> str:
    """The assembly text of what `emit` makes; raises the same."""
    return _emit(llvm_ir, machine, options, is_object=False).decode()


def _machine(
    level: int,
    triple: str,
    cpu: str,
    features: str = "",
    abi: str = "",
    code_model: str = "default",
) -> llvm.TargetMachine:
    initialize()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        reason = f"LLVM has no target {triple!r}: {error}"
        raise Error(reason, stage="binary") from error
    return target.create_target_machine(
        cpu=cpu,
        features=features,
        opt=level,
        reloc="pic",
        codemodel=code_model,
        abiname=abi,
    )


def _emit(
    llvm_ir: str, given: Machine, options: CodeOptions, *, is_object: bool
) -> bytes:
    with wait_for_compiler():
        machine = _machine(options.level, **given)
        with (
            llvm.create_context() as context,
            llvm.parse_assembly(to_llvm22(llvm_ir), context) as module,
        ):
            module.triple = given["triple"]
            module.data_layout = str(machine.target_data)
            module.verify()
            _optimize(module, machine, options)
            text = _mended(module, machine)
            if text is None:
                return _generate(module, machine, is_object)
            with llvm.parse_assembly(text, context) as mended:
                mended.verify()
                return _generate(mended, machine, is_object)


def _mended(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> str | None:
    """The module's text without what the code generator gets wrong; None if it is."""
    if not any(f.name.startswith("llvm.masked.store.") for f in module.functions):
        return None
    text = str(module)
    try:
        mended = scalar_stores(text)
    except UnclearMask:  # the optimizer's last passes fold little
        _optimize(module, machine, CodeOptions(passes=("instruction_combine",)))
        mended = scalar_stores(str(module))
    return None if mended is text else mended


def _optimize(
    module: llvm.ModuleRef, machine: llvm.TargetMachine, options: CodeOptions
) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=options.level)
    tuning.loop_vectorization = options.vectorize_loops
    tuning.slp_vectorization = options.vectorize_blocks
    tuning.loop_unrolling = options.unroll
    builder = llvm.create_pass_builder(machine, tuning)
    if options.passes:
        passes = llvm.create_new_module_pass_manager()
        for name in options.passes:
            getattr(passes, f"add_{name}_pass")()
    else:
        passes = builder.getModulePassManager()
    _unlocked().run(passes, module, builder)


def _generate(
    module: llvm.ModuleRef, machine: llvm.TargetMachine, is_object: bool
) -> bytes:
    with ffi.OutputString() as message:
        buffer = _unlocked().generate(machine, module, int(is_object), message)
        if not buffer:
            raise RuntimeError(str(message))
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


class _Unlocked:
    """The two calls that take long, straight from the library that llvmlite loaded."""

    def __init__(self) -> None:
        folder = Path(llvm.__file__).parent
        library = ctypes.CDLL(str(folder / get_library_name()))
        self.run = library.LLVMPY_RunNewModulePassManager
        self.run.argtypes = ffi.lib.LLVMPY_RunNewModulePassManager.argtypes
        self.run.restype = None
        self.generate = library.LLVMPY_TargetMachineEmitToMemory
        self.generate.argtypes = ffi.lib.LLVMPY_TargetMachineEmitToMemory.argtypes
        self.generate.restype = ffi.LLVMMemoryBufferRef


@cache
def _unlocked() -> _Unlocked:
    return _Unlocked()


@cache
def initialize() -> None:
    """Make every target known to LLVM; once a process."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
