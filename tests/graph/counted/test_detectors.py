"""Detectors with their suppression inside: right for all images, compiled once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import Report
from nanoloom.errors import Unsupported
from tests.graph.counted.detectors import images, ssdlite, yolo


@pytest.mark.parametrize("make", [ssdlite, yolo])
def test_every_number_of_detections(
    make: Callable[[], onnx.ModelProto], tmp_path: Path
) -> None:
    model, report, cache = make(), Report(), Cache(tmp_path / "cache")
    program = nanoloom.compile(model, threads=2, cache=cache, report=report)
    kernels = report.kernels
    assert kernels and len(program.variants) == 1
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    numbers: list[int] = []
    for image in images():
        found = program({"image": image})
        wanted = [np.asarray(x) for x in peer.run(None, {"image": image})]
        for mine, right in zip(found.values(), wanted, strict=True):
            assert mine.shape == right.shape and mine.dtype == right.dtype
            np.testing.assert_allclose(mine, right, 1e-4, 1e-4)
        numbers.append(len(wanted[0]))
    assert 0 in numbers and len(set(numbers)) >= 8
    assert len(program.variants) == 1 and report.kernels == kernels
    with pytest.raises(Unsupported, match="node .*the shape of the output .* depends"):
        program.save(tmp_path / "detector.a", form="static")
    assert not (tmp_path / "detector.a").exists()
