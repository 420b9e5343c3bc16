"""Weights alone of 4 or 8 bits: as many as the outputs allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir

from nanoloom.cache import Cache
from nanoloom.quantization.integer_layers import (
    BEYOND,
    EVALUATED,
    nothing_to_do,
)
from nanoloom.quantization.keep_float import Search, Trial
from nanoloom.quantization.layer_errors import measured
from nanoloom.quantization.model_times import timed
from nanoloom.quantization.output_errors import Right
from nanoloom.quantization.report import (
    FLOATS,
    WEIGHTS,
    LayerReport,
    QuantizationReport,
)
from nanoloom.quantization.samples import Sample
from nanoloom.quantization.settings import Progress, Settings
from nanoloom.quantization.weight_only import (
    both_weights,
    weight_candidates,
    weight_only_model,
    with_products,
)


def in_blocks(
    floats: ir.Model,
    where: str,
    samples: Sequence[Sample],
    chosen: Settings,
    folder: Path,
    cache: Cache,
    progress: Progress,
) -> tuple[ir.Model, QuantizationReport]:
    """The quantized model, and its report."""
    model = with_products(floats)
    layers, stay = weight_candidates(model.graph, chosen.keep_float)
    if not layers:
        raise nothing_to_do(where, stay)
    progress("quantizing weights", 0, 0)
    bits = chosen.weights or 4

    def build(names: Sequence[str]) -> ir.Model:
        return weight_only_model(model, names, bits, chosen.block, folder)

    def ranks() -> list[str]:
        return sorted(layers, key=lambda name: -errors[name])

    order, errors = [*layers], dict[str, float]()
    whole = build(order)
    found = Trial(tuple(order), whole, {})
    some = samples[:EVALUATED]
    if some:
        own = folder, chosen.threads
        both = both_weights(model, whole, layers)
        errors = measured(*both, some, *own, progress)
        right = Right(model, some, *own).errors
        found = Search(order, ranks, chosen.limit, build, right, progress).best()
    why = {x.node: x.reason for x in stay} | {
        name: BEYOND for name in order if name not in found.layers
    }
    rows = [
        layer_report(node, bits, errors, why)
        for node in model.graph
        if node.name in {*layers, *why}
    ]
    made = {node.outputs[0].name: node.name or "" for node in found.model.graph}
    names = {name: made[layers[name].outputs[0].name] for name in found.layers}
    facts = QuantizationReport(
        tuple(rows), found.errors, chosen.limit, len(samples), chosen.random
    )
    first = samples[0] if samples else None
    pair = floats, model, found.model
    return found.model, timed(pair, facts, names, first, chosen, cache, progress)


def layer_report(
    node: ir.Node, bits: int, errors: Mapping[str, float], why: Mapping[str, str]
) -> LayerReport:
    """A layer's row."""
    name = node.name or ""
    computed = FLOATS if name in why else WEIGHTS.format(bits)
    reason, error = why.get(name, ""), errors.get(name)
    return LayerReport(name, node.op_type, computed, reason, error)
