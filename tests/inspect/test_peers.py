"""Peers: what they compute, and how they say that they cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from nanoloom.errors import Error
from nanoloom.inspect.peers import PEERS, NotInstalled, open_peer
from nanoloom.inspect.references import in_short, open_reference
from tests.cli import models

X = {"x": np.array([[1.5, -2, 3]], np.float32)}


def test_onnx_runtime(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.RELU)
    found = open_peer("ort", path, X, 1)
    np.testing.assert_array_equal(found.run(), [[[1.5, 0, 3]]])
    assert found.name.startswith("ONNX Runtime 1.")


@pytest.mark.parametrize("kind", PEERS)
def test_what_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name in ("onnxruntime", "openvino", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalled, match="is not installed; pip install"):
        open_peer(kind, models.write(tmp_path, models.RELU), X, 1)


@pytest.mark.parametrize("kind", ["ort", "reference"])
def test_what_a_reference_does_not_run(tmp_path: Path, kind: str) -> None:
    path = models.write(tmp_path, models.FOREIGN)
    with pytest.raises(Error, match="does not run this model"):
        open_reference(kind, path, 1)({"x": np.zeros((2, 3), np.float32)})


def test_onnx_s_reference_gathers_among_many(tmp_path: Path) -> None:
    """Its own takes one of numpy's arguments for each place: 64 at most."""
    text = """<ir_version: 10, opset_import: ["": 18]>
    k (float[70, 2] x, int64[3, 2] i) => (float[3, 2] y)
    { y = GatherElements<axis = 0>(x, i) }"""
    path = tmp_path / "gather.onnx"
    onnx.save(parser.parse_model(text), path)
    x = np.arange(140, dtype=np.float32).reshape(70, 2)
    i = np.array([[69, 0], [-1, 64], [3, 3]])
    (got,) = open_reference("reference", path, 1)({"x": x, "i": i})
    np.testing.assert_array_equal(got, [[138, 1], [138, 129], [6, 7]])


def test_what_a_peer_says_ends_with_its_reason() -> None:
    said = f"Fatal: {'of a::function(long) ' * 90}\n Q is not registered"
    found = in_short(said)
    assert found.startswith("Fatal: of") and found.endswith(" Q is not registered")
    assert len(found) <= 310 and set(found.split()) <= {*said.split(), "..."}
    assert in_short("short\n one") == "short one"
