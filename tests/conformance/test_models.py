"""Small networks of every family through the whole pipeline, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.api.program import Program
from nanoloom.frontend.inputs import InputSpec, random_inputs
from nanoloom.inspect.differences import compare
from nanoloom.inspect.references import disturbed, open_reference
from tests.conformance.pipeline import THREADS, Pipeline

MODELS = sorted((Path(__file__).parents[1] / "models").glob("*.onnx"))
RANDOM_22 = 22  # ONNX Runtime draws no random numbers by this opset's operators
BATCH, OTHER = 2, 11  # of dimensions with a name: the first of an input, and the rest


def shaped(program: Program) -> list[InputSpec]:
    """The inputs with a number for every dimension."""
    numbers: dict[str, int] = {}
    for x in program.inputs:
        for place, size in enumerate(x.shape):
            if isinstance(size, str):
                numbers.setdefault(size, OTHER if place else BATCH)
    return [
        InputSpec(
            x.name,
            tuple(d if isinstance(d, int) else numbers[d] for d in x.shape),
            x.dtype,
        )
        for x in program.inputs
    ]


def references(
    path: Path, program: Program, inputs: Mapping[str, np.ndarray], folder: Path
) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """A peer's answers, and those it gives when every rounding is disturbed."""
    shapes = {name: array.shape for name, array in inputs.items()}
    model = program.source.bound(shapes, {})
    peer = "ort" if model.opset_imports[""] < RANDOM_22 else "reference"
    wanted = open_reference(peer, path, THREADS)(inputs)
    return wanted, disturbed(peer, model, folder, THREADS, inputs)


FAMILIES = {
    "encoder": {"albert", "bert-base", "bge-small", "distilbert", "roberta-base"},
    "residuals": {"resnet18", "resnet50", "vgg16"},
    "inverted residuals": {"mobilenet", "efficientnet"},
}


def family(path: Path) -> str:
    """A network's, of any depth or width: two exporters' files compute the same."""
    name = path.stem.partition("_")[0]
    alike = (kind for kind, names in FAMILIES.items() if name in names)
    return next(alike, name.rstrip("0123456789"))


@pytest.mark.drawn(one_in=3, kind=family)
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_model(path: Path, pipeline: Pipeline, tmp_path: Path) -> None:
    program = nanoloom.compile(path, threads=THREADS, cache=pipeline.cache)
    inputs = random_inputs(shaped(program), seed=3)
    wanted, others = references(path, program, inputs, tmp_path)
    for i, (name, array) in enumerate(program(inputs).items()):
        found = compare(name, array, wanted[i], [other[i] for other in others])
        assert found.passed, found
        assert found.proves, f"zeros would pass: {found}"


def test_models_are_there() -> None:
    assert len(MODELS) > 30
