"""The demo's ONNX graph against BERT written in numpy with float64."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

import nanoloom
from examples.minilm import demo, model, sentences

Doubles = NDArray[np.float64]
Weights = dict[str, Doubles]
HIDDEN, HEADS, LAYERS, WORDS, POSITIONS = 24, 3, 2, 50, 13
BOUND = 1e-5  # float32 through six layers; embeddings have length 1
erf = np.vectorize(math.erf, otypes=[np.float64])


def layer_norm(x: Doubles, weights: Weights, name: str) -> Doubles:
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def dense(x: Doubles, weights: Weights, name: str) -> Doubles:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def attend(x: Doubles, keep: NDArray[np.bool_], w: Weights, name: str, heads: int):
    batch, length, width = x.shape

    def split(part: str) -> Doubles:
        value = dense(x, w, f"{name}.self.{part}").reshape(batch, length, heads, -1)
        return value.transpose(0, 2, 1, 3)

    scores = split("query") @ split("key").swapaxes(-1, -2) / math.sqrt(width // heads)
    scores = np.where(keep[:, None, None, :], scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    context = (shares @ split("value")).transpose(0, 2, 1, 3).reshape(x.shape)
    return dense(context, w, f"{name}.output.dense")


def bert(files: Path, ids: Any, mask: Any, types: Any) -> Doubles:
    """The sentence embeddings in float64: [batch, hidden]."""
    config = json.loads((files / "config.json").read_text())
    w = {k: v.astype(np.float64) for k, v in load_file(files / model.WEIGHTS).items()}
    keep = mask.astype(bool)
    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.token_type_embeddings.weight"][types]
    x = x + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = layer_norm(x, w, "embeddings.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        y = attend(x, keep, w, f"{name}.attention", config["num_attention_heads"])
        x = layer_norm(x + y, w, f"{name}.attention.output.LayerNorm")
        y = dense(x, w, f"{name}.intermediate.dense")
        y = y * 0.5 * (1 + erf(y / math.sqrt(2)))
        y = dense(y, w, f"{name}.output.dense")
        x = layer_norm(x + y, w, f"{name}.output.LayerNorm")
    pooled = (x * keep[..., None]).sum(1) / keep.sum(1, keepdims=True)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def embed(path: Path, inputs: dict[str, Any]) -> NDArray[np.float32]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    return np.asarray(session.run([model.OUTPUT], inputs)[0])


def small_weights(generator: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    """Every parameter of a BERT of HIDDEN x LAYERS, by name, with random values."""
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
    }
    blocks: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (HIDDEN,)}
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        for part in ("query", "key", "value"):
            blocks[f"{name}.attention.self.{part}"] = (HIDDEN, HIDDEN)
        blocks[f"{name}.attention.output.dense"] = (HIDDEN, HIDDEN)
        blocks[f"{name}.attention.output.LayerNorm"] = (HIDDEN,)
        blocks[f"{name}.intermediate.dense"] = (4 * HIDDEN, HIDDEN)
        blocks[f"{name}.output.dense"] = (HIDDEN, 4 * HIDDEN)
        blocks[f"{name}.output.LayerNorm"] = (HIDDEN,)
    for name, shape in blocks.items():
        shapes[f"{name}.weight"] = shape
        shapes[f"{name}.bias"] = shape[:1]
    return {
        name: generator.normal(0, 1 / math.sqrt(shape[-1]), shape).astype(np.float32)
        for name, shape in shapes.items()
    }


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the package's, with a random BERT of 24 wide and 2 layers."""
    folder = tmp_path_factory.mktemp("small")
    save_file(small_weights(np.random.default_rng(1)), folder / model.WEIGHTS)
    config = {
        "hidden_size": HIDDEN,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": POSITIONS,
        "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def random_inputs(batch: int, length: int) -> dict[str, NDArray[np.int64]]:
    generator = np.random.default_rng(2)
    lengths = generator.integers(1, length + 1, batch)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
    return {
        "input_ids": generator.integers(0, WORDS, (batch, length)) * mask,
        "attention_mask": mask,
        "token_type_ids": generator.integers(0, 2, (batch, length)) * mask,
    }


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 7), (5, POSITIONS)])
def test_small_model_is_bert(
    small: Path, tmp_path: Path, batch: int, length: int
) -> None:
    path = model.build(tmp_path / "small.onnx", small)
    inputs = random_inputs(batch, length)
    expected = bert(small, *inputs.values())
    assert np.abs(embed(path, inputs) - expected).max() <= BOUND
    assert not np.abs(0 * expected - expected).max() <= BOUND
    unmasked = dict(inputs, attention_mask=np.ones_like(inputs["attention_mask"]))
    if (inputs["attention_mask"] == 0).any():  # the padding must matter
        assert np.abs(embed(path, unmasked) - expected).max() > BOUND


