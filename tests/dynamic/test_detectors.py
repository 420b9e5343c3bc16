"""Detectors with their suppression inside, of any batch, height and width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.dynamic.compared import PAIRS, compare, uniform
from tests.graph.data_dependent.detectors import CLASSES, NETWORK, YOLO, parsed, weights

# The middle of each place of the features, as exporters make it of their shape.
GRID = """
  whole = Shape(features)
  rows = Gather<axis = 0>(whole, second)
  columns_ = Gather<axis = 0>(whole, third)
  ys = Range(first, rows, step)
  xs = Range(first, columns_, step)
  yu = Unsqueeze(ys, axes1)
  xu = Unsqueeze(xs, axes0)
  rows1 = Unsqueeze(rows, axes0)
  columns1 = Unsqueeze(columns_, axes0)
  sides = Concat<axis = 0>(rows1, columns1)
  ye = Expand(yu, sides)
  xe = Expand(xu, sides)
  yr = Reshape(ye, flat)
  xr = Reshape(xe, flat)
  y2 = Unsqueeze(yr, axes0)
  x2 = Unsqueeze(xr, axes0)
  places = Concat<axis = 0>(x2, y2)
  corner = Cast<to = 1>(places)
  centers = Add(corner, point5)
  grid = Unsqueeze(centers, axes0)
"""


def detector(image: str) -> onnx.ModelProto:
    """image [..., 3, ..., ...] -> [n, 6]: a box, its score and its class."""
    text = f"""yolo (float[{image}] image) => (float[n, 6] detections)
        {{ {NETWORK} {GRID} {YOLO} }}"""
    constants = weights(np.random.default_rng(6), 4, CLASSES) | {
        "fours": np.array([0, 4, -1]),
        "classes": np.array([0, CLASSES, -1]),
        "first": np.array(0),
        "step": np.array(1),
        "second": np.array(2),
        "third": np.array(3),
        "flat": np.array([-1]),
        "point5": np.float32(0.5),
        "stride": np.float32(4),
        "stride2": np.float32(4),
        "axes0": np.array([0]),
        "axes1": np.array([1]),
        "columns": np.array([0, 2]),
        "most_boxes": np.array([25]),
        "overlap": np.array([0.45], np.float32),
        "threshold": np.array([0.25], np.float32),
    }
    constants["bc"] = np.full(CLASSES, -2.5, np.float32)
    return parsed(text, constants)


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("image", ["batch, 3, h, w", "1, 3, h, w", "batch, 3, 32, 40"])
def test_of_any_size(tmp_path: Path, image: str) -> None:
    sizes = [{"batch": 1 + i % 4, "h": h, "w": w} for i, (h, w) in enumerate(PAIRS)]
    model = detector(image)
    made = compare(model, sizes, tmp_path, uniform, 1e-3)
    assert len({len(y["detections"]) for y in made}) >= (2 if "batch" in image else 1)
