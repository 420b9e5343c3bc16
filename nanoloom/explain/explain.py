"""A model, its kernels and a measurement, as one report."""

from __future__ import annotations

from nanoloom import __version__
from nanoloom.errors import Error
from nanoloom.explain.compiled_model import (
    Arrays,
    CompiledModel,
    Shapes,
    Subject,
    compiled_model,
)
from nanoloom.explain.kernel_reports import Reporter, kernels_with
from nanoloom.explain.report import Explanation, Node
from nanoloom.explain.roof import Roof
from nanoloom.explain.timed_steps import timed
from nanoloom.kernels.printer import kernels_of
from nanoloom.kernels.program import Kernel
from nanoloom.model.model_facts import name_of
from nanoloom.target.peaks import Peaks, measure


def explain(
    subject: Subject,
    shapes: Shapes,
    arrays: Arrays,
    *,
    layer: str = "",
    runs: int | None = None,
    measured: bool = True,
) -> Explanation:
    """The report of a model for these shapes of its inputs.

    arrays: of the inputs.  layer: of these kernels only, by a layer's name, a kernel's,
    or a pattern of either.  runs: to time it, as `timed` has them.  measured: whether
    it is run, and this machine's roof is measured.  Raises what compiling raises, and
    Error for a layer that is not there.
    """
    model = compiled_model(subject, shapes, arrays)
    program = model.program
    kernels = kernels_of(program, layer) if layer else called(model)
    names = [kernel.name for kernel in kernels]
    found = None
    if measured:
        variant = model.binding.loaded(subject.threads)
        if len(variant.library.steps) != len([*model.steps()]):
            raise Error("its compiled program has other steps: clear the cache")
        found = timed(variant, arrays, runs)
    target, peaks = model.options.target, roof_of(subject) if measured else None
    weights = sum(each.nbytes for each in program.parameters)
    times = None if found is None else found.nanoseconds / 1e9
    reporter = Reporter(model, Roof(target, subject.threads, weights, peaks), times)
    nodes = [Node(*node, kernels_with(node[0], program)) for node in model.nodes]
    return Explanation(
        name_of(subject.source),
        str(target),
        model.options.precision,
        __version__,
        subject.threads,
        tuple(node for node in nodes if not layer or {*node.kernels} & {*names}),
        tuple(reporter.reports(names)),
        None if found is None else found.whole,
        0 if found is None else len(found.begins),
    )


def called(model: CompiledModel) -> list[Kernel]:
    """The kernels, in the order of their first calls."""
    names = dict.fromkeys(call.kernel for call in model.program.calls)
    return [model.program.kernels[name] for name in names]


def roof_of(subject: Subject) -> Peaks:
    """What this machine reaches, measured now."""
    return measure(subject.options.target, subject.threads)
