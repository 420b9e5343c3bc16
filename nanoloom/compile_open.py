"""The way of a model whose dimensions have no numbers yet: samples of it are joined.

Either its kernels take sizes (kernels/dynamic_program.py), or those of one row of a
batch run once for each row (kernels/batch_loop.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir

from nanoloom.binary.assemble import Compiled, assemble
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.cache import Cache
from nanoloom.compiler import (
    Model,
    Report,
    compile_kernels,
    compile_shared_k,
    partition_model,
    require_graph,
    with_equal_kernels,
)
from nanoloom.dynamic.batch_independence import batch_of, require_rows
from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others, with_dims
from nanoloom.dynamic.floor_division import plain
from nanoloom.dynamic.graph import open_values
from nanoloom.dynamic.polynomial import Dims, Size
from nanoloom.dynamic.sample_walk import Walked, Walks, forget_others
from nanoloom.dynamic.samples import Samples, are_of_images, proving
from nanoloom.dynamic.size_limits import narrowed
from nanoloom.errors import Error, InternalError
from nanoloom.graph.shared_decisions import SharedDecisions
from nanoloom.interface.bounds import Bounds
from nanoloom.kernels.batch_loop import batched_program
from nanoloom.kernels.dynamic_program import dynamic_program
from nanoloom.kernels.multiversion import multiversion, pixels_of, rows_of
from nanoloom.kernels.program import Program
from nanoloom.kernels.sample_agreement import require_same
from nanoloom.linalg.operators import OPERATORS
from nanoloom.options import CompileOptions


@dataclass(frozen=True)
class OpenModel:
    """How to bind it to numbers; samples of them stand for the others.

    bounds: of the dimensions by name.  inputs: their shapes as the model declares them.
    limits: sizes that may not be below 0, as it says itself.
    walked: what is known of it, of samples that did not do.
    """

    bound: Callable[[Dims], Model]
    samples: Samples
    bounds: Mapping[str, Bounds]
    inputs: Sequence[Sequence[int | str]]
    limits: tuple[Size, ...] = ()
    walked: Walked = field(default_factory=dict)

    def walks(self) -> Walks:
        forget_others(self.walked, self.samples)

        def bound(dims: Dims) -> onnx_ir.Model:
            return require_graph(self.bound(dims))

        return Walks(bound, OPERATORS.keys(), self.walked)


def compile_open(
    model: OpenModel, options: CompileOptions, cache: Cache, report: Report
) -> Compiled:
    """All stages, for all sizes of some dimensions.

    Raises Differs where there is no such program, Error as compile_model does.
    """
    walks = model.walks()
    try:
        program = sized(model, walks, options, report)
        program, kernels = compile_sized(program, options, cache, report)
        # Indices into nothing are told apart from others where they are looked at.
        return assemble(program, kernels, of_nothing=options.checked)
    except NotDynamic as reason:
        program = of_rows(model, walks, options, report, reason)
    return assemble(*compile_shared_k(program, options, cache, report))


def cut_open(model: OpenModel, options: CompileOptions, report: Report) -> Program:
    """The program that `compile_open` makes the code of, kernels and calls.

    Raises Differs where there is none, Error as compile_model does.
    """
    walks = model.walks()
    try:
        return sized(model, walks, options, report)
    except NotDynamic as reason:
        return of_rows(model, walks, options, report, reason)


def of_rows(
    model: OpenModel,
    walks: Walks,
    options: CompileOptions,
    report: Report,
    reason: NotDynamic,
) -> Program:
    """The program of one row of a batch.  reason: why there is none with sizes."""
    try:
        return batched(model, walks, options, report)
    except NotDynamic as other:
        said = str(other) in str(reason)  # also where it says nothing
        both = str(reason) if said else f"{reason}; {other}"
        why = NotDynamic(both, others=reason.others, wanted=reason.wanted)
        raise with_dims(why, plain(model.samples[0])) from reason


def sized(
    model: OpenModel, walks: Walks, options: CompileOptions, report: Report
) -> Program:
    """The program whose kernels take sizes.

    Raises Differs, with the dimensions that a number would help.
    """
    try:
        return sized_for(model, walks, options, report)
    except NotDynamic as reason:
        raise with_dims(reason, plain(model.samples[0])) from reason


def sized_for(
    model: OpenModel, walks: Walks, options: CompileOptions, report: Report
) -> Program:
    """The program of sizes; two in one for few pixels, or rows, and many."""
    with report.stage("sizes"):
        found = open_values(walks, model.samples)
    samples = proving(found.samples)

    def cut(alike: SharedDecisions) -> list[Program]:
        programs: list[Program] = []
        for dims in samples:
            bound = model.bound(dims)
            programs.append(partition_model(bound, options, report, found.kept, alike))
            require_same([programs[0], programs[-1]])  # before others are cut
        return programs

    def joined(programs: Sequence[Program], words: Sequence[Size]) -> Program:
        with report.stage("sizes"):
            return dynamic_program(programs, samples, words, model.bounds)

    images = are_of_images(found.samples)
    alike = SharedDecisions(
        images, fixed=found.fixed, unfit=found.unfit, resized=found.resized
    )
    programs = cut(alike)
    many = joined(programs, (*model.limits, *found.limits))
    pixels = alike.for_few_pixels()
    few, count = (pixels, pixels_of) if pixels else (alike.for_small_batch(), rows_of)
    points = count(programs, samples)
    if few is None or points is None or many.sizes is None or many.checks:
        return many
    always = points.are_few(model.bounds)
    if always is False:
        return many
    made = joined(cut(few), (*many.sizes.words, points.count))
    if made.kernels.keys() == many.kernels.keys():
        return many
    return made if always else multiversion(made, many, points)


def compile_sized(
    program: Program, options: CompileOptions, cache: Cache, report: Report
) -> tuple[Program, dict[str, CompiledKernel]]:
    """A program of sizes and its kernels, fewer ones where some are equal."""
    try:
        with report.stage("schedule"):
            program = with_equal_kernels(program, options)
        return program, compile_kernels(program, options, cache, report)
    except InternalError:
        raise
    except Error as error:  # a kernel that is compiled for known sizes only
        raise NotDynamic(str(error), others=Others.ANY) from error


def batched(
    model: OpenModel, walks: Walks, options: CompileOptions, report: Report
) -> Program:
    """The program of one row of a batch, which runs once for each row."""
    batch = batch_of(model.inputs, list(model.samples[0]))
    if options.caches or options.in_place:
        raise NotDynamic("a row of what is kept is none of a batch")
    with report.stage("sizes"):
        row = require_graph(model.bound({batch: 1}))
        require_rows(walks, batch, [x.name for x in row.graph.outputs])
    one = partition_model(row, options, report)
    rows = [batch in shape[:1] for shape in model.inputs]
    bounds = narrowed(model.bounds.get(batch, Bounds(0)), batch, model.limits)
    if bounds is None:
        raise NotDynamic("what it asks of other sizes is nothing of a row")
    caches = options.target.leader.caches
    return batched_program(one, batch, rows, bounds, caches)
