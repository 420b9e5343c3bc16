"""Exported transformers: each attention, whatever its form, is one kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

import nanoloom

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


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_is_one_kernel(name: str) -> None:
    path = MODELS / f"{name}.onnx"
    inputs = nanoloom.compile(path, threads=1).inputs
    names = {d for x in inputs for d in x.shape if isinstance(d, str)}
    dims = {d: 2 if d == "batch" else 11 for d in names}
    nests = nanoloom.compile(path, threads=1, dims=dims).nests()
    found = [nest for key, nest in nests.items() if key.startswith("contractions")]
    assert len(found) == ATTENTIONS[name]
    assert all(len(nest.products) == 2 for nest in found)
