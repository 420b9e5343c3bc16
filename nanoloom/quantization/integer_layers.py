"""Weights and activations of 8 bits: as many layers as the outputs allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import onnx_ir as ir

from nanoloom.cache import Cache
from nanoloom.errors import Unsupported
from nanoloom.frontend.onnx import load
from nanoloom.frontend.problems import Problem
from nanoloom.inspect.diagnostics import diagnosed
from nanoloom.inspect.references import save
from nanoloom.quantization.calibration import calibrated
from nanoloom.quantization.candidates import candidates
from nanoloom.quantization.computed_forms import Form, computed_forms
from nanoloom.quantization.integer_model import integer_model
from nanoloom.quantization.keep_float import Search, by_effect
from nanoloom.quantization.layer_errors import layer_errors
from nanoloom.quantization.model_times import timed
from nanoloom.quantization.output_errors import Right
from nanoloom.quantization.placement import placement
from nanoloom.quantization.prepare import prepared
from nanoloom.quantization.report import (
    FLOATS,
    INTEGERS,
    LayerReport,
    QuantizationReport,
)
from nanoloom.quantization.samples import Sample
from nanoloom.quantization.settings import Progress, Settings

EVALUATED = 32  # samples that outputs and layers are compared on
RANKED = 4  # samples that each layer is quantized alone on
BEYOND = "with it in integers the outputs would be beyond the limit"


def in_integers(
    floats: ir.Model,
    where: str,
    samples: Sequence[Sample],
    chosen: Settings,
    folder: Path,
    cache: Cache,
    progress: Progress,
) -> tuple[ir.Model, QuantizationReport]:
    """The quantized model, and its report."""
    model, path = prepared(floats, where, folder)
    layers, stay = candidates(model.graph, chosen.keep_float)
    if not layers:
        raise nothing_to_do(where, stay)
    places = placement(model.graph, layers)
    values = {*places.pairs, *map(places.source, places.pairs)}
    ranges = calibrated(path, [*values], samples, chosen.calibration, progress)
    some = samples[:EVALUATED]
    own = folder, chosen.threads
    errors = layer_errors(model, layers, ranges, some, *own, progress)
    right = Right(model, some, *own)
    order = [*layers]
    few = Right(model, samples[:RANKED], *own)

    def build(kept: Sequence[str]) -> ir.Model:
        return integer_model(model, kept, ranges)

    def ranks() -> list[str]:
        return by_effect(order, build, few.errors, progress)

    limit = chosen.limit
    found = Search(order, ranks, limit, build, right.errors, progress).best()
    why = {x.node: x.reason for x in stay} | {
        name: BEYOND for name in order if name not in found.layers
    }
    progress("asking the compiler", 0, 0)
    forms = computed_forms(load(save(found.model, folder)), some[0].arrays)
    placed = placement(model.graph, found.layers).computed
    report = partial(layer_report, forms=forms, errors=errors, why=why)
    rows = [report(node) for node in model.graph if node.name in {*placed, *why}]
    names = {row.node: row.node for row in rows if row.computed != FLOATS}
    facts = QuantizationReport(
        tuple(rows), found.errors, limit, len(samples), chosen.random
    )
    pair = floats, model, found.model
    return found.model, timed(pair, facts, names, samples[0], chosen, cache, progress)


def nothing_to_do(where: str, stay: Sequence[Problem]) -> Unsupported:
    """Why no layer of a model can be quantized."""
    kinds = [
        f"{kind.reason} ({kind.operator} {names[0]}"
        + (f" and {len(names) - 1} more)" if len(names) > 1 else ")")
        for kind, names in diagnosed(stay)
    ]
    told = "; ".join(kinds) or "there is no Conv, Gemm or MatMul"
    return Unsupported(
        f"has no layer that can be quantized: {told}",
        where=where,
        hint="it runs in floats as it is",
    )


def layer_report(
    node: ir.Node,
    forms: Mapping[str, Form],
    errors: Mapping[str, float],
    why: Mapping[str, str],
) -> LayerReport:
    """A layer's row: what the compiler makes of it; elementwise ones are in bytes."""
    name = node.name or ""
    if name in why:
        error = errors.get(name)
        return LayerReport(name, node.op_type, FLOATS, why[name], error)
    computed, reason = forms.get(name, (INTEGERS, ""))
    return LayerReport(name, node.op_type, computed, reason, errors.get(name))
