"""`quantize`: a model in floats and samples to a model in 8 bits, with a report.

prepare -> calibrate -> place -> compare layers -> leave the worst in floats -> time
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import onnx_ir as ir

from nanoloom.cache import Cache
from nanoloom.errors import InputError, public, some_of
from nanoloom.frontend.inputs import InputSpec, input_specs
from nanoloom.frontend.onnx import load
from nanoloom.quantization.calibration import Method
from nanoloom.quantization.integer_layers import in_integers
from nanoloom.quantization.prepare import require_floats, require_tools
from nanoloom.quantization.report import QuantizationReport
from nanoloom.quantization.samples import Sample, random_samples, samples_of
from nanoloom.quantization.settings import Progress, Settings
from nanoloom.quantization.weight_layers import in_blocks
from nanoloom.quantization.written_model import write
from nanoloom.runtime.threads import thread_count

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Quantized:
    """A quantized model, which `nanoloom.compile` takes, and what it is worth."""

    model: ir.Model
    report: QuantizationReport

    def save(self, path: str | Path) -> None:
        """Write an ONNX file, whole or not at all; raises Error if it cannot be.

        Weights of more than 1 GiB are written beside it, in a file PATH.data.
        """
        write(self.model, Path(path))


@public
def quantize(
    model: str | Path | bytes | onnx.ModelProto | ir.Model,
    samples: object = None,
    *,
    weights: int | None = None,
    block: int = 32,
    calibration: Method = "minmax",
    keep_float: Sequence[str] = (),
    max_error: float | None = None,
    random: int = 0,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    times: bool = False,
    threads: int | None = None,
    cache: str | Path | Cache | None = None,
    progress: Progress | None = None,
) -> Quantized:
    """Quantize a model (path, bytes, ModelProto, onnx_ir.Model) of float32.

    samples: a folder of .npy and .npz files; a sequence of dicts of arrays by input, or
    of arrays for a model of one input; or one array with a row a sample.  Shapes and
    element types are those of the model's inputs.
    weights: None for weights and activations of 8 bits (QuantizeLinear), 4 or 8 for
    weights alone (MatMulNBits), in blocks of `block` (16 to 256); samples may be left
    out then, and nothing is compared.
    calibration: "minmax", "entropy" or "percentile" (99.99 %).
    keep_float: names of nodes that stay in floats; more do, the worst first, until each
    output is within max_error, |got - right| / |right| over the samples; 0.1 without a
    number, and no limit for random samples.
    random: so many samples of made-up numbers instead (seed), with numbers for open
    dimensions (dims, 1 without): for speed only.
    times: True to time layers and models here (threads, cache as of `compile`).
    progress: called with what is done, how much of it, and of how much.
    Raises nanoloom.Error, in one sentence, for a model, samples or words that do not
    fit.
    """
    require_tools()
    said = weights, block, calibration, tuple(keep_float), max_error, times
    chosen = Settings(*said, thread_count(threads), random > 0)
    chosen.check()
    where = str(model) if isinstance(model, str | Path) else "model"
    floats = load(model, expands=False)
    require_floats(floats, where)
    require_nodes(floats, chosen, where)
    given = samples_for(floats, samples, random, seed, dims or {}, chosen)
    made = in_integers if weights is None else in_blocks
    with tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch:
        job = (floats, where, given, chosen, Path(scratch), Cache.of(cache))
        return Quantized(*made(*job, progress or silent))


def silent(what: str, done: int, total: int) -> None:
    del what, done, total


def require_nodes(model: ir.Model, chosen: Settings, where: str) -> None:
    """Raise InputError for a name in keep_float that no node has."""
    names = {node.name or "" for node in model.graph}
    for name in chosen.keep_float:
        if name not in names:
            reason = f"has no node {name}, which is to stay in floats"
            raise InputError(reason, where=where, hint=some_of(names, name))


def samples_for(
    model: ir.Model,
    samples: object,
    random: int,
    seed: int,
    dims: Mapping[str, int],
    chosen: Settings,
) -> list[Sample]:
    """Those given, or random ones; raises InputError if there are none to be had."""
    specs = input_specs(model)
    if samples is not None and random:
        raise InputError("are given twice: as data and as random", where="samples")
    if samples is not None:
        return samples_of(samples, specs)
    if random:
        return random_samples(random, sized(specs, dims), seed)
    if chosen.weights is not None:
        return []
    raise InputError(
        "there are no samples to calibrate with",
        hint="give a folder of .npy or .npz files, or random numbers, for speed only",
    )


def sized(specs: Sequence[InputSpec], dims: Mapping[str, int]) -> list[InputSpec]:
    """With numbers for open dimensions: those given, or 1."""
    from nanoloom.interface.dimension_values import check_known
    from nanoloom.interface.expressions import evaluate, names

    texts = [d for x in specs for d in x.shape if isinstance(d, str)]
    check_known(texts, dims)
    ones = {name: 1 for text in texts for name in names(text) or {text}}
    numbers = {**ones, **dims}
    return [
        InputSpec(
            x.name,
            tuple(
                d if isinstance(d, int) else evaluate(d, numbers) or 1 for d in x.shape
            ),
            x.dtype,
        )
        for x in specs
    ]
