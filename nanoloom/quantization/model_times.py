"""The report with sizes, and with times where they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx_ir as ir

import nanoloom
from nanoloom.cache import Cache
from nanoloom.inspect.timing import interleaved
from nanoloom.quantization.layer_times import Stopwatch
from nanoloom.quantization.report import QuantizationReport
from nanoloom.quantization.samples import Sample
from nanoloom.quantization.settings import Progress, Settings

REPETITIONS = 15


def timed(
    models: tuple[ir.Model, ir.Model, ir.Model],
    report: QuantizationReport,
    names: Mapping[str, str],
    sample: Sample | None,
    chosen: Settings,
    cache: Cache,
    progress: Progress,
) -> QuantizationReport:
    """models: as given, as its layers are quantized, and quantized.

    names: nodes of the second, and what they are in the third.
    """
    given, floats, quantized = models
    report = replace(
        report,
        threads=chosen.threads,
        float_bytes=weight_bytes(given),
        bytes=weight_bytes(quantized),
    )
    if sample is None or not chosen.times:
        return report
    with TemporaryDirectory(prefix="nanoloom-") as folder:
        watch = Stopwatch(sample, chosen.threads, cache, Path(folder))
        seconds = watch.times(floats, quantized, names, progress)
    progress("timing the models", 0, 0)
    runs = [running(model, sample, chosen, cache) for model in (given, quantized)]
    before, after = interleaved(runs, REPETITIONS)
    rows = [
        replace(x, float_seconds=seconds[x.node][0], seconds=seconds[x.node][1])
        if x.node in seconds
        else x
        for x in report.layers
    ]
    return replace(
        report,
        layers=tuple(rows),
        float_seconds=before.median,
        seconds=after.median,
    )


def running(
    model: ir.Model, sample: Sample, chosen: Settings, cache: Cache
) -> Callable[[], object]:
    """A model compiled for a sample's shapes."""
    program = nanoloom.compile(model, threads=chosen.threads, cache=cache)
    variant = program.variant(sample.arrays)
    return lambda: variant(sample.arrays)


def weight_bytes(model: ir.Model) -> int:
    """Of all arrays that a model holds."""
    found = (value.const_value for value in model.graph.initializers.values())
    return sum(tensor.nbytes for tensor in found if tensor is not None)