def test_graph_is_what_an_exporter_writes(small: Path, tmp_path: Path) -> None:
    written = onnx.load(model.build(tmp_path / "small.onnx", small))
    assert [opset.version for opset in written.opset_import] == [17]
    for value in written.graph.input:
        dims = value.type.tensor_type.shape.dim
        assert [dim.dim_param for dim in dims] == ["batch", "sequence"]
    assert [value.name for value in written.graph.input] == list(model.INPUTS)
    assert [value.name for value in written.graph.output] == [model.OUTPUT]
    kinds = [node.op_type for node in written.graph.node]
    assert kinds.count("LayerNormalization") == 2 * LAYERS + 1
    assert kinds.count("Erf") == LAYERS
    assert kinds.count("Softmax") == LAYERS


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The embeddings' model with trained weights, and the demo's tokens."""
    files = model.package_files()
    path = model.build(tmp_path_factory.mktemp("trained") / "minilm.onnx", files)
    return path, sentences.tokenize(files, sentences.SENTENCES)


def test_trained_model_is_bert(trained: tuple[Path, dict[str, Any]]) -> None:
    path, inputs = trained
    some = {name: value[:2] for name, value in inputs.items()}
    expected = bert(model.package_files(), *some.values())
    got = embed(path, some)
    assert np.abs(got - expected).max() <= BOUND
    assert np.abs(np.linalg.norm(got.astype(np.float64), axis=1) - 1).max() <= 1e-6


def test_related_sentences_are_nearest(trained: tuple[Path, dict[str, Any]]) -> None:
    path, inputs = trained
    embeddings = embed(path, inputs)
    cosines = embeddings @ embeddings.T
    np.fill_diagonal(cosines, -1)
    partner = np.arange(len(cosines)) ^ 1
    assert (cosines.argmax(axis=1) == partner).all()
    related = cosines[np.arange(len(cosines)), partner].copy()
    cosines[np.arange(len(cosines)), partner] = -1
    assert related.min() > cosines.max() + 0.2


def test_padding_does_not_change_a_sentence(
    trained: tuple[Path, dict[str, Any]],
) -> None:
    path, inputs = trained
    alone = sentences.tokenize(model.package_files(), sentences.SENTENCES[4:5])
    assert alone["input_ids"].shape[1] < inputs["input_ids"].shape[1]
    difference = np.abs(embed(path, alone)[0] - embed(path, inputs)[4]).max()
    assert difference <= BOUND


def test_tokens_are_berts() -> None:
    tokens = sentences.tokenize(model.package_files(), ["Hello, world!", "Hello"])
    assert tokens["input_ids"].tolist() == [
        [101, 7592, 1010, 2088, 999, 102],
        [101, 7592, 102, 0, 0, 0],
    ]
    assert tokens["attention_mask"].sum(axis=1).tolist() == [6, 3]
    assert {array.dtype for array in tokens.values()} == {np.dtype(np.int64)}


def test_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "PACKAGE", "a_package_that_is_not_installed")
    with pytest.raises(model.ModelError, match="not installed; run: pip install"):
        model.package_files()


def run_demo(
    monkeypatch: pytest.MonkeyPatch, trained: tuple[Path, dict[str, Any]], scale: float
) -> int:
    """The demo with ONNX Runtime, times `scale`, in the compiler's place."""
    path, _ = trained

    def stand_in(file: Path, threads: int) -> Any:
        assert file == path
        assert threads == 1
        return lambda inputs: {model.OUTPUT: embed(file, inputs) * np.float32(scale)}

    monkeypatch.setattr(nanoloom, "compile", stand_in, raising=False)
    monkeypatch.setattr(demo, "REPETITIONS", 1)
    monkeypatch.setattr(demo, "WARM_UPS", 0)
    return demo.main([str(path.parent), "--threads", "1"])


def test_demo_prints_the_pairs(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trained: tuple[Path, dict[str, Any]],
) -> None:
    assert run_demo(monkeypatch, trained, 1.0) == 0
    printed = capsys.readouterr().out
    assert "ONNX Runtime" in printed
    assert printed.count("0.") >= len(sentences.SENTENCES) // 2


@pytest.mark.parametrize("scale", [0.0, 0.999, math.nan])
def test_demo_refuses_wrong_numbers(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trained: tuple[Path, dict[str, Any]],
    scale: float,
) -> None:
    assert run_demo(monkeypatch, trained, scale) == 1
    assert "differ from ONNX Runtime" in capsys.readouterr().err


def test_each_pair_once_and_best_first() -> None:
    angles = np.array([0.0, 0.5, 2.0, 2.1])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert [(i, j) for _, i, j in demo.nearest_pairs(rows)] == [(2, 3), (0, 1)]
