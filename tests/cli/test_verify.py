"""nanoloom verify: right results pass, wrong ones do not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir
import pytest

from nanoloom.api.program import Program
from nanoloom.cli import verify
from tests.cli import models
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

Array = np.ndarray
WORDS = ("-d", "batch=3")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.DENSE)


def spoil(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Array], Array], name: str = "y"
) -> None:
    """Make one output of every program wrong."""
    right = Program.__call__

    def wrong(self: Program, inputs: Mapping[str, object]) -> dict[str, Array]:
        made = right(self, inputs)
        return {k: change(a) if k == name else a for k, a in made.items()}

    monkeypatch.setattr(Program, "__call__", wrong)


@pytest.mark.parametrize("against", ["ort", "reference"])
def test_right_results_pass(dense: Path, nanoloom: Command, against: str) -> None:
    said = nanoloom("verify", dense, *WORDS, "--against", against)
    assert said.status == 0, said
    assert "agrees with" in said.out and said.out.count(" ok") == 2
    assert "inputs x, w are random (seed 0)" in said.err


WRONG: dict[str, Callable[[Array], Array]] = {
    "zeros": lambda a: 0 * a,
    "a little": lambda a: a * np.float32(1.0001),
    "one element": lambda a: np.where(a == a.max(), a + np.float32(1e-3), a),
    "nan": lambda a: np.where(a == a.max(), np.float32(np.nan), a),
    "transposed": lambda a: a[::-1].copy(),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("against", ["ort", "reference"])
def test_wrong_results_fail(
    dense: Path,
    nanoloom: Command,
    monkeypatch: pytest.MonkeyPatch,
    against: str,
    name: str,
) -> None:
    spoil(monkeypatch, WRONG[name])
    said = nanoloom("verify", dense, *WORDS, "--against", against)
    assert said.status == 1
    assert "DIFFERS" in said.out and "differs from" in said.out
    assert said.out.count(" ok") == 1, "the other output is right"


def test_json(dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(nanoloom("verify", dense, *WORDS, "--json").out)
    assert found["passed"] and found["against"] == "ort"
    assert [output["name"] for output in found["outputs"]] == ["y", "z"]
    for output in found["outputs"]:
        assert 0 <= output["absolute"] <= output["bound"] < 1e-4
        assert output["proves"] and output["dtype"] == "float32"
    spoil(monkeypatch, WRONG["zeros"])
    found = json.loads(nanoloom("verify", dense, *WORDS, "--json").out)
    assert not found["passed"] and found["outputs"][0]["reason"]
    assert found["outputs"][1]["passed"]


def test_every_layer(dense: Path, nanoloom: Command) -> None:
    said = nanoloom("verify", dense, *WORDS, "--per-layer")
    assert said.status == 0 and "all 3 layers agree with ONNX Runtime" in said.out
    found = json.loads(nanoloom("verify", dense, *WORDS, "--per-layer", "--json").out)
    names = [(layer["node"], layer["name"]) for layer in found["layers"]]
    assert names == [("MatMul_0", "m"), ("Relu_1", "y"), ("Softmax_2", "z")]
    assert found["first_differing"] is None


def test_the_first_layer_that_differs(
    dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = verify.own_results

    def wrong(question: verify.Question) -> verify.Ours:
        run = right(question)

        def spoiled(model: onnx_ir.Model, inputs: Mapping[str, Array]):  # type: ignore[no-untyped-def]
            made = dict(run(model, inputs))
            # An error in y stays in y; z comes after it in the file.
            return made | {k: made[k] + 1 for k in ("y", "z") if k in made}

        return spoiled

    monkeypatch.setattr(verify, "own_results", wrong)
    said = nanoloom("verify", dense, *WORDS, "--per-layer")
    assert said.status == 1
    assert "first to differ from ONNX Runtime: node Relu_1 (Relu)" in said.out
    found = json.loads(nanoloom("verify", dense, *WORDS, "--per-layer", "--json").out)
    assert found["first_differing"] == "Relu_1" and len(found["layers"]) == 2


def test_integers_are_exact(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "g (int32[n, 4] x) => (int32[n, 4] y) { y = Add(x, x) }"
    model = models.write(tmp_path, text)
    words = ("verify", model, "-d", "n=5")
    assert nanoloom(*words).status == 0
    spoil(monkeypatch, lambda a: a + (np.arange(a.size) == 3).reshape(a.shape))
    said = nanoloom(*words)
    assert said.status == 1 and "1 of 20 integers differ" in said.out


def test_given_inputs(tmp_path: Path, dense: Path, nanoloom: Command) -> None:
    random = np.random.default_rng(3)
    np.save(tmp_path / "x.npy", random.standard_normal((3, 7), np.float32))
    np.save(tmp_path / "w.npy", random.standard_normal((7, 5), np.float32))
    words = ("-i", f"x={tmp_path / 'x.npy'}", "-i", f"w={tmp_path / 'w.npy'}")
    said = nanoloom("verify", dense, *words)
    assert said.status == 0 and said.err == ""


def test_no_elements(dense: Path, nanoloom: Command) -> None:
    assert nanoloom("verify", dense, "-d", "batch=0").status == 0


def test_random_numbers_cannot_be_compared(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.RANDOM)
    said = nanoloom("verify", model)
    refused(said, "RandomUniformLike_0", "draws random numbers")


def test_a_peer_that_is_not_installed(
    dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    said = nanoloom("verify", dense, *WORDS)
    refused(said, "ONNX Runtime is not installed", "nanoloom[peers]", "reference")
    assert nanoloom("verify", dense, *WORDS, "--against", "reference").status == 0


def test_an_unknown_peer(dense: Path, nanoloom: Command) -> None:
    said = nanoloom("verify", dense, "--against", "tflite")
    refused(said, "tflite is none of ort, reference", status=2)


@pytest.mark.parametrize("more", [(), ("--per-layer",)])
def test_of_a_new_opset(tmp_path: Path, nanoloom: Command, more: Sequence[str]) -> None:
    dense = models.write(tmp_path, models.DENSE, opset=22)
    said = nanoloom("verify", dense, *WORDS, *more)
    assert said.status == 0 and "ONNX Runtime" in said.out, said


@pytest.mark.parametrize("more", [(), ("--per-layer",)])
def test_operators_of_onnx_runtime(
    tmp_path: Path, nanoloom: Command, more: Sequence[str]
) -> None:
    """What stands for them is of a newer opset than the model's other nodes."""
    text = """
        g (float[batch, 7] x, float[7, 5] w, float[5] b) => (float[batch, 5] y) {
          a = MatMul(x, w)
          c = com.microsoft.BiasGelu(a, b)
          y = Softmax(c)
        }
    """
    model = models.write(tmp_path, text, opset=12)
    said = nanoloom("verify", model, *WORDS, *more)
    assert said.status == 0 and "ONNX Runtime" in said.out, said
