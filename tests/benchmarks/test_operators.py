"""The benchmark of single operators, tiny; and that all kinds can be drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from benchmarks import operators


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    operators.main(["--quick", "--json", str(out)])
    assert "2 operators" in capsys.readouterr().out
    made, *_ = json.loads(out.read_text("utf-8"))
    assert set(made["median_seconds"]) == {"nanoloom", "onnxruntime"}
    assert made["differences"]["onnxruntime"] < 1e-5


@pytest.mark.parametrize("number", range(len(operators.DRAWS)))
def test_what_is_drawn_is_a_model(number: int) -> None:
    r = np.random.default_rng(number)
    made = operators.DRAWS[number](r, (3, 5, 7))
    model = made.model().SerializeToString()
    outputs = onnxruntime.InferenceSession(model).run(
        None, {f"x{i}": x for i, x in enumerate(made.inputs)}
    )
    assert len(outputs) == made.outputs and np.asarray(outputs[0]).size
