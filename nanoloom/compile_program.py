"""`compile`: from whatever a model is given as to a program that can be called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cache import Cache
from nanoloom.errors import DataDependent, public
from nanoloom.options import CompileOptions, Precision, options_with
from nanoloom.program import Program
from nanoloom.runtime.threads import thread_count
from nanoloom.source import source_of

if TYPE_CHECKING:
    from nanoloom.report import Report


@public
def compile(
    model: object,
    *,
    threads: int | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    precision: Precision | None = None,
    checked: bool | None = None,
    exact_conv: bool | None = None,
    options: CompileOptions | None = None,
    cache: str | Path | Cache | None = None,
    report: Report | None = None,
) -> Program:
    """Compile a model (path, bytes, ModelProto, onnx_ir.Model) or a computation.

    A computation is what `nanoloom.computation` gives, a file .mlir, or MLIR text.

    threads: 1 to 1024; default: NANOLOOM_THREADS, or what affinity, cgroup
    quota and OMP_NUM_THREADS allow.
    dims: numbers for named dimensions, or pairs of bounds (least, most); those left
    open are sizes that each call brings.
    precision: "f32" (default) or "bf16", of the products of f32 operands.
    checked: False for code that clamps an index out of range and does not report it.
    exact_conv: True for convolutions by sums of products only, not by Winograd's method
    (the default where that is faster; docs/convolutions.md has the error bound).
    options: all that decides about the code; the three above are among them.
    cache: the folder where compiled code is kept; default: NANOLOOM_CACHE, or the
    user's (docs/cache.md).
    Raises nanoloom.Error, in one sentence, if the model cannot be compiled.
    """
    said = {"precision": precision, "checked": checked, "exact_conv": exact_conv}
    wanted = thread_count(threads)
    store = Cache.of(cache)
    program = Program(
        source_of(model, store),
        options_with(options, said, store),
        threads=wanted,
        dims=dims or {},
        cache=store,
        report=report,
    )
    if program.is_for_this_machine():  # else when it is saved
        prepare(program)
    return program


def prepare(program: Program) -> None:
    """Compile the only variant now, if there is but one: no shape is left open."""
    if any(text not in program.dims for text in program.texts):
        return
    try:
        program.variant_of(program.static_shapes(), {})
    except DataDependent:
        if not program.inputs:
            raise
