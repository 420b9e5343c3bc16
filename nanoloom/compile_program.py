"""`compile`: from whatever a model is given as to a program that can be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

from nanoloom.api.list_program import ListProgram
from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.errors import DataDependent, InputError, public
from nanoloom.frontend.torch.given import is_exported, is_module
from nanoloom.garbage import seldom_collected
from nanoloom.model.source import source_of
from nanoloom.options import CompileOptions, Precision, options_with
from nanoloom.runtime.threads import thread_count

if TYPE_CHECKING:
    from nanoloom.report import Report
    from nanoloom.torch.torch_program import TorchProgram


class Exported(Protocol):
    """An ExportedProgram of torch, told without torch."""

    @property
    def graph_signature(self) -> Any: ...


@overload
def compile(
    model: Exported, example_inputs: None = None, **options: Any
) -> TorchProgram: ...
@overload
def compile(
    model: object, example_inputs: Sequence[Any] | Mapping[str, Any], **options: Any
) -> TorchProgram: ...
@overload
def compile(
    model: object,
    example_inputs: None = None,
    *,
    threads: int | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    precision: Precision | None = None,
    checked: bool | None = None,
    exact_conv: bool | None = None,
    in_place: Mapping[str, str] | None = None,
    options: CompileOptions | None = None,
    cache: str | Path | Cache | None = None,
    report: Report | None = None,
) -> Program: ...
@public
def compile(
    model: object,
    example_inputs: Any = None,
    *,
    dynamic_shapes: Any = None,
    via: str = "graph",
    release_weights: bool = False,
    threads: int | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    precision: Precision | None = None,
    checked: bool | None = None,
    exact_conv: bool | None = None,
    in_place: Mapping[str, str] | None = None,
    options: CompileOptions | None = None,
    cache: str | Path | Cache | None = None,
    report: Report | None = None,
) -> Program | TorchProgram:
    """Compile a model (path, bytes, ModelProto, onnx_ir.Model) or a computation.

    A computation is what `nanoloom.computation` gives, a file .mlir, or MLIR text.
    A module of PyTorch takes example_inputs (a tuple of arguments, or a dict by name)
    and dynamic_shapes, as torch.export does; an ExportedProgram has them already.  Both
    give a TorchProgram, which is called as the module is (docs/from-pytorch.md).
    via: "graph", or "onnx" for torch's own exporter.  release_weights: the module's
    weights are the program's alone from then on, and the module has empty ones.

    threads: 1 to 1024; default: NANOLOOM_THREADS, or what affinity, cgroup
    quota and OMP_NUM_THREADS allow.
    dims: numbers for named dimensions, or pairs of bounds (least, most); those left
    open are sizes that each call brings.
    precision: "f32" (default) or "bf16", of the products of f32 operands.
    checked: False for code that clamps an index out of range and does not report it.
    exact_conv: True for convolutions by sums of products only (docs/convolutions.md).
    in_place: of inputs, outputs in their memory, if a call says so (docs/decoding.md).
    options: all that decides about the code; the four above are among them.
    cache: the folder of compiled code, in place of the default one (docs/cache.md).
    Raises nanoloom.Error, in one sentence, if the model cannot be compiled.
    """
    said = {"precision": precision, "checked": checked, "exact_conv": exact_conv}
    said |= {"in_place": tuple(in_place.items()) if in_place else None}
    store = Cache.of(cache)
    how = store, thread_count(threads), dims or {}
    build = partial(built, options_with(options, said, store), *how, report=report)
    if is_module(model) or is_exported(model):
        from nanoloom.torch.compile_module import compile_module

        given = model, example_inputs, dynamic_shapes, via, build
        return compile_module(*given, release_weights=release_weights)
    require_plain(model, example_inputs, dynamic_shapes, via, release_weights)
    return build(model)


def require_plain(
    model: object, inputs: object, shapes: object, via: str, release: object
) -> None:
    """InputError for arguments that say something of a module alone."""
    kind = type(model).__name__
    if inputs is not None or shapes is not None or via != "graph":
        reason = "example_inputs, dynamic_shapes and via are for a module of PyTorch"
        raise InputError(f"{reason}, and this is a {kind}")
    if release:
        reason = "release_weights is for a module of PyTorch"
        raise InputError(f"{reason}, and this is a {kind}")


@seldom_collected()
def built(
    options: CompileOptions,
    cache: Cache,
    threads: int,
    dims: Mapping[str, int | tuple[int, int]],
    model: object,
    in_place: tuple[tuple[str, str], ...] = (),
    report: Report | None = None,
) -> Program:
    """The program of a model, compiled now if it has one variant, for this machine.

    in_place: inputs, and outputs that lie in their memory.
    """
    options = replace(options, in_place=in_place or options.in_place)
    source = source_of(model, cache)
    takes_lists = any(x.holds for x in source.interface(cache)[0])
    kind = ListProgram if takes_lists else Program
    program = kind(
        source, options, threads=threads, dims=dims, cache=cache, report=report
    )
    if program.is_for_this_machine() and not takes_lists:  # else when it is saved
        prepare(program)
    return program


def prepare(program: Program) -> None:
    """Compile the only variant now, if there is but one: no shape is left open."""
    if any(name not in program.dims for name in program.symbols):
        return
    try:
        program.variant_of(program.static_shapes(), {})
    except DataDependent:
        if not program.inputs:
            raise
