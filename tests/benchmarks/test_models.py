"""The small models of tests/models and the table that describes them; no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from benchmarks.models import MODELS, SMALL, SmallModel, __main__, seeded_inputs
from nanoloom.errors import InputError

FOLDER = Path(__file__).parents[1] / "models"
KILOBYTES = 300
# Two exports of one network differ in the order of float32 sums only.
AGREEMENT = 1e-4

each_file = pytest.mark.parametrize("small", SMALL, ids=lambda model: model.file)


def run(small: SmallModel, inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(FOLDER / small.file), options)
    return [np.asarray(array) for array in session.run(None, inputs)]


def agree(got: NDArray[Any], reference: NDArray[Any]) -> bool:
    limit = AGREEMENT * np.abs(reference).max()
    return bool(got.shape == reference.shape and np.abs(got - reference).max() <= limit)


def test_folder_holds_the_listed_files() -> None:
    assert {path.name for path in FOLDER.glob("*.onnx")} == {s.file for s in SMALL}
    assert {small.name for small in SMALL} == set(MODELS)


@each_file
def test_file_is_as_listed(small: SmallModel) -> None:
    path = FOLDER / small.file
    assert path.stat().st_size < KILOBYTES * 1000
    assert b"site-packages" not in path.read_bytes()
    proto = onnx.load(path)
    versions = {opset.domain: opset.version for opset in proto.opset_import}
    assert versions[""] == small.opset
    variant = MODELS[small.name].small
    listed = {value.name: value.dims for value in variant.inputs}
    for value in proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        assert tuple(d.dim_param or d.dim_value for d in dims) == listed[value.name]
    assert [value.name for value in proto.graph.input] == list(listed)
    outputs = tuple(value.name for value in proto.graph.output)
    assert outputs == MODELS[small.name].outputs


@pytest.mark.drawn(one_in=3)
@each_file
def test_outputs_are_usable_numbers(small: SmallModel) -> None:
    first = run(small, seeded_inputs(small.name, small=True, seed=1))
    second = run(small, seeded_inputs(small.name, small=True, seed=2))
    for one, other in zip(first, second, strict=True):
        assert one.dtype == np.float32
        assert np.isfinite(one).all()
        assert np.abs(one).max() < 100
        assert one.std() > 0.01
        assert not agree(other, one)


@pytest.mark.parametrize("name", MODELS)
def test_exporters_agree(name: str) -> None:
    inputs = seeded_inputs(name, small=True, seed=3)
    reference, *others = [run(s, inputs) for s in SMALL if s.name == name]
    for outputs in others:
        assert all(map(agree, outputs, reference))
    assert not any(agree(0 * array, array) for array in reference)


@pytest.mark.drawn(one_in=3)
@each_file
def test_symbolic_dimensions_take_any_size(small: SmallModel) -> None:
    sizes = {"batch": 1, "sequence": 5, "frames": 3}
    alone = seeded_inputs(small.name, small=True, seed=4, sizes=sizes)
    doubled = {name: np.repeat(array, 2, axis=0) for name, array in alone.items()}
    if MODELS[small.name].small.sizes:
        for one, two in zip(run(small, alone), run(small, doubled), strict=True):
            assert agree(two, np.repeat(one, 2, axis=0))


def test_padding_is_ignored() -> None:
    """What stands behind the mask does not reach the tokens before it."""
    inputs = seeded_inputs("bert-base", small=True, seed=5)
    mask = inputs["attention_mask"].astype(bool)
    assert not mask.all()
    changed = {**inputs, "input_ids": np.where(mask, inputs["input_ids"], 42)}
    for small in SMALL:
        if small.name == "bert-base":
            before, after = run(small, inputs)[0], run(small, changed)[0]
            assert agree(after[mask], before[mask])
            assert not agree(after[~mask], before[~mask])


def test_inputs_are_seeded() -> None:
    for name in MODELS:
        once, again = seeded_inputs(name, small=True), seeded_inputs(name, small=True)
        other = seeded_inputs(name, small=True, seed=1)
        for key, array in once.items():
            np.testing.assert_array_equal(array, again[key])
        assert any((array != other[key]).any() for key, array in once.items())


def test_masks_start_full_and_pad_the_end() -> None:
    inputs = seeded_inputs("bert-base", seed=6, sizes={"batch": 9, "sequence": 33})
    mask = inputs["attention_mask"]
    assert mask[0].all()
    assert (np.diff(mask, axis=1) <= 0).all()
    assert (mask.sum(axis=1) >= 1).all()
    assert inputs["input_ids"].max() < 30522
    assert (inputs["input_ids"][mask == 0] == 0).all()
    assert {array.dtype for array in inputs.values()} == {np.dtype(np.int64)}


def test_unknown_name_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"no benchmark model is named lenet; known: "):
        seeded_inputs("lenet")


def test_command_lists_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main([]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in MODELS)
