"""nanoloom quantize: a table, JSON, a picture, a file that is whole or not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import nanoloom as package
from nanoloom.cli.quantize import BITS, BLOCKS, METHODS
from nanoloom.quantization import calibration, quantize, weight_only
from tests.cli.conftest import Command
from tests.quantization import models

HALF = """g (float16[2, 3] x) => (float16[2, 2] y)
    <float16[3, 2] w = {1, 2, 3, 4, 5, 6}> { [half] y = MatMul(x, w) }"""
DONE = """g (float[2, 3] x) => (float[2, 3] y) <float s = {0.1}, uint8 z = {3}>
    { [first] q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"""
RELU = "g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"
BOTH = "g (float[3, 3] x) => (float[3, 3] y) { [square] y = MatMul(x, x) }"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A model and, beside it, a folder of samples."""
    path = tmp_path / "net.onnx"
    onnx.save(models.conv_net(), path)
    (tmp_path / "samples").mkdir()
    for index, sample in enumerate(models.samples((2, 3, 9, 9), 4)):
        np.save(tmp_path / "samples" / f"{index}.npy", sample["x"])
    return path


def written(folder: Path, text: str) -> Path:
    path = folder / "net.onnx"
    onnx.save(parser.parse_model(models.HEADER.format(20) + text), path)
    return path


def test_a_table_and_a_model(net: Path, nanoloom: Command) -> None:
    out = net.with_name("q.onnx")
    said = nanoloom("quantize", net, net.parent / "samples", "-o", out)
    assert said.status == 0, said
    assert "net.onnx: 6 layers" in said.out and "WARNING" not in said.err
    assert "GlobalAver" in said.out and "integers" in said.out
    assert "output y: error 0.00" in said.out and "of at most 0.1, on 4 samples" in (
        said.out
    )
    assert "weights: " in said.out and "as fast" in said.out
    assert f"wrote {out}" in said.out.replace("\n", "")
    assert nanoloom("verify", out, "-d", "N=2").status == 0
    assert nanoloom("check", out).status == 0


def test_json_and_a_picture(net: Path, nanoloom: Command) -> None:
    out, plot = net.with_name("q.onnx"), net.with_name("q.png")
    words = "quantize", net, net.parent / "samples", "-o", out, "--json"
    said = nanoloom(*words, "--no-times", "--plot", plot, "--keep-float", "first")
    found = json.loads(said.out)
    rows = {layer["node"]: layer for layer in found["layers"]}
    assert rows["first"]["computed"] == "floats"
    assert rows["first"]["reason"] == "--keep-float names it"
    assert rows["third"]["computed"] == "integers" and rows["third"]["error"] < 0.1
    assert found["outputs"]["y"] <= found["max_error"] == 0.1
    assert found["samples"] == 4 and not found["random"] and found["seconds"] is None
    assert found["bytes"] < found["float_bytes"]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_random_samples_are_for_speed_only(net: Path, nanoloom: Command) -> None:
    out = net.with_name("q.onnx")
    words = "--random", 3, "-d", "N=2", "--seed", 5, "--no-times"
    said = nanoloom("quantize", net, "-o", out, *words)
    assert said.status == 0
    assert "WARNING: samples are random: this model is for measuring speed ONLY" in (
        said.err
    )
    assert "on 3 random samples" in said.out
    first = out.read_bytes()
    nanoloom("quantize", net, "-o", out, *words)
    assert out.read_bytes() == first  # of one seed


def test_weights_alone_have_a_name_of_their_own(
    net: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(net.parent)
    words = "quantize", "net.onnx", "samples", "--weights", 8, "--block", 16
    said = nanoloom(*words, "--no-times")
    assert said.status == 0 and "weights of 8 bits" in said.out
    assert (net.parent / "net.w8.onnx").is_file()
    assert "only the weights of matrix products are quantized in blocks" in (
        " ".join(said.out.split())
    )


def test_the_words_are_those_of_the_library() -> None:
    """Told without importing it."""
    assert (*BITS,) == weight_only.BITS and (*BLOCKS,) == weight_only.BLOCKS
    assert METHODS == calibration.METHODS


REFUSED = {
    "no samples": ((), "there are no samples to calibrate with; give a folder of"),
    "unknown node": (
        ("samples", "--keep-float", "secnd"),
        "has no node secnd, which is to stay in floats; some that there are: second",
    ),
    "both": (("samples", "--random", "2"), "samples: are given twice"),
    "no folder": (
        ("nowhere", "--no-times"),
        "nowhere: is not there; samples are files",
    ),
    "limit": (
        ("samples", "--max-error", "1e-9"),
        "no layer can be quantized within an error of 1e-09: with all of them it is",
    ),
    "dimension": (("--random", "2", "-d", "M=3"), "M"),
    "no place": (("samples", "-o", "none/q.onnx"), "make the folder first"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_sentence(
    net: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(net.parent)
    words, told = REFUSED[name]
    said = nanoloom("quantize", "net.onnx", *words)
    assert said.status == 1 and told in said.told, said
    assert "Traceback" not in said.err
    assert {x.name for x in net.parent.iterdir()} == {"net.onnx", "samples"}


NO_LAYER = {
    HALF: "net.onnx: computes in float16 (node half), which is not quantized; export it"
    " in float32",
    DONE: "net.onnx: is quantized already: node first is QuantizeLinear; give the model"
    " in floats",
    RELU: "net.onnx: has no layer that can be quantized: there is no Conv, Gemm or"
    " MatMul",
    BOTH: "net.onnx: has no layer that can be quantized: its weight is no constant"
    " (MatMul square)",
}


@pytest.mark.parametrize("text", NO_LAYER)
@pytest.mark.parametrize("weights", [(), ("--weights", 4)])
def test_models_that_have_nothing_to_quantize(
    tmp_path: Path, nanoloom: Command, text: str, weights: tuple[object, ...]
) -> None:
    path = written(tmp_path, text)
    out = tmp_path / "q.onnx"
    said = nanoloom("quantize", path, "--random", 1, "-o", out, *weights)
    assert said.status == 1 and NO_LAYER[text] in said.told, said
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--weights", 3), "3 is none of 4, 8"),
        (("--block", 20), "20 is none of 16, 32, 64, 128, 256"),
        (("--calibration", "mean"), "mean is none of minmax, entropy, percentile"),
        (("--max-error", 0), "0 is no number above 0"),
        (("--plot", "x.txt"), "x.txt ends in none of"),
    ],
)
def test_wrong_words(
    net: Path, nanoloom: Command, words: tuple[object, ...], told: str
) -> None:
    said = nanoloom("quantize", net, net.parent / "samples", *words)
    assert said.status == 2 and told in said.told, said


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def failing(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("end", "status"), [(interrupted, 130), (failing, 1)])
def test_what_stood_there_stays(
    net: Path,
    nanoloom: Command,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[..., None],
    status: int,
) -> None:
    """An interrupt or a full disk, while the model is written."""
    from nanoloom.quantization import written_model

    out = net.with_name("q.onnx")
    out.write_text("precious")
    monkeypatch.setattr(written_model.os, "replace", end)
    words = "quantize", net, net.parent / "samples", "-o", out, "--no-times"
    said = nanoloom(*words)
    assert said.status == status, said
    assert out.read_text() == "precious"
    names = {x.name for x in net.parent.iterdir()}
    assert names == {"net.onnx", "samples", "q.onnx"}


def test_without_the_extra(
    net: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    right = importlib.util.find_spec

    def without(name: str, *more: object) -> object:
        return None if name == "onnxruntime" else right(name, *more)  # type: ignore[arg-type] - the rest

    monkeypatch.setattr(importlib.util, "find_spec", without)
    said = nanoloom("quantize", net, net.parent / "samples", "--no-times")
    assert said.status == 1
    assert (
        "quantizing needs ONNX Runtime's tools; pip install 'nanoloom[quantize]'"
        in (said.told)
    )


def test_python_refuses_the_same_words() -> None:
    sample = models.samples((2, 3, 9, 9), 1)
    for words, told in (
        ({"weights": 5}, "weights of 5 bits are not made; take 4 or 8"),
        ({"block": 7}, "blocks of 7 are not made; take 16, 32"),
        ({"calibration": "mean"}, "there is no calibration mean; take one of"),
        ({"max_error": -1}, "an error of -1 is no limit above 0"),
    ):
        with pytest.raises(package.Error) as caught:
            package.quantize(models.conv_net(), sample, **words)
        assert told in str(caught.value)


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    sample = models.samples((2, 3, 9, 9), 3)
    quantize.quantize(
        models.conv_net(), sample, progress=lambda *words: told.append(words)
    )
    assert ("calibrating", 3, 3) in told
    assert {words[0] for words in told} >= {"calibrating", "comparing layers"}


def test_the_users_logging_stays() -> None:
    import logging

    root = logging.getLogger()
    before = root.handlers[:], root.level, root.manager.disable
    package.quantize(models.block(), weights=4)
    assert (root.handlers[:], root.level, root.manager.disable) == before
