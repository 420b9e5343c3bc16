"""Exported transformers: each attention, whatever its form, is one kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import nanoloom
from nanoloom.compiler import Report, compile_kernels, partition_model
from tests.vector.kernel_harness import shared_cache

MODELS = Path(__file__).parents[1] / "models"
# Different attentions of a model: DeBERTa's with relative places, with batches of 2;
# Swin's in windows, as they lie and shifted with a mask, and in a smaller image; T5's
# with biases (of the encoder and of the decoder, equally long here), and between them.
ATTENTIONS = {
    "deberta-v2_opset17_torchscript": 1,
    "deberta-v2_opset18_dynamo": 1,
    "swin-tiny_opset17_torchscript": 3,
    "t5-small_opset17_torchscript": 2,
}


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_is_one_kernel(name: str) -> None:
    """Which compiles; all others are kernels like those of any model."""
    program = nanoloom.compile(MODELS / f"{name}.onnx", threads=1)
    dims = {d for x in program.inputs for d in x.shape if isinstance(d, str)}
    sizes = {d: 2 if d == "batch" else 11 for d in dims}
    shapes = {x.name: tuple(sizes.get(d, d) for d in x.shape) for x in program.inputs}
    made = partition_model(program.source.entry(shapes, {}), program.options, Report())
    found = {n: k for n, k in made.kernels.items() if n.startswith("contractions")}
    assert len(found) == ATTENTIONS[name]
    assert all(len(kernel.nest.products) == 2 for kernel in found.values())
    attentions = replace(made, kernels=found)
    compile_kernels(attentions, program.options, shared_cache(), Report())
