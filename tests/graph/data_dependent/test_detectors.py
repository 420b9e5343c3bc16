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
from tests.graph.data_dependent.detectors import images, ssdlite, yolo


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


def test_kernels_that_read_what_they_compute_stay_apart(tmp_path: Path) -> None:
    """Comparisons of pairs, read at places that they decide, in another shape."""
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        alike (float[6] x) => (float[n] y, int64[n] i, int64[n] k)
        { y, i, j, k = Unique<axis = -1>(x) }""")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for numbers in ([2, 2, 1, 3, 1, 2], [0, 0, 0, 0, 0, 0], [5, 4, 3, 2, 1, 0]):
        x = np.array(numbers, np.float32)
        values, first, counts = np.unique(x, return_index=True, return_counts=True)
        found = program({"x": x})
        for name, wanted in (("y", values), ("i", first), ("k", counts)):
            np.testing.assert_array_equal(found[name], wanted)
