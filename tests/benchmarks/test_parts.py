"""Parts of an encoder: what they compute, where bert-base's time goes, a tiny run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from benchmarks import parts
from benchmarks.part_models import TINY, Part, Sizes, make_parts
from benchmarks.systems import difference

EVERY = make_parts(TINY)
each_part = pytest.mark.parametrize("part", EVERY, ids=lambda part: part.name)


@each_part
def test_the_model_computes_what_is_expected(part: Part) -> None:
    model = part.model()
    onnx.checker.check_model(model, full_check=True)
    got = ReferenceEvaluator(model).run(None, dict(part.inputs))
    arrays = [np.asarray(x) for x in got]
    assert difference(arrays, [part.expected]) < parts.CLOSE
    assert difference([0 * arrays[0]], [part.expected]) > 1000 * parts.CLOSE
    assert part.expected.std() > 0.01


def test_bytes() -> None:
    found = {part.name: part for part in make_parts(Sizes(words=50))}
    image = 4 * 128 * 768
    assert found["attention"].bytes == 4 * image + 4
    assert found["add, layer norm"].bytes == 3 * image + 2 * 4 * 768
    assert found["embedding"].bytes == 2 * image + 8 * 128  # not the whole table
    assert found["attention"].flops == 2 * 2 * 12 * 128 * 128 * 64


STEPS = [
    ("/embeddings/LayerNorm/LayerNormalization", 10),
    ("/layer.0/attention/self/query/MatMul", 30),
    ("/layer.0/attention/self/Softmax", 15),
    ("/layer.1/attention/self/query/MatMul", 35),
    ("/layer.1/output/LayerNorm/Add", 10),
]


def test_shares() -> None:
    found = {part.name: parts.share(part, STEPS) for part in EVERY}
    assert found["attention, masked"] == pytest.approx(0.15)
    assert found["softmax"] == pytest.approx(0.15)
    assert found["add, layer norm"] == pytest.approx(0.1)
    assert found["embedding"] == pytest.approx(0.1)
    assert found["GELU, erf"] is None
    assert parts.share(EVERY[1], []) is None


def test_steps_are_grouped() -> None:
    assert parts.grouped(STEPS)[0] == ("/layer.*/attention/self/query/MatMul", 2, 65)
    sheet = parts.steps_sheet(STEPS, 1)
    assert sheet.rows[0][1:] == ("2", "0.00", "65.0 %")


def test_a_tiny_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--quick", "--against", "", "--threads", "1", "--only", "softmax,GELU"]
    parts.main([*words, "--json", str(tmp_path / "p.json")])
    said = capsys.readouterr().out
    assert "GELU, tanh" in said and "measured GB/s, reading: L2" in said
    found = json.loads((tmp_path / "p.json").read_text())
    assert [each["part"] for each in found] == ["softmax", "GELU, erf", "GELU, tanh"]
    assert all(each["median_seconds"]["nanoloom"] > 0 for each in found)
    assert all(each["limit_seconds"] > 0 for each in found)
